//! The structures of DLPack 1.x, as the standard lays them out.

use std::ffi::{CStr, c_void};

pub(super) const MAJOR_VERSION: u32 = 1;
pub(super) const MINOR_VERSION: u32 = 1;

/// The name of a capsule that holds a [`ManagedTensor`].
pub(super) const UNVERSIONED: &CStr = c"dltensor";
/// The name of a capsule that holds a [`ManagedTensorVersioned`].
pub(super) const VERSIONED: &CStr = c"dltensor_versioned";

pub(super) const FLAG_READ_ONLY: u64 = 1;

/// Devices whose memory the CPU can reach by its address.
pub(super) const DEVICE_CPU: i32 = 1;
pub(super) const DEVICE_CUDA_HOST: i32 = 3;
pub(super) const DEVICE_ROCM_HOST: i32 = 11;

pub(super) const CODE_INT: u8 = 0;
pub(super) const CODE_UINT: u8 = 1;
pub(super) const CODE_FLOAT: u8 = 2;
pub(super) const CODE_BFLOAT: u8 = 4;
pub(super) const CODE_BOOL: u8 = 6;

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Version {
    pub(super) major: u32,
    pub(super) minor: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Device {
    pub(super) kind: i32,
    pub(super) id: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct ElementType {
    pub(super) code: u8,
    pub(super) bits: u8,
    pub(super) lanes: u16,
}

#[repr(C)]
pub(super) struct Tensor {
    pub(super) data: *mut c_void,
    pub(super) device: Device,
    pub(super) ndim: i32,
    pub(super) dtype: ElementType,
    pub(super) shape: *mut i64,
    /// In elements; null is row-major without gaps, before version 1.2.
    pub(super) strides: *mut i64,
    pub(super) byte_offset: u64,
}

#[repr(C)]
pub(super) struct ManagedTensor {
    pub(super) tensor: Tensor,
    pub(super) context: *mut c_void,
    pub(super) deleter: Option<unsafe extern "C" fn(*mut ManagedTensor)>,
}

#[repr(C)]
pub(super) struct ManagedTensorVersioned {
    pub(super) version: Version,
    pub(super) context: *mut c_void,
    pub(super) deleter: Option<unsafe extern "C" fn(*mut ManagedTensorVersioned)>,
    pub(super) flags: u64,
    pub(super) tensor: Tensor,
}
