//! What people have of oneDNN: graphs in JSON as its benchmark reads them, lines of its verbose log, problem strings.

mod graph;
mod verbose;
mod write;

use std::collections::{BTreeMap, BTreeSet};

use outstride_spec::DType;
use serde_json::Value;

use crate::error::FileError;
use crate::layers::Layer;
use crate::model::{Attribute, Format, Graph, Model, Node, ValueType};
use crate::source::Source;

pub use write::{LayerGraph, layer_graph, problem_string};

/// The largest file that is read: graphs and logs are lists of shapes.
const MAX_BYTES: u64 = 1 << 26;

/// The operator set that layers are written in.
const OPSET: i64 = 22;

/// A graph of oneDNN, or a layers file.
pub(crate) fn read_json(source: &Source) -> Result<Model, FileError> {
    let bytes = source.read_all(MAX_BYTES)?;
    let document: Value =
        serde_json::from_slice(&bytes).map_err(|error| source.malformed("the file", "JSON", error))?;
    if document.is_array() {
        let layers = Layer::parse_file(source.path(), &bytes);
        return match layers {
            Ok(layers) => Ok(of_layers(layers.into_iter().map(|layer| (layer, DType::F32)).collect())),
            Err(error) => Err(source.malformed("the file", "a layers file or a oneDNN graph", error)),
        };
    }
    graph::read(source, &document)
}

/// Lines of a verbose log, or problem strings, one a line.
pub(crate) fn read_text(source: &Source) -> Result<Model, FileError> {
    let bytes = source.read_all(MAX_BYTES)?;
    Ok(of_layers(verbose::layers(source, &String::from_utf8_lossy(&bytes))?))
}

impl Model {
    /// A model of unconnected layers, each a node of ONNX's ConvTranspose that is named after the layer.
    pub fn from_layers(layers: Vec<Layer>, dtype: DType) -> Self {
        of_layers(layers.into_iter().map(|layer| (layer, dtype)).collect())
    }
}

fn of_layers(layers: Vec<(Layer, DType)>) -> Model {
    let mut graph = Graph::default();
    let mut taken = BTreeSet::new();
    for (index, (layer, dtype)) in layers.into_iter().enumerate() {
        let mut name = layer.id.clone();
        if !taken.insert(name.clone()) {
            name = format!("{name}#{index}");
        }
        let value = |suffix: &str| format!("{name}.{suffix}");
        graph.types.insert(value("X"), ValueType::known(dtype, &layer.input_shape()));
        graph.types.insert(value("W"), ValueType::known(dtype, &layer.filter_shape()));
        graph.inputs.extend([value("X"), value("W")]);
        graph.outputs.push(value("Y"));
        graph.nodes.push(Node {
            op: "ConvTranspose".into(),
            domain: String::new(),
            inputs: vec![value("X"), value("W")],
            outputs: vec![value("Y")],
            attributes: attributes(layer),
            name,
        });
    }
    Model { format: Format::Layers, producer: None, opsets: BTreeMap::from([(String::new(), OPSET)]), graph }
}

fn attributes(layer: Layer) -> BTreeMap<String, Attribute> {
    let pads = [layer.pads_begin, layer.pads_end].concat();
    let lists = [
        ("strides", layer.strides),
        ("dilations", layer.dilations),
        ("pads", pads),
        ("output_padding", layer.output_padding),
    ];
    let lists = lists.into_iter().map(|(name, list)| (name.to_owned(), Attribute::Ints(list)));
    lists.chain([("group".to_owned(), Attribute::Int(layer.groups as i64))]).collect()
}
