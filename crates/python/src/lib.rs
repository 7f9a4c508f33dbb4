//! The native module of the Python package `outstride`: a thin adapter from Python's arrays and words to the library.
//!
//! ```text
//! array       memory that Python owns, read and written in place: NumPy arrays, DLPack tensors
//! attributes  Python values as a dialect's attributes
//! operator    the library's operator with its element type erased
//! class       the class ConvTranspose
//! recipe      the words an operator was made with, and what they mean
//! pickling    an operator as bytes, and back
//! threads     thread pools that survive a fork, and PyTorch's own threads
//! error       the library's errors as exceptions
//! ```

mod array;
mod attributes;
mod class;
mod error;
mod operator;
mod pickling;
mod recipe;
mod threads;

/// What the package's Python sources are built on; private to them.
#[pyo3::pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use crate::class::{ConvTranspose, run_beside_torch, time_runs};
    #[pymodule_export]
    use crate::error::{InvalidError, UnsupportedError};
    #[pymodule_export]
    use crate::pickling::restore;
    #[pymodule_export]
    use crate::threads::finds_torch_threads;
}
