//! GraphProto, NodeProto, AttributeProto and what is said about values.

use std::ops::Range;

use super::wire::{Reader, Value};
use super::{MAX_DEPTH, tensor};
use crate::error::FileError;
use crate::model::{Attribute, Dim, Graph, Node, ValueType};

pub(super) fn graph(reader: &mut Reader, mut rest: Range<u64>, depth: usize) -> Result<Graph, FileError> {
    if depth > MAX_DEPTH {
        let place = format!("the graph at byte {}", rest.start);
        return Err(reader.source.malformed(place, format!("at most {MAX_DEPTH} deep in others"), "deeper"));
    }
    let mut graph = Graph::default();
    while let Some((number, value)) = reader.field(&mut rest)? {
        match number {
            1 => {
                let message = reader.bytes(&value)?;
                graph.nodes.push(node(reader, message, depth)?);
            }
            2 => graph.name = reader.text(&value)?,
            5 => {
                let message = reader.bytes(&value)?;
                let tensor = tensor::header(reader, message)?;
                graph.constants.insert(tensor.name.clone(), tensor);
            }
            11..=13 => {
                let message = reader.bytes(&value)?;
                let (name, value_type) = value_info(reader, message)?;
                match number {
                    11 => graph.inputs.push(name.clone()),
                    12 => graph.outputs.push(name.clone()),
                    _ => {}
                }
                graph.types.insert(name, value_type);
            }
            _ => {}
        }
    }
    // Before version 4 of the format every initializer had to be an input as well.
    let constants = &graph.constants;
    graph.inputs.retain(|name| !constants.contains_key(name));
    name_nodes(&mut graph.nodes);
    Ok(graph)
}

/// Gives nodes without a name that of their first output.
pub(super) fn name_nodes(nodes: &mut [Node]) {
    for node in nodes.iter_mut().filter(|node| node.name.is_empty()) {
        node.name = node.outputs.first().cloned().unwrap_or_default();
    }
}

pub(super) fn node(reader: &mut Reader, mut rest: Range<u64>, depth: usize) -> Result<Node, FileError> {
    let mut node = Node::default();
    while let Some((number, value)) = reader.field(&mut rest)? {
        match number {
            1 => node.inputs.push(reader.text(&value)?),
            2 => node.outputs.push(reader.text(&value)?),
            3 => node.name = reader.text(&value)?,
            4 => node.op = reader.text(&value)?,
            5 => {
                let message = reader.bytes(&value)?;
                let (name, value) = attribute(reader, message, depth)?;
                node.attributes.insert(name, value);
            }
            7 => node.domain = reader.text(&value)?,
            _ => {}
        }
    }
    Ok(node)
}

pub(super) fn attribute(
    reader: &mut Reader,
    mut rest: Range<u64>,
    depth: usize,
) -> Result<(String, Attribute), FileError> {
    let mut name = String::new();
    let mut found = Parts::default();
    while let Some((number, value)) = reader.field(&mut rest)? {
        match number {
            1 => name = reader.text(&value)?,
            20 => found.kind = reader.int(&value)?,
            21 => found.reference = reader.text(&value)?,
            _ => found.add(reader, number, &value, depth)?,
        }
    }
    Ok((name, found.attribute()))
}

/// What an attribute's message holds; its kind says which of it counts.
#[derive(Default)]
struct Parts {
    kind: i64,
    reference: String,
    int: i64,
    float: f32,
    text: String,
    ints: Vec<i64>,
    floats: Vec<f32>,
    texts: Vec<String>,
    tensor: Option<crate::model::TensorSource>,
    graphs: Vec<Graph>,
    /// Whether a text is none: some operators keep blocks of bytes there.
    binary: bool,
    /// The kind that the fields present would have, for files that do not say it.
    implied: i64,
}

