//! What people have of oneDNN: graphs in JSON as its benchmark reads them, lines of its verbose log, problem strings.

mod graph;
mod verbose;
mod write;

use std::collections::{BTreeMap, BTreeSet};

use outstride_spec::DType;
use serde_json::Value;

use crate::error::FileError;
use crate::layers::Layer;
use crate::model::{Attribute, Format, Graph, Model, Node, OPENVINO_DOMAIN, ValueType};
use crate::source::Source;

pub use write::{LayerGraph, layer_graph, problem_string};

/// The largest file that is read: graphs and logs are lists of shapes.
const MAX_BYTES: u64 = 1 << 26;

/// The operator set of ONNX that layers are written in.
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
    /// A model of unconnected layers, each a node that is named after the layer: ONNX's ConvTranspose, or for integers,
    /// which ONNX has none of, OpenVINO's ConvolutionBackpropData or GroupConvolutionBackpropData.
    pub fn from_layers(layers: Vec<Layer>, dtype: DType) -> Self {
        of_layers(layers.into_iter().map(|layer| (layer, dtype)).collect())
    }
}

fn of_layers(layers: Vec<(Layer, DType)>) -> Model {
    let mut graph = Graph::default();
    let mut opsets = BTreeMap::new();
    let mut taken = BTreeSet::new();
    for (index, (layer, dtype)) in layers.into_iter().enumerate() {
        let mut name = layer.id.clone();
        if !taken.insert(name.clone()) {
            name = format!("{name}#{index}");
        }
        let value = |suffix: &str| format!("{name}.{suffix}");
        let spelling = if dtype.is_integer() { openvino(&layer) } else { onnx(&layer) };
        if spelling.domain.is_empty() {
            opsets.insert(String::new(), OPSET);
        }
        graph.types.insert(value("X"), ValueType::known(dtype, &layer.input_shape()));
        graph.types.insert(value("W"), ValueType::known(dtype, &spelling.filter));
        graph.inputs.extend([value("X"), value("W")]);
        graph.outputs.push(value("Y"));
        graph.nodes.push(Node {
            op: spelling.op.into(),
            domain: spelling.domain.into(),
            inputs: vec![value("X"), value("W")],
            outputs: vec![value("Y")],
            attributes: spelling.attributes,
            name,
        });
    }
    Model { format: Format::Layers, producer: None, opsets, graph }
}

/// A layer in the words of a dialect.
struct Spelling {
    op: &'static str,
    domain: &'static str,
    filter: Vec<usize>,
    attributes: BTreeMap<String, Attribute>,
}

fn onnx(layer: &Layer) -> Spelling {
    let pads = [&*layer.pads_begin, &*layer.pads_end].concat();
    let mut attributes = lists(layer, &[("pads", &pads)]);
    attributes.insert("group".into(), Attribute::Int(layer.groups as i64));
    Spelling { op: "ConvTranspose", domain: "", filter: layer.filter_shape(), attributes }
}

fn openvino(layer: &Layer) -> Spelling {
    let attributes = lists(layer, &[("pads_begin", &layer.pads_begin), ("pads_end", &layer.pads_end)]);
    let (op, filter) = match layer.groups {
        1 => ("ConvolutionBackpropData", layer.filter_shape()),
        groups => {
            let mut filter = layer.filter_shape();
            filter[0] /= groups;
            filter.insert(0, groups);
            ("GroupConvolutionBackpropData", filter)
        }
    };
    Spelling { op, domain: OPENVINO_DOMAIN, filter, attributes }
}

/// The attributes that are lists: those of every dialect, and the pads as one of them names them.
fn lists(layer: &Layer, pads: &[(&str, &Vec<i64>)]) -> BTreeMap<String, Attribute> {
    let alike = [
        ("strides", &layer.strides),
        ("dilations", &layer.dilations),
        ("output_padding", &layer.output_padding),
    ];
    let list = |(name, list): (&str, &Vec<i64>)| (name.to_owned(), Attribute::Ints(list.clone()));
    alike.into_iter().chain(pads.iter().copied()).map(list).collect()
}
