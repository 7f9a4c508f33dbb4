//! The files outstride reads. Nothing here computes: a file becomes typed values, or an error that says which file,
//! which place in it, what was expected there and what was found.
//!
//! * [`conformance`]: cases with the results of real implementations.
//! * [`layers`]: shapes to measure, from layers files and oneDNN's problem strings.
//! * [`attributes`]: loosely typed attributes from and to JSON.
//! * [`AnyTensor`]: a tensor whose element type is known only once the file has been read.
//!
//! Files come from strangers: no input panics, and memory stays proportional to the file.

#![forbid(unsafe_code)]

pub mod attributes;
pub mod conformance;
pub mod layers;

mod node;
mod tensor;

pub use tensor::{AnyTensor, Number, Storable, Values};
