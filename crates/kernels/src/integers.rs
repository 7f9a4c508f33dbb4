//! Integers in memory, computed with as floats: of 64 bits, which hold sums below 2^53 exactly, and bytes also as floats of
//! 32 bits, which hold those below 2^24.

use std::array;

use outstride_spec::{DType, IntegerOverflow};

use crate::panel::PanelKernels;
use crate::portable::Portable;
use crate::simd::{Scalar, Simd};
use crate::storage::{Convert, Storage, Stored, storage_of};
use crate::table::Kernels;

/// An integer that keeps the low bits of what is too large for it.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Wrapped<Q>(Q);

/// Enough to fill any register; plain loops are fast enough for types that hardly anybody stores tensors in.
type Lanes = Portable<f64, 4>;

/// Conversions lane by lane, which compilers make vectors of.
macro_rules! convert_lanes {
    ($simd:ty, $scalar:ty, $lanes:literal, $stored:ty, $from:expr, $to:expr) => {
        impl Convert<$stored> for $simd {
            #[inline(always)]
            unsafe fn load_as(from: *const $stored) -> Self::Vector {
                // SAFETY: the caller vouches for the instruction set and as many readable elements as lanes.
                unsafe {
                    let lanes: [$scalar; $lanes] = array::from_fn(|lane| $from(from.add(lane).read()));
                    Self::load(lanes.as_ptr())
                }
            }

            #[inline(always)]
            unsafe fn load_masked_as(from: *const $stored, mask: Self::Mask) -> Self::Vector {
                let mut lanes = [0.0; $lanes];
                // SAFETY: the caller vouches for the instruction set and the lanes of the mask.
                unsafe {
                    for lane in lanes_of::<Self>(mask) {
                        lanes[lane] = $from(from.wrapping_add(lane).read());
                    }
                    Self::load(lanes.as_ptr())
                }
            }

            #[inline(always)]
            unsafe fn store_as(to: *mut $stored, value: Self::Vector) {
                let mut lanes = [0.0; $lanes];
                // SAFETY: the caller vouches for the instruction set and as many writable elements as lanes.
                unsafe {
                    Self::store(lanes.as_mut_ptr(), value);
                    to.cast::<[$stored; $lanes]>().write_unaligned(lanes.map($to));
                }
            }

            #[inline(always)]
            unsafe fn store_masked_as(to: *mut $stored, value: Self::Vector, mask: Self::Mask) {
                let mut lanes = [0.0; $lanes];
                // SAFETY: the caller vouches for the instruction set and the lanes of the mask.
                unsafe {
                    Self::store(lanes.as_mut_ptr(), value);
                    for lane in lanes_of::<Self>(mask) {
                        to.wrapping_add(lane).write($to(lanes[lane]));
                    }
                }
            }

            #[inline(always)]
            fn scalar_from(value: $stored) -> $scalar {
                $from(value)
            }

            #[inline(always)]
            fn scalar_to(value: $scalar) -> $stored {
                $to(value)
            }
        }
    };
}

/// The lanes of a mask, which are consecutive.
///
/// # Safety
///
/// The CPU must have `S`'s instruction set.
#[inline(always)]
unsafe fn lanes_of<S: Simd>(mask: S::Mask) -> std::ops::Range<usize> {
    const MOST: usize = 16;
    let ones = [S::Scalar::from_f64(1.0); MOST];
    let mut lanes = [S::Scalar::default(); MOST];
    // SAFETY: the caller vouches for the instruction set; no vector has more lanes.
    unsafe { S::store(lanes.as_mut_ptr(), S::load_masked(ones.as_ptr(), mask)) };
    let first = lanes.iter().position(|lane| *lane == ones[0]).unwrap_or(0);
    first..first + lanes.iter().filter(|lane| **lane == ones[0]).count()
}

macro_rules! integers {
    ($($type:ty, $dtype:ident;)*) => {$(
        // Casts of floats saturate.
        convert_lanes!(Lanes, f64, 4, $type, f64::from, |value: f64| value as $type);
        convert_lanes!(
            Lanes, f64, 4, Wrapped<$type>,
            |value: Wrapped<$type>| f64::from(value.0),
            |value: f64| Wrapped(value as i64 as $type)
        );

        impl Stored<f64> for $type {
            const DTYPE: DType = DType::$dtype;

            fn widen(self) -> f64 {
                self.into()
            }

            fn storage(_kernels: &Kernels<f64>, overflow: IntegerOverflow) -> &Storage<f64> {
                static SATURATED: Storage<f64> = storage_of!(Lanes, $type, DType::$dtype, [], PanelKernels::NONE);
                static WRAPPED: Storage<f64> = storage_of!(Lanes, Wrapped<$type>, DType::$dtype, [], PanelKernels::NONE);
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

/// What quantized tensors are stored in.
macro_rules! bytes {
    ($($type:ty, $dtype:ident, $field:ident;)*) => {$(
        #[cfg(target_arch = "x86_64")]
        convert_lanes!(crate::x86_64::avx2::Avx2F32, f32, 8, $type, f32::from, |value: f32| value as $type);
        convert_lanes!(Portable<f32, 8>, f32, 8, $type, f32::from, |value: f32| value as $type);

        impl Stored<f32> for $type {
            const DTYPE: DType = DType::$dtype;

            fn widen(self) -> f32 {
                self.into()
            }

            fn storage(kernels: &Kernels<f32>, _overflow: IntegerOverflow) -> &Storage<f32> {
                &kernels.narrow().$field
            }
        }
    )*};
}

bytes! {
    i8, I8, i8;
    u8, U8, u8;
}

// Sums of bytes that are too large for 32-bit floats become real numbers of 32 bits in the end.
convert_lanes!(Lanes, f64, 4, f32, f64::from, |value: f64| value as f32);

impl Stored<f64> for f32 {
    const DTYPE: DType = DType::F32;

    fn widen(self) -> f64 {
        self.into()
    }

    fn storage(_kernels: &Kernels<f64>, _overflow: IntegerOverflow) -> &Storage<f64> {
        static STORAGE: Storage<f64> = storage_of!(Lanes, f32, DType::F32, [], PanelKernels::NONE);
        &STORAGE
    }
}
