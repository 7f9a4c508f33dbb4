//! Where a result goes, and what the caller gets.

use outstride::DType;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyTuple;

use super::dlpack::Export;
use super::numpy::type_name;
use super::{Borrowed, Kind};

/// Memory for a result.
pub(crate) struct Output<'py> {
    pub(crate) borrowed: Borrowed<'py>,
    result: Made<'py>,
}

/// What the caller gets.
enum Made<'py> {
    /// This array itself.
    Array(Bound<'py, PyAny>),
    /// What the library of `like` makes of the tensor.
    Export { tensor: Bound<'py, Export>, like: Bound<'py, PyAny> },
}

impl<'py> Output<'py> {
    /// The caller's own.
    pub(crate) fn given(out: &Bound<'py, PyAny>) -> PyResult<Self> {
        Ok(Output { borrowed: Borrowed::for_writing("out", out)?, result: Made::Array(out.clone()) })
    }

    /// New memory of this shape for a result of the same kind as the input `x`.
    pub(crate) fn like(object: &Bound<'py, PyAny>, x: &Borrowed<'py>, shape: &[usize]) -> PyResult<Self> {
        let py = object.py();
        if x.kind == Kind::Numpy {
            return Self::given(&empty(py, shape, &object.getattr(pyo3::intern!(py, "dtype"))?)?);
        }
        // NumPy has no bfloat16, but memory has no type.
        let dtype = x.dtype();
        let stored = if dtype == DType::Bf16 { DType::U16 } else { dtype };
        let storage = empty(py, shape, type_name(stored).into_pyobject(py)?.as_any())?;
        let mut borrowed = Borrowed::for_writing("out", &storage)?;
        borrowed.memory = borrowed.memory.reinterpreted(dtype);
        let tensor = Export::new(dtype, shape.to_vec(), borrowed.memory.lowest(), storage.unbind());
        let result = Made::Export { tensor: Bound::new(py, tensor)?, like: object.clone() };
        Ok(Output { borrowed, result })
    }

    /// What the caller gets. Only now, with the values in place: a library may copy what it takes.
    pub(crate) fn into_result(self) -> PyResult<Bound<'py, PyAny>> {
        match self.result {
            Made::Array(array) => Ok(array),
            Made::Export { tensor, like } => match from_dlpack(&like)? {
                Some(from_dlpack) => from_dlpack.call1((tensor,)),
                // A library that takes no tensors from others gets one that others can take.
                None => Ok(tensor.into_any()),
            },
        }
    }
}

/// `numpy.empty`
fn empty<'py>(py: Python<'py>, shape: &[usize], dtype: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    static EMPTY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    EMPTY.import(py, "numpy", "empty")?.call1((PyTuple::new(py, shape)?, dtype))
}

/// The function by which the library of a tensor takes tensors of others: that of its array namespace, or that of the
/// package its type is from.
fn from_dlpack<'py>(tensor: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let py = tensor.py();
    let library = match tensor.getattr_opt(pyo3::intern!(py, "__array_namespace__"))? {
        Some(namespace) => namespace.call0()?,
        None => {
            let module: String = tensor.get_type().module()?.extract()?;
            let package = module.split('.').next().unwrap_or_default();
            let modules = py.import(pyo3::intern!(py, "sys"))?.getattr(pyo3::intern!(py, "modules"))?;
            match modules.get_item(package) {
                Ok(package) => package,
                Err(_) => return Ok(None),
            }
        }
    };
    library.getattr_opt(pyo3::intern!(py, "from_dlpack"))
}
