//! From a layers file to layers.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use serde_json::Value;

use super::{Layer, LayerError};
use crate::node::{FieldError, Node};

/// The largest file that is read: a layer takes a few hundred bytes.
const MAX_FILE_BYTES: u64 = 1 << 26;

pub(super) fn read(path: &Path) -> Result<Vec<Layer>, LayerError> {
    let io_error = |error| LayerError::Io { file: path.to_owned(), error };
    let mut text = Vec::new();
    let file = File::open(path).map_err(io_error)?;
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut text).map_err(io_error)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(LayerError::TooLarge { file: path.to_owned(), limit: MAX_FILE_BYTES });
    }
    parse(path, &text)
}

pub(super) fn parse(path: &Path, text: &[u8]) -> Result<Vec<Layer>, LayerError> {
    let document: Value =
        serde_json::from_slice(text).map_err(|error| LayerError::Syntax { file: path.to_owned(), error })?;
    let items = Node::root(&document).list().map_err(|error| malformed(path, None, error))?;
    let mut layers: Vec<Layer> = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        // Fields are named from the layer, which is easier to find than `[17]`.
        let node = Node::root(item);
        let id = node.required("id").and_then(|id| id.text());
        let name = id.as_ref().map_or_else(|_| format!("number {index}"), |id| (*id).to_owned());
        let layer = layer(&node).map_err(|error| malformed(path, Some(name.clone()), error))?;
        if layers.iter().any(|other| other.id == layer.id) {
            let error = node.required("id").map(|id| id.error_with("unique", "it twice"));
            return Err(malformed(path, Some(name), error.unwrap_or_else(|error| error)));
        }
        layers.push(layer);
    }
    Ok(layers)
}

fn malformed(path: &Path, layer: Option<String>, error: FieldError) -> LayerError {
    let FieldError { field, problem } = error;
    let whole = if layer.is_some() { "it" } else { "the file" };
    let field = if field.is_empty() { whole.to_owned() } else { format!("`{field}`") };
    LayerError::Malformed { file: path.to_owned(), layer, field, problem }
}

fn layer(node: &Node<'_>) -> Result<Layer, FieldError> {
    let axes = node.required("d")?;
    let rank = size(&axes)?;
    if rank == 0 {
        return Err(axes.error("at least 1"));
    }
    let required = |name| list(&node.required(name)?, rank);
    let optional = |name, default: i64| match node.optional(name)? {
        Some(field) => list(&field, rank),
        None => Ok(vec![default; rank]),
    };
    let pads_begin = required("p")?;
    let pads_end = match node.optional("pe")? {
        Some(field) => list(&field, rank)?,
        None => pads_begin.clone(),
    };
    let layer = Layer {
        id: node.required("id")?.text()?.to_owned(),
        batch: size(&node.required("n")?)?,
        in_channels: size(&node.required("cin")?)?,
        out_channels: size(&node.required("cout")?)?,
        groups: node.optional("g")?.map_or(Ok(1), |groups| size(&groups))?,
        input: sizes(&node.required("in")?, rank)?,
        kernel: sizes(&node.required("k")?, rank)?,
        strides: required("s")?,
        dilations: optional("dil", 1)?,
        pads_begin,
        pads_end,
        output_padding: optional("op", 0)?,
        skip: match node.optional("skip")? {
            Some(peers) => {
                peers.items()?.map(|peer| Ok(peer.text()?.to_owned())).collect::<Result<_, _>>()?
            }
            None => Vec::new(),
        },
    };
    for (name, channels) in [("cin", layer.in_channels), ("cout", layer.out_channels)] {
        if layer.groups == 0 || channels % layer.groups != 0 {
            let expected = format!("a divisor of `{name}`, which is {channels}");
            return Err(node.required("g")?.error(expected));
        }
    }
    Ok(layer)
}

fn size(node: &Node<'_>) -> Result<usize, FieldError> {
    usize::try_from(node.integer()?).map_err(|_| node.error("at least 0"))
}

/// A list of one integer per axis.
fn list(node: &Node<'_>, rank: usize) -> Result<Vec<i64>, FieldError> {
    if node.list()?.len() != rank {
        return Err(node.error(format!("a list of {rank}, one per axis")));
    }
    node.items()?.map(|item| item.integer()).collect()
}

fn sizes(node: &Node<'_>, rank: usize) -> Result<Vec<usize>, FieldError> {
    list(node, rank)?;
    node.items()?.map(|item| size(&item)).collect()
}
