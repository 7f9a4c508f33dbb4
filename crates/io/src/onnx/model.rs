//! ModelProto and FunctionProto.

use std::collections::BTreeMap;
use std::ops::Range;

use super::graph;
use super::wire::Reader;
use crate::error::FileError;
use crate::model::{Format, Function, Graph, Model, inline};
use crate::source::Source;

pub(super) fn read(source: Source) -> Result<Model, FileError> {
    let mut reader = Reader::new(source);
    let reader = &mut reader;
    let mut rest = 0..reader.source.length();
    let (mut producer, mut version) = (String::new(), String::new());
    let mut opsets = BTreeMap::new();
    let mut main = None;
    let mut functions = Vec::new();
    while let Some((number, value)) = reader.field(&mut rest)? {
        match number {
            2 => producer = reader.text(&value)?,
            3 => version = reader.text(&value)?,
            7 => main = Some(reader.bytes(&value)?),
            8 => {
                let message = reader.bytes(&value)?;
                let (domain, version) = opset(reader, message)?;
                opsets.insert(domain, version);
            }
            25 => {
                let message = reader.bytes(&value)?;
                functions.push(function(reader, message)?);
            }
            _ => {}
        }
    }
    let Some(main) = main else {
        return Err(reader.source.malformed("the file", "an ONNX model with a graph", "none"));
    };
    let main = graph::graph(reader, main, 0)?;
    // A function may import operator sets of its own; the model's count where it has them too.
    for (_, imports) in &functions {
        for (domain, version) in imports {
            opsets.entry(domain.clone()).or_insert(*version);
        }
    }
    let functions: Vec<Function> = functions.into_iter().map(|(function, _)| function).collect();
    let producer = format!("{producer} {version}").trim().to_owned();
    Ok(Model {
        format: Format::Onnx,
        producer: Some(producer).filter(|producer| !producer.is_empty()),
        opsets,
        graph: inline(main, &functions, reader.source.path())?,
    })
}

fn opset(reader: &mut Reader, mut rest: Range<u64>) -> Result<(String, i64), FileError> {
    let (mut domain, mut version) = (String::new(), 0);
    while let Some((number, value)) = reader.field(&mut rest)? {
        match number {
            1 => domain = reader.text(&value)?,
            2 => version = reader.int(&value)?,
            _ => {}
        }
    }
    Ok((crate::model::domain_key(&domain).to_owned(), version))
}

type Imports = Vec<(String, i64)>;

fn function(reader: &mut Reader, mut rest: Range<u64>) -> Result<(Function, Imports), FileError> {
    let mut function = Function::default();
    let mut graph = Graph::default();
    let mut imports = Vec::new();
    while let Some((number, value)) = reader.field(&mut rest)? {
        match number {
            1 => function.name = reader.text(&value)?,
            4 => function.inputs.push(reader.text(&value)?),
            5 => function.outputs.push(reader.text(&value)?),
            7 => {
                let message = reader.bytes(&value)?;
                graph.nodes.push(graph::node(reader, message, 0)?);
            }
            9 => {
                let message = reader.bytes(&value)?;
                imports.push(opset(reader, message)?);
            }
            10 => function.domain = reader.text(&value)?,
            11 => {
                let message = reader.bytes(&value)?;
                let (name, value) = graph::attribute(reader, message, 0)?;
                function.defaults.insert(name, value);
            }
            12 => {
                let message = reader.bytes(&value)?;
                let (name, value_type) = graph::value_info(reader, message)?;
                graph.types.insert(name, value_type);
            }
            _ => {}
        }
    }
    graph::name_nodes(&mut graph.nodes);
    Ok((Function { graph, ..function }, imports))
}
