//! OpenVINO IR: an `.xml` file of layers and edges, and a `.bin` file of constants beside it.

mod layer;
mod types;
mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use roxmltree::{Document, Node as Xml, ParsingOptions};

use crate::error::FileError;
use crate::model::{Attribute, Format, Graph, Model, Node};
use crate::source::Source;
use layer::Layer;
pub use write::{LayerIr, layer_ir};

/// The largest `.xml` file that is read; a layer takes a few hundred bytes.
const MAX_XML_BYTES: u64 = 1 << 28;

/// As many elements as that much XML can hold in earnest.
const MAX_XML_NODES: u32 = 1 << 24;

/// Bodies in bodies: deeper is no model.
const MAX_DEPTH: usize = 32;

pub(crate) fn read_model(source: &Source) -> Result<Model, FileError> {
    let bytes = source.read_all(MAX_XML_BYTES)?;
    let text =
        std::str::from_utf8(&bytes).map_err(|error| source.malformed("the file", "UTF-8 text", error))?;
    let options = ParsingOptions { nodes_limit: MAX_XML_NODES, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options)
        .map_err(|error| source.malformed("the file", "XML", error))?;
    let root = document.root_element();
    if !root.has_tag_name("net") {
        let found = format!("<{}>", root.tag_name().name());
        return Err(source.malformed("the file", "an OpenVINO IR, which is one <net>", found));
    }
    let constants = constants_file(source.path())?;
    let reader = Reader { source, constants };
    Ok(Model {
        format: Format::OpenvinoIr,
        producer: None,
        opsets: BTreeMap::new(),
        graph: reader.graph(root, 0)?,
    })
}

/// The `.bin` file of the same name, where there is one: a model without constants needs none.
fn constants_file(xml: &Path) -> Result<Option<Source>, FileError> {
    let path = xml.with_extension("bin");
    match path.is_file() && path != xml {
        true => Source::open(&path).map(Some),
        false => Ok(None),
    }
}

struct Reader<'a> {
    source: &'a Source,
    constants: Option<Source>,
}

/// An output port: the layer's id and the port's.
type Port = (String, String);

impl Reader<'_> {
    fn graph(&self, net: Xml<'_, '_>, depth: usize) -> Result<Graph, FileError> {
        let children = |tag| {
            let list = net.children().find(|child| child.has_tag_name(tag));
            list.into_iter().flat_map(|list| list.children()).filter(Xml::is_element)
        };
        let mut graph =
            Graph { name: net.attribute("name").unwrap_or_default().to_owned(), ..Graph::default() };
        let mut layers = Vec::new();
        let mut names: BTreeMap<Port, String> = BTreeMap::new();
        let mut taken = BTreeSet::new();
        for xml in children("layers") {
            let layer = Layer::read(self.source, xml)?;
            for port in &layer.outputs {
                let value = layer.value_name(&port.id, &mut taken);
                graph.types.insert(value.clone(), port.value_type.clone());
                names.insert((layer.id.clone(), port.id.clone()), value);
            }
            layers.push((layer, xml));
        }
        let mut feeds: BTreeMap<Port, String> = BTreeMap::new();
        for edge in children("edges") {
            let get = |name| layer::required(self.source, edge, name);
            let from = (get("from-layer")?, get("from-port")?);
            let Some(value) = names.get(&from) else {
                let place = format!("the edge from layer {}, port {}", from.0, from.1);
                return Err(self.source.malformed(place, "from a port of a layer", "none"));
            };
            feeds.insert((get("to-layer")?, get("to-port")?), value.clone());
        }
        for (layer, xml) in layers {
            self.add(&mut graph, &layer, xml, &names, &feeds, depth)?;
        }
        Ok(graph)
    }

    fn add(
        &self,
        graph: &mut Graph,
        layer: &Layer,
        xml: Xml<'_, '_>,
        names: &BTreeMap<Port, String>,
        feeds: &BTreeMap<Port, String>,
        depth: usize,
    ) -> Result<(), FileError> {
        let of = |map: &BTreeMap<Port, String>, port: &str| {
            map.get(&(layer.id.clone(), port.to_owned())).cloned().unwrap_or_default()
        };
        let inputs: Vec<String> = layer.inputs.iter().map(|port| of(feeds, port)).collect();
        let outputs: Vec<String> = layer.outputs.iter().map(|port| of(names, &port.id)).collect();
        match layer.kind.as_str() {
            "Parameter" => graph.inputs.extend(outputs),
            "Result" => graph.outputs.extend(inputs),
            "Const" => {
                let Some(name) = outputs.first() else {
                    return Err(self.source.malformed(layer.place(), "with an output port", "none"));
                };
                let constant = layer.constant(self.source, self.constants.as_ref(), name, xml)?;
                graph.constants.insert(name.clone(), constant);
            }
            _ => {
                let mut attributes = layer.attributes(self.source, xml)?;
                for body in xml.children().filter(|child| child.tag_name().name().ends_with("body")) {
                    if depth == MAX_DEPTH {
                        let expected = format!("with bodies at most {MAX_DEPTH} deep");
                        return Err(self.source.malformed(layer.place(), expected, "deeper ones"));
                    }
                    let inner = self.graph(body, depth + 1)?;
                    attributes.insert(body.tag_name().name().to_owned(), Attribute::Graphs(vec![inner]));
                }
                graph.nodes.push(Node {
                    name: layer.name.clone(),
                    op: layer.kind.clone(),
                    domain: crate::model::OPENVINO_DOMAIN.to_owned(),
                    inputs,
                    outputs,
                    attributes,
                });
            }
        }
        Ok(())
    }
}
