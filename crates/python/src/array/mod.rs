//! Tensors that Python owns, borrowed for one call and used in place.

mod dlpack;
mod memory;
mod numpy;
mod output;

use outstride::DType;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use crate::error::invalid;
pub(crate) use memory::Memory;
pub(crate) use output::Output;

/// A tensor whose memory stays valid as long as this exists.
pub(crate) struct Borrowed<'py> {
    pub(crate) memory: Memory,
    /// Where its owner says it must not be written.
    pub(crate) read_only: bool,
    /// What such tensors are in Python.
    pub(crate) kind: Kind,
    /// Keeps the memory alive: the array, or the capsule that DLPack handed out.
    _owner: Bound<'py, PyAny>,
}

/// How a tensor came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Numpy,
    Dlpack,
}

impl<'py> Borrowed<'py> {
    /// Borrows the argument called `name`.
    pub(crate) fn new(name: &'static str, object: &Bound<'py, PyAny>) -> PyResult<Self> {
        if let Some(array) = numpy::array(object) {
            return numpy::borrow(name, &array);
        }
        match dlpack::capsule(name, object)? {
            Some(capsule) => dlpack::borrow(name, capsule),
            None => Err(PyTypeError::new_err(format!(
                "`{name}` must be a NumPy array or have `__dlpack__`, got an object of type {}; \
                 numpy.asarray makes an array of it",
                object.get_type().name()?
            ))),
        }
    }

    /// Borrows an argument that will be written to.
    pub(crate) fn for_writing(name: &'static str, object: &Bound<'py, PyAny>) -> PyResult<Self> {
        let borrowed = Self::new(name, object)?;
        if borrowed.read_only {
            return Err(invalid(format!("`{name}` is read-only; pass one that may be written to")));
        }
        Ok(borrowed)
    }

    pub(crate) fn dtype(&self) -> DType {
        self.memory.dtype()
    }

    pub(crate) fn shape(&self) -> &[usize] {
        self.memory.shape()
    }
}
