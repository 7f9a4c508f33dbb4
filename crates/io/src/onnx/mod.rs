//! ONNX models and tensors: protobuf messages, read in passing so that weights stay in their files.

mod external;
mod graph;
mod model;
mod tensor;
mod wire;
mod write;

use std::ops::Range;

use outstride_spec::DType;

use crate::error::FileError;
use crate::model::{Model, TensorSource};
use crate::source::Source;
use crate::tensor::AnyTensor;

pub(crate) use external::open as open_external;
pub use write::{LayerModel, layer_model, tensor_bytes};

/// Graphs in graphs: deeper is no model.
const MAX_DEPTH: usize = 32;

pub(crate) fn read_model(source: Source) -> Result<Model, FileError> {
    model::read(source)
}

/// The element type that a number stands for in ONNX, where it is one that is known here.
///
/// ```
/// assert_eq!(outstride_io::onnx::element_type(10), Some(outstride_spec::DType::F16));
/// ```
pub fn element_type(number: i64) -> Option<DType> {
    tensor::dtype(number)
}

/// A file that is one TensorProto, as ONNX's tests have them.
pub(crate) fn read_tensor(source: Source) -> Result<TensorSource, FileError> {
    let whole = 0..source.length();
    tensor::header(&mut wire::Reader::new(source), whole)
}

/// The values of a tensor whose message is at a place of a file.
pub(crate) fn load_inline(
    source: &Source,
    message: Range<u64>,
    tensor: &TensorSource,
    dtype: DType,
) -> Result<AnyTensor, FileError> {
    tensor::load(&mut wire::Reader::new(source.clone()), message, tensor, dtype)
}
