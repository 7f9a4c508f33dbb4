//! What a transposed convolution *means*.
//!
//! Eight dialects spell the operator; each is a plain struct with the dialect's own attribute names, and resolves
//! a call to one dialect-free [`Geometry`]:
//!
//! ```
//! use outstride_spec::{DType, Dialect, Operands, Policy, TensorType, onnx};
//!
//! let attributes = onnx::ConvTranspose { strides: vec![2, 2], pads: vec![1, 1, 1, 1], ..Default::default() };
//! let operands = Operands::new(
//!     TensorType::new(DType::F32, &[1, 16, 28, 28]),
//!     TensorType::new(DType::F32, &[16, 8, 4, 4]),
//! );
//! let call = attributes.resolve(&operands, Policy::Spec)?;
//! assert_eq!(call.output_shape(), [1, 8, 56, 56]);
//! # Ok::<(), outstride_spec::SpecError>(())
//! ```
//!
//! Nothing here computes: this crate holds sizes, layouts, element types and the reasons for refusing a request.

#![forbid(unsafe_code)]

mod activation;
mod attributes;
mod dialect;
mod dtype;
mod error;
mod geometry;
mod layout;
pub mod neutral;
mod phase;

pub use activation::Activation;
pub use attributes::{AttributeValue, Attributes};
pub use dialect::{
    Call, Dialect, DialectName, FilterCall, IntegerOverflow, Operands, PadRule, Policy, Request, Split,
    TensorType, UnknownDialect, jax, onednn_graph, onnx, openvino, ort_nhwc, tensorflow, torch,
};
pub use dtype::{DType, ParseDTypeError};
pub use error::SpecError;
pub use geometry::{Axis, Geometry};
pub use layout::{DataLayout, FilterLayout};
pub use phase::{Phase, Tap};
