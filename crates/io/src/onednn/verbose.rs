//! Lines of `ONEDNN_VERBOSE` output, as people paste them.
//!
//! ```text
//! onednn_verbose,v1,primitive,exec,cpu,jit:avx512_core,deconvolution,forward_training,src_f32::blocked:acdb::f0 …,
//!     attr-scratchpad:user,alg:deconvolution_direct,mb1_ic16oc8_ih8oh16kh4sh2dh0ph1_iw8ow16kw4sw2dw0pw1,0.05
//! ```

use std::collections::HashSet;

use outstride_spec::DType;

use crate::error::FileError;
use crate::layers::Layer;
use crate::source::Source;

/// The layers of a text, each once in every type: logs repeat a layer for every call.
pub(super) fn layers(source: &Source, text: &str) -> Result<Vec<(Layer, DType)>, FileError> {
    let mut layers: Vec<(Layer, DType)> = Vec::new();
    let mut known = HashSet::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        let found = if line.contains("verbose") || line.contains(',') {
            logged(line)
        } else if line.is_empty() || line.starts_with('#') {
            None
        } else {
            Some((line.parse(), DType::F32))
        };
        let Some((layer, dtype)) = found else { continue };
        let layer = layer.map_err(|error| {
            source.malformed(
                format!("line {}", index + 1),
                "a problem string or a line of a verbose log",
                error,
            )
        })?;
        if known.insert((layer.clone(), dtype)) {
            layers.push((layer, dtype));
        }
    }
    if layers.is_empty() {
        let expected = "problem strings, or a verbose log with a forward deconvolution";
        return Err(source.malformed("the file", expected, "neither"));
    }
    Ok(layers)
}

type Parsed = Result<Layer, crate::layers::LayerError>;

/// The layer of a log's line, where it is of a forward deconvolution.
fn logged(line: &str) -> Option<(Parsed, DType)> {
    let fields: Vec<&str> = line.split(',').collect();
    let kind = fields.iter().position(|&field| field == "deconvolution")?;
    if !fields.get(kind + 1)?.starts_with("forward") {
        return None;
    }
    let problem = fields[kind..]
        .iter()
        .find(|field| field.contains("ic") && field.contains("oc") && is_problem(field))?;
    Some((problem.parse(), dtype(&fields[kind..])))
}

fn is_problem(field: &str) -> bool {
    let after = field.strip_prefix("mb").or_else(|| field.strip_prefix('g'));
    after.is_some_and(|after| after.starts_with(|first: char| first.is_ascii_digit()))
}

/// The type of the data, from a field such as `src_f32::blocked:abcd::f0 wei_f32…` or `src:f32::…`.
fn dtype(fields: &[&str]) -> DType {
    let data =
        fields.iter().find_map(|field| field.strip_prefix("src_").or_else(|| field.strip_prefix("src:")));
    let name = data.and_then(|data| data.split(':').find(|part| !part.is_empty() && *part != "a"));
    let name =
        name.map(|name| name.strip_prefix('s').map_or_else(|| name.to_owned(), |bits| format!("i{bits}")));
    name.and_then(|name| name.parse().ok()).unwrap_or(DType::F32)
}
