//! The kernels that memory is read and written by, for every type in it.

use outstride_spec::DType;

use crate::copy::Runs;
use crate::panel::PanelKernels;

/// The kernels between memory of one type and registers of another. The memory's type is erased: pointers are to its
/// elements, and distances count them.
#[derive(Clone, Copy)]
pub struct Storage<T: 'static> {
    pub(crate) dtype: DType,
    pub(crate) size: usize,
    pub(crate) load: unsafe fn(*const u8) -> T,
    pub(crate) load_runs: unsafe fn(*const u8, &Runs, *mut T),
    pub(crate) load_transposed: unsafe fn(*const u8, &[isize], usize, *mut T, isize),
    pub(crate) store: unsafe fn(&[T], *mut u8, isize),
    pub(crate) fill: unsafe fn(T, usize, *mut u8, isize),
    pub(crate) store_rows: unsafe fn(*const T, usize, usize, *mut u8, &[isize]),
    pub(crate) stream_rows: unsafe fn(*const T, usize, usize, *mut u8, &[isize]),
    pub(crate) store_transposed: unsafe fn(*const T, &[isize], usize, *mut u8, isize),
    pub(crate) stream_transposed: unsafe fn(*const T, &[isize], usize, *mut u8, isize),
    pub(crate) store_interleaved: unsafe fn(*const T, &[isize], usize, *mut u8),
    pub(crate) stream_interleaved: unsafe fn(*const T, &[isize], usize, *mut u8),
    /// For weights in such memory.
    pub(crate) panel: PanelKernels<T>,
}

/// The kernels of an instruction set for one type in memory.
macro_rules! storage_of {
    ($simd:ty, $stored:ty, $dtype:expr, [$($feature:literal),*], $panel:expr) => {{
        type Q = $stored;
        type T = <$simd as crate::simd::Simd>::Scalar;
        use crate::storage::{Convert, Storage};

        // What has no way past the caches is compiled once.
        const STREAMS: bool = <$simd as Convert<Q>>::STREAMS;

        unsafe fn load(from: *const u8) -> T {
            // SAFETY: the caller vouches for the element.
            <$simd as Convert<Q>>::scalar_from(unsafe { from.cast::<Q>().read() })
        }

        $(#[target_feature(enable = $feature)])*
        unsafe fn load_runs(from: *const u8, runs: &crate::copy::Runs, target: *mut T) {
            // SAFETY: the features are those of the instruction set; the caller vouches for the rest.
            unsafe { crate::copy::load_runs::<$simd, Q>(from.cast(), runs, target) }
        }

        $(#[target_feature(enable = $feature)])*
        unsafe fn load_transposed(
            source: *const u8,
            distances: &[isize],
            columns: usize,
            target: *mut T,
            stride: isize,
        ) {
            // SAFETY: the features are those of the instruction set; the caller vouches for the rest.
            unsafe { crate::transpose::transpose::<$simd, Q, T, false, false>(source.cast(), distances, columns, target, stride) }
        }

        $(#[target_feature(enable = $feature)])*
        unsafe fn store(values: &[T], target: *mut u8, stride: isize) {
            let target = target.cast::<Q>();
            // SAFETY: the features are those of the instruction set; the caller vouches for the rest.
            unsafe {
                if stride == 1 {
                    crate::copy::store_rows::<$simd, Q, false>(values.as_ptr(), 0, values.len(), target, &[0]);
                    return;
                }
                for (index, &value) in values.iter().enumerate() {
                    target.offset(index as isize * stride).write(<$simd as Convert<Q>>::scalar_to(value));
                }
            }
        }

        unsafe fn fill(value: T, count: usize, target: *mut u8, stride: isize) {
            let (value, target) = (<$simd as Convert<Q>>::scalar_to(value), target.cast::<Q>());
            // SAFETY: the caller vouches for the elements.
            unsafe {
                if stride == 1 {
                    // The compiler makes vectors of this.
                    (0..count).for_each(|index| target.add(index).write(value));
                    return;
                }
                for index in 0..count {
                    target.offset(index as isize * stride).write(value);
                }
            }
        }

        $(#[target_feature(enable = $feature)])*
        unsafe fn store_rows<const STREAM: bool>(source: *const T, pitch: usize, len: usize, target: *mut u8, distances: &[isize]) {
            // SAFETY: the features are those of the instruction set; the caller vouches for the rest.
            unsafe { crate::copy::store_rows::<$simd, Q, STREAM>(source, pitch, len, target.cast(), distances) }
        }

        $(#[target_feature(enable = $feature)])*
        unsafe fn store_transposed<const STREAM: bool>(
            source: *const T,
            distances: &[isize],
            columns: usize,
            target: *mut u8,
            stride: isize,
        ) {
            // SAFETY: the features are those of the instruction set; the caller vouches for the rest.
            unsafe { crate::transpose::transpose::<$simd, T, Q, STREAM, true>(source, distances, columns, target.cast(), stride) }
        }

        $(#[target_feature(enable = $feature)])*
        unsafe fn store_interleaved<const STREAM: bool>(source: *const T, runs: &[isize], len: usize, target: *mut u8) {
            // SAFETY: the features are those of the instruction set; the caller vouches for the rest.
            unsafe { crate::interleave::interleave::<$simd, T, Q, STREAM>(source, runs, len, target.cast()) }
        }

        Storage {
            dtype: $dtype,
            size: size_of::<Q>(),
            load,
            load_runs,
            load_transposed,
            store,
            fill,
            store_rows: store_rows::<false>,
            stream_rows: store_rows::<STREAMS>,
            store_transposed: store_transposed::<false>,
            stream_transposed: store_transposed::<STREAMS>,
            store_interleaved: store_interleaved::<false>,
            stream_interleaved: store_interleaved::<STREAMS>,
            panel: $panel,
        }
    }};
}
pub(crate) use storage_of;
