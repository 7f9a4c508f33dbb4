//! NumPy arrays.

use numpy::npyffi::NPY_ARRAY_WRITEABLE;
use numpy::{PyArrayDescr, PyArrayDescrMethods as _, PyUntypedArray, PyUntypedArrayMethods as _};
use outstride::DType;
use pyo3::prelude::*;

use super::{Borrowed, Kind, Memory};
use crate::error::invalid;

/// The object as an array, if it is one.
pub(super) fn array<'py>(object: &Bound<'py, PyAny>) -> Option<Bound<'py, PyUntypedArray>> {
    object.cast::<PyUntypedArray>().ok().cloned()
}

pub(super) fn borrow<'py>(name: &str, array: &Bound<'py, PyUntypedArray>) -> PyResult<Borrowed<'py>> {
    let dtype = dtype(name, &array.dtype())?;
    let size = dtype.size() as isize;
    let shape = array.shape().to_vec();
    let strides = array.strides().iter().zip(&shape).map(|(&bytes, &axis)| match bytes % size {
        0 => Ok(bytes / size),
        // It is never stepped over.
        _ if axis <= 1 => Ok(0),
        _ => Err(invalid(format!(
            "`{name}` has a stride of {bytes} bytes, which is no multiple of its {size} byte elements; copy it"
        ))),
    });
    let strides = strides.collect::<PyResult<_>>()?;
    let object = array.as_array_ptr();
    // SAFETY: a live array; nobody changes these fields while this thread is attached to the interpreter.
    let (first, flags) = unsafe { ((*object).fields.data.cast::<u8>(), (*object).fields.flags) };
    Ok(Borrowed {
        memory: Memory::new(name, dtype, shape, strides, first)?,
        read_only: flags & NPY_ARRAY_WRITEABLE == 0,
        kind: Kind::Numpy,
        _owner: array.clone().into_any(),
    })
}

fn dtype(name: &str, descr: &Bound<'_, PyArrayDescr>) -> PyResult<DType> {
    let known = match (descr.kind(), descr.itemsize()) {
        (b'f', 2) => Some(DType::F16),
        (b'f', 4) => Some(DType::F32),
        (b'f', 8) => Some(DType::F64),
        (b'i', 1) => Some(DType::I8),
        (b'i', 2) => Some(DType::I16),
        (b'i', 4) => Some(DType::I32),
        (b'i', 8) => Some(DType::I64),
        (b'u', 1) => Some(DType::U8),
        (b'u', 2) => Some(DType::U16),
        (b'u', 4) => Some(DType::U32),
        (b'u', 8) => Some(DType::U64),
        (b'b', 1) => Some(DType::Bool),
        // NumPy has no type of its own for it; the package ml_dtypes brings one.
        (_, 2) if descr.getattr("name")?.eq("bfloat16")? => Some(DType::Bf16),
        _ => None,
    };
    match known {
        Some(dtype) if descr.is_native_byteorder() != Some(false) => Ok(dtype),
        Some(_) => Err(invalid(format!(
            "`{name}` has its bytes in another order than this machine; {name}.astype({name}.dtype.newbyteorder(\"=\")) \
             has them in this one"
        ))),
        None => Err(invalid(format!(
            "`{name}` has elements of type {descr}, which nothing is computed in; use one of {}",
            names(DType::NUMERIC)
        ))),
    }
}

/// The types in NumPy's words, for messages.
pub(super) fn names(types: &[DType]) -> String {
    types.iter().map(|&dtype| type_name(dtype)).collect::<Vec<_>>().join(", ")
}

/// What NumPy calls a type.
pub(super) fn type_name(dtype: DType) -> &'static str {
    match dtype {
        DType::F16 => "float16",
        DType::Bf16 => "bfloat16",
        DType::F32 => "float32",
        DType::F64 => "float64",
        DType::I8 => "int8",
        DType::I16 => "int16",
        DType::I32 => "int32",
        DType::I64 => "int64",
        DType::U8 => "uint8",
        DType::U16 => "uint16",
        DType::U32 => "uint32",
        DType::U64 => "uint64",
        DType::Bool => "bool",
    }
}
