//! Integers in memory, computed with as 64-bit floats, which hold sums below 2^53 exactly.

use std::array;

use outstride_spec::{DType, IntegerOverflow};

use crate::portable::Portable;
use crate::storage::{Convert, Storage, Stored, storage_of};
use crate::table::Kernels;

/// An integer that keeps the low bits of what is too large for it.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Wrapped<Q>(Q);

/// Enough to fill any register; plain loops are fast enough for types that hardly anybody stores tensors in.
type Lanes = Portable<f64, 4>;

macro_rules! convert_integer {
    ($stored:ty, $from:expr, $to:expr) => {
        impl Convert<$stored> for Lanes {
            #[inline(always)]
            unsafe fn load_as(from: *const $stored) -> [f64; 4] {
                // SAFETY: the caller vouches for four readable elements.
                array::from_fn(|lane| Self::scalar_from(unsafe { from.add(lane).read() }))
            }

            #[inline(always)]
            unsafe fn load_masked_as(from: *const $stored, mask: (usize, usize)) -> [f64; 4] {
                let mut lanes = [0.0; 4];
                for lane in mask.0..mask.1.min(4) {
                    // SAFETY: the caller vouches for the lanes of the mask.
                    lanes[lane] = Self::scalar_from(unsafe { from.wrapping_add(lane).read() });
                }
                lanes
            }

            #[inline(always)]
            unsafe fn store_as(to: *mut $stored, value: [f64; 4]) {
                for lane in 0..4 {
                    // SAFETY: the caller vouches for four writable elements.
                    unsafe { to.add(lane).write(Self::scalar_to(value[lane])) };
                }
            }

            #[inline(always)]
            unsafe fn store_masked_as(to: *mut $stored, value: [f64; 4], mask: (usize, usize)) {
                for lane in mask.0..mask.1.min(4) {
                    // SAFETY: the caller vouches for the lanes of the mask.
                    unsafe { to.wrapping_add(lane).write(Self::scalar_to(value[lane])) };
                }
            }

            #[inline(always)]
            fn scalar_from(value: $stored) -> f64 {
                $from(value)
            }

            #[inline(always)]
            fn scalar_to(value: f64) -> $stored {
                $to(value)
            }
        }
    };
}

macro_rules! integers {
    ($($type:ty, $dtype:ident;)*) => {$(
        // Casts of floats saturate.
        convert_integer!($type, f64::from, |value: f64| value as $type);
        convert_integer!(
            Wrapped<$type>,
            |value: Wrapped<$type>| f64::from(value.0),
            |value: f64| Wrapped(value as i64 as $type)
        );

        impl Stored<f64> for $type {
            const DTYPE: DType = DType::$dtype;

            fn widen(self) -> f64 {
                self.into()
            }

            fn storage(_kernels: &Kernels<f64>, overflow: IntegerOverflow) -> &Storage<f64> {
                static SATURATED: Storage<f64> = storage_of!(Lanes, $type, DType::$dtype, []);
                static WRAPPED: Storage<f64> = storage_of!(Lanes, Wrapped<$type>, DType::$dtype, []);
                match overflow {
                    IntegerOverflow::Saturate => &SATURATED,
                    IntegerOverflow::Wrap => &WRAPPED,
                }
            }
        }
    )*};
}

integers! {
    i8, I8;
    i16, I16;
    i32, I32;
    u8, U8;
    u16, U16;
    u32, U32;
}
