//! The library's errors as exceptions.

use outstride::Error;
use pyo3::exceptions::{PyNotImplementedError, PyValueError};
use pyo3::{PyErr, create_exception};

create_exception!(outstride, InvalidError, PyValueError, "The request is wrong by the rules of its dialect.");
create_exception!(
    outstride,
    UnsupportedError,
    PyNotImplementedError,
    "The request is valid, but beyond what is done here."
);

/// A refusal in the engine's words.
pub(crate) fn refused(error: &Error) -> PyErr {
    let message = error.to_string();
    if error.is_invalid() { InvalidError::new_err(message) } else { UnsupportedError::new_err(message) }
}

/// A refusal in the adapter's words.
pub(crate) fn invalid(message: impl Into<String>) -> PyErr {
    InvalidError::new_err(message.into())
}
