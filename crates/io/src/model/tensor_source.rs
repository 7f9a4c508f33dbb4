//! A tensor that stays in its file until it is asked for.

use std::ops::Range;
use std::path::PathBuf;

use outstride_spec::DType;

use crate::error::FileError;
use crate::onnx;
use crate::source::Source;
use crate::tensor::{AnyTensor, element_count};

/// A tensor in a file: its type and shape, and where its values are.
#[derive(Clone, Debug)]
pub struct TensorSource {
    pub(crate) name: String,
    pub(crate) data_type: DataType,
    pub(crate) shape: Vec<usize>,
    pub(crate) data: Data,
}

/// An element type, or the name of one that is not read here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DataType {
    Known(DType),
    Other(&'static str),
}

#[derive(Clone, Debug)]
pub(crate) enum Data {
    /// In memory already, because it was a handful of numbers.
    Values(AnyTensor),
    /// Little-endian values at a place of a file.
    Raw(Source, Range<u64>),
    /// The TensorProto message at a place of a file.
    Proto(Source, Range<u64>),
    /// In a file of its own beside the model.
    External(External),
}

/// Where a model says that a tensor's values are.
#[derive(Clone, Debug)]
pub(crate) struct External {
    pub(crate) model: PathBuf,
    pub(crate) location: String,
    pub(crate) offset: u64,
    pub(crate) length: Option<u64>,
}

impl TensorSource {
    pub(crate) fn from_values(name: &str, values: AnyTensor) -> Self {
        TensorSource {
            name: name.to_owned(),
            data_type: DataType::Known(values.values().dtype()),
            shape: values.shape().to_vec(),
            data: Data::Values(values),
        }
    }

    /// The tensor's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The element type, where it is one that can be read here.
    pub fn dtype(&self) -> Option<DType> {
        if let DataType::Known(dtype) = self.data_type { Some(dtype) } else { None }
    }

    /// The size of each axis.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The name of the file that holds the values, where that is not the model itself.
    pub fn external_file(&self) -> Option<&str> {
        if let Data::External(external) = &self.data { Some(&external.location) } else { None }
    }

    /// Reads the values.
    pub fn load(&self) -> Result<AnyTensor, FileError> {
        let dtype = match (&self.data, self.data_type) {
            (Data::Values(values), _) => return Ok(values.clone()),
            (_, DataType::Known(dtype)) => dtype,
            (_, DataType::Other(name)) => {
                let what = format!("the element type {name} of tensor `{}`", self.name);
                let instead = "convert the model to one of f16, bf16, f32, f64, i8…i64, u8…u64, bool";
                return Err(FileError::unsupported(&self.file(), what, instead));
            }
        };
        match &self.data {
            Data::Values(values) => Ok(values.clone()),
            Data::Proto(source, range) => onnx::load_inline(source, range.clone(), self, dtype),
            Data::Raw(source, range) => self.load_raw(source, range.clone(), dtype),
            Data::External(external) => {
                let (source, range) = onnx::open_external(external, self, dtype)?;
                self.load_raw(&source, range, dtype)
            }
        }
    }

    /// How many bytes the values take, where they can be counted.
    pub(crate) fn byte_length(&self, dtype: DType) -> Option<u64> {
        element_count(&self.shape)?.checked_mul(dtype.size()).map(|bytes| bytes as u64)
    }

    fn load_raw(&self, source: &Source, range: Range<u64>, dtype: DType) -> Result<AnyTensor, FileError> {
        let place = || format!("tensor `{}`", self.name);
        let found = range.end.saturating_sub(range.start);
        if self.byte_length(dtype) != Some(found) {
            let expected = format!("{} of shape {:?} in as many bytes", dtype, self.shape);
            return Err(source.malformed(place(), expected, format!("{found} bytes")));
        }
        let bytes = source.read(range)?;
        let tensor = AnyTensor::from_le_bytes(dtype, self.shape.clone(), &bytes);
        tensor.ok_or_else(|| source.malformed(place(), format!("values of {dtype}"), "other bytes"))
    }

    fn file(&self) -> PathBuf {
        match &self.data {
            Data::Values(_) => PathBuf::new(),
            Data::Raw(source, _) | Data::Proto(source, _) => source.path().to_owned(),
            Data::External(external) => external.model.clone(),
        }
    }
}
