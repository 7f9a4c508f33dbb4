//! A graph in JSON, as oneDNN's benchmark reads it and the library dumps it.

use std::collections::{BTreeMap, BTreeSet};

use outstride_spec::DType;
use serde_json::Value;

use crate::error::FileError;
use crate::model::{Attribute, Dim, Format, Graph, Model, Node, ONEDNN_DOMAIN, ValueType};
use crate::node::{FieldError, Node as Json};
use crate::source::Source;

pub(super) fn read(source: &Source, document: &Value) -> Result<Model, FileError> {
    let malformed = |FieldError { field, problem }| {
        let place = if field.is_empty() { "the file".to_owned() } else { format!("`{field}`") };
        FileError::Malformed { file: source.path().to_owned(), place, problem }
    };
    let root = Json::root(document);
    let graph = graph(&root).map_err(malformed)?;
    let version = root.optional("version").map_err(malformed)?;
    let producer = version.and_then(|version| version.text().ok().map(|version| format!("oneDNN {version}")));
    Ok(Model { format: Format::OnednnGraph, producer, opsets: BTreeMap::new(), graph })
}

fn graph(root: &Json<'_>) -> Result<Graph, FieldError> {
    let mut graph = Graph { name: "graph".into(), ..Graph::default() };
    let mut produced = BTreeSet::new();
    let mut consumed = BTreeSet::new();
    for op in root.required("graph")?.items()? {
        let inputs = tensors(&op, "inputs", &mut graph.types)?;
        let outputs = tensors(&op, "outputs", &mut graph.types)?;
        produced.extend(outputs.iter().cloned());
        consumed.extend(inputs.iter().cloned());
        let name = match op.optional("name")? {
            Some(name) => name.text()?.to_owned(),
            None => format!("op{}", op.required("id")?.integer()?),
        };
        let mut node = Node {
            name,
            op: op.required("kind")?.text()?.to_owned(),
            domain: ONEDNN_DOMAIN.into(),
            inputs,
            outputs,
            attributes: BTreeMap::new(),
        };
        if let Some(attributes) = op.optional("attrs")? {
            for (name, attribute) in attributes.fields()? {
                let value = attribute_value(&attribute.required("value")?)?;
                node.attributes.insert(name.to_owned(), value);
            }
        }
        drop_trailing_zeros(&mut node);
        graph.nodes.push(node);
    }
    graph.inputs = consumed.difference(&produced).cloned().collect();
    graph.outputs = produced.difference(&consumed).cloned().collect();
    Ok(graph)
}

/// The names of an operator's tensors, which are their ids; what is said about them goes to `types`.
fn tensors(
    op: &Json<'_>,
    side: &str,
    types: &mut BTreeMap<String, ValueType>,
) -> Result<Vec<String>, FieldError> {
    let Some(list) = op.optional(side)? else { return Ok(Vec::new()) };
    let mut names = Vec::new();
    for tensor in list.items()? {
        let name = tensor.required("id")?.integer()?.to_string();
        let dtype: Option<DType> = match tensor.optional("dtype")? {
            Some(dtype) => types_name(dtype.text()?),
            None => None,
        };
        let shape = match tensor.optional("shape")? {
            Some(shape) if shape.value.is_array() => {
                // −1 and other negative numbers stand for what is not known yet.
                let size =
                    |size: Json<'_>| Ok(usize::try_from(size.integer()?).map_or(Dim::Unknown, Dim::Known));
                Some(shape.items()?.map(size).collect::<Result<_, _>>()?)
            }
            _ => None,
        };
        types.insert(name.clone(), ValueType { dtype, shape });
        names.push(name);
    }
    Ok(names)
}

/// oneDNN calls signed integers `s8`.
fn types_name(name: &str) -> Option<DType> {
    name.strip_prefix('s').map_or_else(|| name.to_owned(), |bits| format!("i{bits}")).parse().ok()
}

fn attribute_value(value: &Json<'_>) -> Result<Attribute, FieldError> {
    Ok(match value.value {
        Value::String(text) => Attribute::Text(text.clone()),
        Value::Number(number) => match number.as_i64() {
            Some(int) => Attribute::Int(int),
            None => Attribute::Float(number.as_f64().unwrap_or(f64::NAN) as f32),
        },
        Value::Bool(flag) => Attribute::Int(i64::from(*flag)),
        Value::Array(items) if items.iter().all(Value::is_i64) => {
            Attribute::Ints(items.iter().filter_map(Value::as_i64).collect())
        }
        Value::Array(items) if items.iter().all(Value::is_number) => {
            Attribute::Floats(items.iter().filter_map(Value::as_f64).map(|float| float as f32).collect())
        }
        _ => return Err(value.error("a number, a text or a list of numbers")),
    })
}

/// The library dumps its default for `output_padding`, twelve zeros, whatever the number of axes.
fn drop_trailing_zeros(node: &mut Node) {
    let axes = match node.attributes.get("strides") {
        Some(Attribute::Ints(strides)) => strides.len(),
        _ => return,
    };
    if let Some(Attribute::Ints(padding)) = node.attributes.get_mut("output_padding")
        && padding.iter().skip(axes).all(|&extra| extra == 0)
    {
        padding.truncate(axes);
    }
}
