//! Files of tensors: `.npy`, `.npz`, `.safetensors`, and `.pb` files of one TensorProto.

mod npy;
mod npz;
mod safetensors;

use std::collections::BTreeMap;
use std::path::Path;

use crate::error::FileError;
use crate::model::TensorSource;
use crate::onnx;
use crate::source::Source;
use crate::tensor::AnyTensor;

/// The tensors of a file, by name. A file of one tensor gives it the name that it has, or none.
#[derive(Clone, Debug)]
pub struct TensorFile {
    source: Source,
    tensors: BTreeMap<String, TensorSource>,
}

impl TensorFile {
    /// Opens a file of tensors.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        Self::parse(Source::open(path)?)
    }

    /// Reads a file of tensors: what its first bytes do not tell, the ending of its name does.
    pub fn parse(source: Source) -> Result<Self, FileError> {
        let head = source.read(0..source.length().min(npy::MAGIC.len() as u64))?;
        let ending = source.path().extension().map(|ending| ending.to_string_lossy().into_owned());
        let tensors = match ending.as_deref() {
            _ if head == npy::MAGIC => BTreeMap::from([(String::new(), npy::read(&source)?)]),
            _ if head.starts_with(b"PK") => npz::read(&source)?,
            Some("safetensors") => safetensors::read(&source)?,
            Some("pb") => {
                let tensor = onnx::read_tensor(source.clone())?;
                BTreeMap::from([(tensor.name.clone(), tensor)])
            }
            _ => {
                let expected = "a file of tensors: .npy, .npz, .safetensors or .pb";
                return Err(source.malformed("the file", expected, format!("one that begins with {head:?}")));
            }
        };
        Ok(TensorFile { source, tensors })
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// The tensor of that name, or the only one there is.
    pub fn tensor(&self, name: &str) -> Result<&TensorSource, FileError> {
        if let Some(tensor) = self.tensors.get(name) {
            return Ok(tensor);
        }
        if let (Some(only), 1) = (self.tensors.values().next(), self.tensors.len()) {
            return Ok(only);
        }
        let names: Vec<&str> = self.names().take(16).collect();
        let found = if names.is_empty() { "no tensors".to_owned() } else { names.join(", ") };
        Err(self.source.malformed("the file", format!("one with a tensor `{name}`"), found))
    }
}

/// Writes tensors to a file, in the format that its ending names: `.npy` and `.pb` hold one, `.npz` and `.safetensors`
/// any number of them.
pub fn write_tensors(path: &Path, tensors: &[(&str, &AnyTensor)]) -> Result<(), FileError> {
    let ending = path.extension().map(|ending| ending.to_string_lossy().into_owned());
    let bytes = match (ending.as_deref(), tensors) {
        (Some("npy"), [(_, tensor)]) => npy::write(tensor),
        (Some("pb"), [(name, tensor)]) => onnx::tensor_bytes(name, tensor),
        (Some("npz"), _) => npz::write(path, tensors)?,
        (Some("safetensors"), _) => safetensors::write(tensors),
        (Some("npy" | "pb"), _) => {
            let what = format!("a file of this kind for {} tensors", tensors.len());
            return Err(FileError::unsupported(path, what, "write an .npz or .safetensors file"));
        }
        _ => {
            let instead = "name it .npy, .npz, .safetensors or .pb";
            return Err(FileError::unsupported(path, "writing tensors to a file of this name", instead));
        }
    };
    std::fs::write(path, bytes).map_err(|error| FileError::Write { file: path.to_owned(), error })
}
