//! Tensors in files beside the model. A model may name its own folder's files only: it comes from strangers.

use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use outstride_spec::DType;

use crate::error::FileError;
use crate::model::{External, TensorSource};
use crate::source::Source;

/// Opens the file, and says where in it the values are.
pub(crate) fn open(
    external: &External,
    tensor: &TensorSource,
    dtype: DType,
) -> Result<(Source, Range<u64>), FileError> {
    let path = inside(external, tensor.name())?;
    let source = Source::open(&path)?;
    let place = || format!("tensor `{}` at byte {}", tensor.name(), external.offset);
    let needed = tensor.byte_length(dtype);
    let length = external.length.or(needed);
    let end = length.and_then(|length| external.offset.checked_add(length));
    let Some(end) = end.filter(|&end| end <= source.length()) else {
        let expected = format!("within the {} bytes of the file", source.length());
        let found = length.map_or("more than can be counted".into(), |length| format!("{length} bytes"));
        return Err(source.malformed(place(), expected, found));
    };
    Ok((source, external.offset..end))
}

/// The file's path, where it is in the model's folder or below. Links that lead out of it are refused too.
fn inside(external: &External, tensor: &str) -> Result<PathBuf, FileError> {
    let refuse = |why: &str| {
        let place = format!("tensor `{tensor}`: external_data.location");
        let expected = "a file in the model's folder or below it";
        FileError::malformed(&external.model, place, expected, format!("`{}`, {why}", external.location))
    };
    let location = Path::new(&external.location);
    let plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    if external.location.is_empty() || !location.components().all(plain) {
        return Err(refuse("which leads elsewhere"));
    }
    let folder = match external.model.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let path = folder.join(location);
    let real = |path: &Path| path.canonicalize().map_err(|error| refuse(&error.to_string()));
    if !real(&path)?.starts_with(real(folder)?) {
        return Err(refuse("a link that leads elsewhere; copy the file here"));
    }
    Ok(path)
}
