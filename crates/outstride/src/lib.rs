//! Transposed convolution (ConvTranspose, deconvolution, the data gradient of a convolution), done completely.
//!
//! Write the operator as your framework does, prepare it once, run it on inputs of any size:
//!
//! ```
//! use outstride::{ConvTranspose, Tensor, onnx};
//!
//! let weight = Tensor::from_vec(&[1, 1, 3], vec![1.0f32, 10.0, 100.0])?;
//! let attributes = onnx::ConvTranspose { strides: vec![2], ..Default::default() };
//! let op = ConvTranspose::new(&attributes, weight.view(), None)?;
//!
//! let x = Tensor::from_vec(&[1, 1, 3], vec![1.0, 2.0, 3.0])?;
//! let y = op.run(x.view())?;
//! assert_eq!(y.shape(), [1, 1, 7]);
//! assert_eq!(y.data(), [1.0, 10.0, 102.0, 20.0, 203.0, 30.0, 300.0]);
//! # Ok::<(), outstride::Error>(())
//! ```
//!
//! Where to go from here:
//!
//! * the dialects: [`onnx`], [`ort_nhwc`], [`onednn_graph`], [`openvino`], [`torch`], [`tensorflow`], [`jax`], and the
//!   [`Policy`] that decides where a text and its runtime disagree;
//! * [`ConvTranspose`], the prepared operator, and [`Limits`], what a call may cost;
//! * [`TensorView`], strided tensors: every layout runs in place;
//! * [`reference`](mod@reference), the definition of the operator that everything is tested against.

mod aligned;
mod element;
mod engine;
mod epilogue;
mod error;
mod exact;
mod integer;
mod limits;
mod op;
mod parallel;
mod prepared;
mod quantized;
pub mod reference;
mod signature;
mod tensor;

pub use element::{Element, Wide};
pub use engine::{Path, Plan};
pub use epilogue::Epilogue;
pub use error::Error;
pub use exact::ExactInteger;
pub use limits::Limits;
pub use op::{ConvTranspose, Options, Precision};
pub use parallel::{CurrentRayon, Executor, Sequential, Team};
pub use quantized::{Affine, Byte, Quantization, QuantizedConvTranspose, conv_transpose_quantized};
pub use tensor::{Tensor, TensorView, TensorViewMut, ViewError};

pub use half::{bf16, f16};
pub use outstride_kernels::{Isa, KernelName, Kernels, Real, best_kernels, kernel_names, kernels};
pub use outstride_spec::{
    Activation, AttributeValue, Attributes, Axis, Call, DType, DataLayout, Dialect, DialectName, FilterCall,
    FilterLayout, Geometry, IntegerOverflow, Operands, PadRule, Policy, Request, SpecError, Split,
    TensorType, jax, onednn_graph, onnx, openvino, ort_nhwc, tensorflow, torch,
};
