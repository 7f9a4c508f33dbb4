//! Handing memory to other libraries.

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;

use outstride::DType;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use super::abi::{
    CODE_BFLOAT, CODE_BOOL, CODE_FLOAT, CODE_INT, CODE_UINT, DEVICE_CPU, Device, ElementType, ManagedTensor,
    Tensor, UNVERSIONED,
};

/// A row-major tensor that any library can take over by its `from_dlpack`.
#[pyclass(frozen, name = "DLPackTensor", module = "outstride._native")]
pub(crate) struct Export {
    dtype: DType,
    shape: Vec<usize>,
    first: Address,
    /// Whose memory it is.
    owner: Py<PyAny>,
}

/// The address of memory that is kept alive beside it.
#[derive(Clone, Copy)]
struct Address(*mut u8);

// SAFETY: an address alone is harmless on any thread; it is followed only by whoever takes the tensor over.
unsafe impl Send for Address {}
// SAFETY: as above.
unsafe impl Sync for Address {}

impl Export {
    /// A tensor at `first`, which is memory of `owner`.
    pub(in super::super) fn new(dtype: DType, shape: Vec<usize>, first: *mut u8, owner: Py<PyAny>) -> Self {
        Export { dtype, shape, first: Address(first), owner }
    }
}

#[pymethods]
impl Export {
    /// The capsule of before version 1, which every consumer takes, whatever else it asks for.
    #[pyo3(signature = (**_options))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        _options: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let lent = Lent::lend(py, self);
        // SAFETY: the pointer stays valid until the destructor, or the consumer that renames the capsule, ends it.
        let capsule = unsafe {
            PyCapsule::new_with_pointer_and_destructor(py, lent.cast(), UNVERSIONED, Some(destructor))
        };
        if capsule.is_err() {
            // SAFETY: lent above, and nobody has it.
            unsafe { Lent::end(lent.as_ptr()) }
        }
        capsule
    }

    #[allow(clippy::unused_self)] // The protocol asks the object.
    fn __dlpack_device__(&self) -> (i32, i32) {
        (DEVICE_CPU, 0)
    }
}

/// A tensor that has been handed out, and what it keeps alive.
///
/// The structure comes first, so that its address is the address of the whole.
#[repr(C)]
struct Lent {
    managed: ManagedTensor,
    shape: Vec<i64>,
    strides: Vec<i64>,
    owner: Py<PyAny>,
}

impl Lent {
    fn lend(py: Python<'_>, export: &Export) -> NonNull<ManagedTensor> {
        // Sizes of existing memory: no product of them is beyond 63 bits.
        let mut shape: Vec<i64> = export.shape.iter().map(|&size| size as i64).collect();
        let mut strides = vec![1; shape.len()];
        for axis in (1..shape.len()).rev() {
            strides[axis - 1] = strides[axis] * shape[axis].max(1);
        }
        let tensor = Tensor {
            data: export.first.0.cast(),
            device: Device { kind: DEVICE_CPU, id: 0 },
            ndim: shape.len() as i32,
            dtype: element_type(export.dtype),
            shape: shape.as_mut_ptr(),
            strides: strides.as_mut_ptr(),
            byte_offset: 0,
        };
        let managed = ManagedTensor { tensor, context: std::ptr::null_mut(), deleter: Some(Self::end) };
        let lent = Box::new(Lent { managed, shape, strides, owner: export.owner.clone_ref(py) });
        NonNull::from(Box::leak(lent)).cast()
    }

    /// Ends the loan, on any thread, attached to the interpreter or not.
    ///
    /// # Safety
    ///
    /// `managed` must be null or come from [`Lent::lend`] and not have been ended.
    unsafe extern "C" fn end(managed: *mut ManagedTensor) {
        if managed.is_null() {
            return;
        }
        // SAFETY: by this function's contract.
        let Lent { shape, strides, owner, .. } = *unsafe { Box::from_raw(managed.cast::<Lent>()) };
        drop((shape, strides));
        // Without an interpreter there is nobody left to give the memory back to.
        Python::try_attach(|_| drop(owner));
    }
}

/// Ends the loan of a capsule that nobody took over: a consumer shows that it did by another name.
unsafe extern "C" fn destructor(capsule: *mut pyo3::ffi::PyObject) {
    // SAFETY: the interpreter calls this once, with a capsule of `__dlpack__` above.
    unsafe {
        let name = pyo3::ffi::PyCapsule_GetName(capsule);
        if !name.is_null() && CStr::from_ptr(name) == UNVERSIONED {
            let pointer: *mut c_void = pyo3::ffi::PyCapsule_GetPointer(capsule, name);
            Lent::end(pointer.cast());
        }
    }
}

fn element_type(dtype: DType) -> ElementType {
    let code = match dtype {
        DType::F16 | DType::F32 | DType::F64 => CODE_FLOAT,
        DType::Bf16 => CODE_BFLOAT,
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => CODE_INT,
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => CODE_UINT,
        DType::Bool => CODE_BOOL,
    };
    ElementType { code, bits: 8 * dtype.size() as u8, lanes: 1 }
}
