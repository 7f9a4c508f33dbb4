//! Why a call was refused.

use outstride_spec::{DType, SpecError};

use crate::tensor::ViewError;

/// Why preparing or running an operator was refused. Nothing has been computed when one of these comes back.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages say what each field is.
pub enum Error {
    /// The request breaks a rule of its specification.
    #[error(transparent)]
    Spec(#[from] SpecError),

    /// A shape, strides and memory do not fit together.
    #[error(transparent)]
    View(#[from] ViewError),

    #[error("the output tensor has shape {found:?}, but this call yields {expected:?}")]
    OutputShape { expected: Vec<usize>, found: Vec<usize> },

    #[error("{tensor} has shape {found:?}, expected {expected:?} in canonical order")]
    CanonicalShape { tensor: &'static str, expected: Vec<usize>, found: Vec<usize> },

    #[error("the bias has {found} values, expected {expected}, one per output channel")]
    BiasLength { expected: usize, found: usize },

    #[error("there are {found} scales of the weights, expected 1, or {expected}, one per output channel")]
    ScaleCount { expected: usize, found: usize },

    #[error("{what} has the scale {found}, expected a finite number above zero")]
    Scale { what: String, found: f32 },

    #[error("{what} has the zero point {found}, which is no {dtype}; expected a value of that type")]
    ZeroPoint { what: &'static str, found: i32, dtype: DType },

    #[error("{tensor} has element type {found}, but the operator was prepared for {expected}")]
    DType { tensor: &'static str, expected: DType, found: DType },

    #[error(
        "{what} needs {needed} bytes, above the limit of {limit}; raise `Limits::max_bytes` if that is intended"
    )]
    TooManyBytes { what: &'static str, needed: u128, limit: u64 },

    #[error(
        "the call needs {needed} multiply-adds, above the limit of {limit}; \
         raise `Limits::max_multiply_adds` if that is intended"
    )]
    TooMuchWork { needed: u128, limit: u128 },

    #[error("the system has no {bytes} bytes for {what}")]
    OutOfMemory { what: &'static str, bytes: usize },
}

impl Error {
    /// Whether the request is wrong by its specification, as opposed to valid but refused here (a limit, memory).
    pub fn is_invalid(&self) -> bool {
        !matches!(self, Error::TooManyBytes { .. } | Error::TooMuchWork { .. } | Error::OutOfMemory { .. })
    }
}
