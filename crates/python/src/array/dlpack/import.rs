//! Reading what `__dlpack__` hands out.
//!
//! A capsule that is never marked as used stays its producer's: the tensor lives as long as the capsule, and goes with it.
//! That is all that borrowing for one call needs.

use outstride::DType;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use super::super::numpy::names;
use super::super::{Borrowed, Kind, Memory};
use super::abi::{
    CODE_BFLOAT, CODE_BOOL, CODE_FLOAT, CODE_INT, CODE_UINT, DEVICE_CPU, DEVICE_CUDA_HOST, DEVICE_ROCM_HOST,
    ElementType, FLAG_READ_ONLY, MAJOR_VERSION, MINOR_VERSION, ManagedTensor, ManagedTensorVersioned, Tensor,
    UNVERSIONED, VERSIONED,
};
use crate::error::invalid;

/// More axes than any library allows.
const MOST_AXES: i32 = 64;

/// What the object's `__dlpack__` returns, or `None` where it has none.
pub(in super::super) fn capsule<'py>(
    name: &str,
    object: &Bound<'py, PyAny>,
) -> PyResult<Option<Bound<'py, PyCapsule>>> {
    let py = object.py();
    let Some(method) = object.getattr_opt(pyo3::intern!(py, "__dlpack__"))? else { return Ok(None) };
    let options = PyDict::new(py);
    options.set_item(pyo3::intern!(py, "max_version"), (MAJOR_VERSION, MINOR_VERSION))?;
    let returned = match method.call((), Some(&options)) {
        // Libraries from before version 1 do not know the argument.
        Err(error) if error.is_instance_of::<PyTypeError>(py) => method.call0()?,
        returned => returned?,
    };
    match returned.cast_into::<PyCapsule>() {
        Ok(capsule) => Ok(Some(capsule)),
        Err(error) => {
            let found = error.into_inner().get_type();
            Err(invalid(format!("`{name}`.__dlpack__() must return a capsule, got {}", found.name()?)))
        }
    }
}

pub(in super::super) fn borrow<'py>(name: &str, capsule: Bound<'py, PyCapsule>) -> PyResult<Borrowed<'py>> {
    let (tensor, read_only) = if let Ok(pointer) = capsule.pointer_checked(Some(VERSIONED)) {
        let managed = pointer.cast::<ManagedTensorVersioned>();
        // SAFETY: a capsule of this name points to this structure; the version comes first in all versions.
        let version = unsafe { (*managed.as_ptr()).version };
        if version.major != MAJOR_VERSION {
            return Err(invalid(format!(
                "`{name}` speaks DLPack {}.{}, and only version {MAJOR_VERSION} is understood here",
                version.major, version.minor
            )));
        }
        // SAFETY: of version 1, this is its layout; the capsule keeps it alive.
        let managed = unsafe { managed.as_ref() };
        (&managed.tensor, managed.flags & FLAG_READ_ONLY != 0)
    } else if let Ok(pointer) = capsule.pointer_checked(Some(UNVERSIONED)) {
        // SAFETY: a capsule of this name points to this structure, and keeps it alive.
        (unsafe { &pointer.cast::<ManagedTensor>().as_ref().tensor }, false)
    } else {
        return Err(invalid(format!(
            "`{name}`.__dlpack__() returned a capsule that holds no tensor, or one that was used before"
        )));
    };
    let memory = memory(name, tensor)?;
    Ok(Borrowed { memory, read_only, kind: Kind::Dlpack, _owner: capsule.into_any() })
}

fn memory(name: &str, tensor: &Tensor) -> PyResult<Memory> {
    if ![DEVICE_CPU, DEVICE_CUDA_HOST, DEVICE_ROCM_HOST].contains(&tensor.device.kind) {
        let (kind, id) = (tensor.device.kind, tensor.device.id);
        return Err(invalid(format!(
            "`{name}` is on device {id} of DLPack's kind {kind}; move it to the CPU"
        )));
    }
    let dtype = dtype(name, tensor.dtype)?;
    if !(0..=MOST_AXES).contains(&tensor.ndim) || (tensor.ndim > 0 && tensor.shape.is_null()) {
        return Err(invalid(format!(
            "`{name}` came through DLPack with {} axes and {} shape",
            tensor.ndim,
            if tensor.shape.is_null() { "no" } else { "a" }
        )));
    }
    let axes = tensor.ndim as usize;
    // SAFETY: not null where there are axes, and the producer's list of as many sizes.
    let sizes = if axes == 0 { &[] } else { unsafe { std::slice::from_raw_parts(tensor.shape, axes) } };
    let shape: Vec<usize> = sizes.iter().map_while(|&size| usize::try_from(size).ok()).collect();
    if shape.len() != axes {
        return Err(invalid(format!("`{name}` came through DLPack with the impossible shape {sizes:?}")));
    }
    let strides = if axes == 0 || tensor.strides.is_null() {
        row_major(&shape)
    } else {
        // SAFETY: not null, and the producer's list of one stride per axis.
        let strides = unsafe { std::slice::from_raw_parts(tensor.strides, axes) };
        strides.iter().map(|&stride| isize::try_from(stride).ok()).collect()
    };
    let too_large = || invalid(format!("`{name}` has a shape and strides that leave the address space"));
    let strides = strides.ok_or_else(too_large)?;
    let offset = usize::try_from(tensor.byte_offset).map_err(|_| too_large())?;
    if tensor.data.addr().checked_add(offset).is_none() {
        return Err(too_large());
    }
    Memory::new(name, dtype, shape, strides, tensor.data.cast::<u8>().wrapping_byte_add(offset))
}

fn row_major(shape: &[usize]) -> Option<Vec<isize>> {
    let mut strides = vec![0; shape.len()];
    let mut stride = 1isize;
    for (axis, &size) in shape.iter().enumerate().rev() {
        strides[axis] = stride;
        stride = stride.checked_mul(isize::try_from(size.max(1)).ok()?)?;
    }
    Some(strides)
}

fn dtype(name: &str, dtype: ElementType) -> PyResult<DType> {
    Ok(match (dtype.code, dtype.bits, dtype.lanes) {
        (CODE_FLOAT, 16, 1) => DType::F16,
        (CODE_FLOAT, 32, 1) => DType::F32,
        (CODE_FLOAT, 64, 1) => DType::F64,
        (CODE_BFLOAT, 16, 1) => DType::Bf16,
        (CODE_INT, 8, 1) => DType::I8,
        (CODE_INT, 16, 1) => DType::I16,
        (CODE_INT, 32, 1) => DType::I32,
        (CODE_INT, 64, 1) => DType::I64,
        (CODE_UINT, 8, 1) => DType::U8,
        (CODE_UINT, 16, 1) => DType::U16,
        (CODE_UINT, 32, 1) => DType::U32,
        (CODE_UINT, 64, 1) => DType::U64,
        (CODE_BOOL, 8, 1) => DType::Bool,
        (code, bits, lanes) => {
            return Err(invalid(format!(
                "`{name}` has elements of DLPack's type code {code} with {bits} bits and {lanes} lanes, which nothing is \
                 computed in; use one of {}",
                names(DType::NUMERIC)
            )));
        }
    })
}
