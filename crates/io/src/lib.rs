//! The files outstride reads. Nothing here computes: a file becomes typed values, or an error that says which file,
//! which place in it, what was expected there and what was found.
//!
//! * [`Model`]: ONNX models, OpenVINO IR, oneDNN graphs and logs, as graphs of named values; weights stay in the file.
//! * [`TensorFile`]: npy, npz, safetensors and TensorProto files.
//! * [`conformance`]: cases with the results of real implementations.
//! * [`layers`]: shapes to measure, from layers files and oneDNN's problem strings.
//! * [`attributes`]: loosely typed attributes from and to JSON.
//! * [`AnyTensor`]: a tensor whose element type is known only once the file has been read.
//!
//! Files come from strangers: no input panics, and memory stays proportional to the file. Large files are not mapped into
//! memory, which safe Rust cannot do soundly while others may write to them; ranges of bytes are read when they are asked
//! for, so that gigabytes of weights cost nothing until one of them is loaded.

#![forbid(unsafe_code)]

pub mod attributes;
pub mod conformance;
pub mod layers;
pub mod model;
pub mod onednn;
pub mod onnx;
pub mod openvino;

mod error;
mod node;
mod source;
mod tensor;
mod tensors;

pub use error::FileError;
pub use model::{Model, TensorSource};
pub use source::Source;
pub use tensors::{TensorFile, write_tensors};

pub use tensor::{AnyTensor, Number, Storable, Values};