impl Parts {
    fn add(
        &mut self,
        reader: &mut Reader,
        number: u64,
        value: &Value,
        depth: usize,
    ) -> Result<(), FileError> {
        match number {
            2 => self.float = reader.float(value)?,
            3 => self.int = reader.int(value)?,
            4 => match reader.short_text(value)? {
                Some(text) => self.text = text,
                None => self.binary = true,
            },
            5 => {
                let message = reader.bytes(value)?;
                self.tensor = Some(tensor::header(reader, message)?);
            }
            6 | 11 => {
                let message = reader.bytes(value)?;
                self.graphs.push(graph(reader, message, depth + 1)?);
            }
            7 => reader.floats(value, &mut self.floats)?,
            8 => reader.ints(value, &mut self.ints)?,
            9 => match reader.short_text(value)? {
                Some(text) => self.texts.push(text),
                None => self.binary = true,
            },
            _ => return Ok(()),
        }
        // The fields are numbered one ahead of the kinds.
        self.implied = number as i64 - 1;
        Ok(())
    }

    fn attribute(self) -> Attribute {
        if !self.reference.is_empty() {
            return Attribute::Reference(self.reference);
        }
        let kind = if self.kind == 0 { self.implied } else { self.kind };
        match (kind, self.tensor) {
            (1, _) => Attribute::Float(self.float),
            (2, _) => Attribute::Int(self.int),
            (3 | 8, _) if self.binary => Attribute::Other("bytes that are no text"),
            (3, _) => Attribute::Text(self.text),
            (4, Some(tensor)) => Attribute::Tensor(tensor),
            (5 | 10, _) => Attribute::Graphs(self.graphs),
            (6, _) => Attribute::Floats(self.floats),
            (7, _) => Attribute::Ints(self.ints),
            (8, _) => Attribute::Texts(self.texts),
            _ => Attribute::Other("an attribute of another kind"),
        }
    }
}

pub(super) fn value_info(
    reader: &mut Reader,
    mut rest: Range<u64>,
) -> Result<(String, ValueType), FileError> {
    let mut name = String::new();
    let mut value_type = ValueType::default();
    while let Some((number, value)) = reader.field(&mut rest)? {
        match number {
            1 => name = reader.text(&value)?,
            2 => {
                let mut kinds = reader.bytes(&value)?;
                while let Some((kind, value)) = reader.field(&mut kinds)? {
                    // The other kinds, sequences and such, are no tensors.
                    if kind == 1 {
                        let message = reader.bytes(&value)?;
                        value_type = tensor_type(reader, message)?;
                    }
                }
            }
            _ => {}
        }
    }
    Ok((name, value_type))
}

fn tensor_type(reader: &mut Reader, mut rest: Range<u64>) -> Result<ValueType, FileError> {
    let mut value_type = ValueType::default();
    while let Some((number, value)) = reader.field(&mut rest)? {
        match number {
            1 => value_type.dtype = tensor::dtype(reader.int(&value)?),
            2 => {
                let mut dims = Vec::new();
                let mut shape = reader.bytes(&value)?;
                while let Some((number, value)) = reader.field(&mut shape)? {
                    if number == 1 {
                        let message = reader.bytes(&value)?;
                        dims.push(dim(reader, message)?);
                    }
                }
                value_type.shape = Some(dims);
            }
            _ => {}
        }
    }
    Ok(value_type)
}

fn dim(reader: &mut Reader, mut rest: Range<u64>) -> Result<Dim, FileError> {
    let mut dim = Dim::Unknown;
    while let Some((number, value)) = reader.field(&mut rest)? {
        match number {
            // Some writers say −1 for a size they do not know.
            1 => dim = usize::try_from(reader.int(&value)?).map_or(Dim::Unknown, Dim::Known),
            2 => {
                let name = reader.text(&value)?;
                dim = if name.is_empty() { Dim::Unknown } else { Dim::Symbol(name) };
            }
            _ => {}
        }
    }
    Ok(dim)
}
