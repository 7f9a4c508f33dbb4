//! From JSON to cases.

use std::collections::BTreeMap;
use std::path::Path;

use outstride_spec::DialectName;
use serde_json::Value;

use super::{Case, CaseError, CaseFile, Expected, Tolerance};
use crate::attributes;
use crate::node::{FieldError, Node};
use crate::tensor::AnyTensor;

const FORMAT: i64 = 1;

pub(super) fn case_file(path: &Path, text: &[u8]) -> Result<CaseFile, CaseError> {
    let document: Value =
        serde_json::from_slice(text).map_err(|source| CaseError::Syntax { file: path.to_owned(), source })?;
    let in_file = |error| malformed(path, None, error);
    let root = Node::root(&document);
    let (dialect, cases) = header(&root).map_err(in_file)?;
    let cases = cases.items().map_err(in_file)?.enumerate().map(|(index, node)| {
        // From here on fields are named from the case, which is easier to find than `cases[17]`.
        let node = Node::root(node.value);
        let id = node.required("id").and_then(|id| id.text());
        let name = id.as_ref().map_or_else(|_| format!("number {index}"), |id| (*id).to_owned());
        case(&node, dialect).map_err(|error| malformed(path, Some(name), error))
    });
    Ok(CaseFile { dialect, cases: cases.collect::<Result<_, _>>()? })
}

fn malformed(path: &Path, case: Option<String>, error: FieldError) -> CaseError {
    let FieldError { field, problem } = error;
    let whole = if case.is_some() { "it" } else { "the file" };
    let field = if field.is_empty() { whole.to_owned() } else { format!("`{field}`") };
    CaseError::Malformed { file: path.to_owned(), case, field, problem }
}

fn header<'a>(root: &Node<'a>) -> Result<(DialectName, Node<'a>), FieldError> {
    let format = root.required("format")?;
    if format.integer()? != FORMAT {
        return Err(format.error(FORMAT.to_string()));
    }
    Ok((root.required("dialect")?.name()?, root.required("cases")?))
}

fn case(node: &Node<'_>, file_dialect: DialectName) -> Result<Case, FieldError> {
    let dialect = match node.optional("dialect")? {
        Some(own) if own.name::<DialectName>()? != file_dialect => {
            return Err(own.error(format!("`{file_dialect}`, the dialect of the file")));
        }
        _ => file_dialect,
    };
    let version = match dialect {
        DialectName::Onnx => node.optional("opset")?,
        _ => node.optional("version")?,
    };
    let mut tensors = BTreeMap::new();
    for (name, tensor) in node.required("inputs")?.fields()? {
        tensors.insert(name.to_owned(), AnyTensor::read(&tensor)?);
    }
    Ok(Case {
        id: node.required("id")?.text()?.to_owned(),
        dialect,
        op: node.required("op")?.text()?.to_owned(),
        version: version.map(|version| version.integer()).transpose()?,
        attributes: attributes(&node.required("attributes")?)?,
        tensors,
        expected: expected(&node.required("expected")?)?,
        runtime: runtime(node)?,
        tolerance: tolerance(&node.required("tolerance")?)?,
    })
}

fn attributes(node: &Node<'_>) -> Result<outstride_spec::Attributes, FieldError> {
    // `null` is how the Python dialects write an argument that was left out.
    let present = node.fields()?.filter(|(_, value)| !value.value.is_null());
    let convert = |(name, value): (&str, Node<'_>)| match attributes::from_json(value.value) {
        Some(converted) => Ok((name.to_owned(), converted)),
        None => Err(value.error("a number, string, boolean or list of these")),
    };
    present.map(convert).collect()
}

fn expected(node: &Node<'_>) -> Result<Expected, FieldError> {
    match (node.optional("output")?, node.optional("error")?) {
        (Some(output), None) => Ok(Expected::Output(AnyTensor::read(&output)?)),
        (None, Some(kind)) => {
            let reason = node.optional("reason")?.map_or(Ok(""), |reason| reason.text())?;
            Ok(Expected::Error { kind: kind.text()?.to_owned(), reason: reason.to_owned() })
        }
        _ => Err(node.error("an object with either `output` or `error`")),
    }
}

/// The entry of the dialect's own runtime, where it is among those that differ.
fn runtime(case: &Node<'_>) -> Result<Option<Expected>, FieldError> {
    let Some(disagreement) = case.optional("disagreement")? else { return Ok(None) };
    let Some(runtime) = disagreement.optional("runtime")? else { return Ok(None) };
    let peers = disagreement.required("peers")?;
    let Some(entry) = peers.optional(runtime.text()?)? else {
        return Err(runtime.error("one of the implementations in `disagreement.peers`"));
    };
    expected(&entry).map(Some)
}

fn tolerance(node: &Node<'_>) -> Result<Tolerance, FieldError> {
    let part = |name| {
        let part = node.required(name)?;
        let value = part.value.as_f64().filter(|value| *value >= 0.0);
        value.ok_or_else(|| part.error("a number of at least 0"))
    };
    Ok(Tolerance { abs: part("abs")?, rel: part("rel")? })
}
