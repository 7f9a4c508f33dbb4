//! Plain arrays of lanes: what any target can build, shaped so that the compiler vectorises it.

use std::array;
use std::marker::PhantomData;

use half::{bf16, f16};

use crate::simd::{Scalar, Simd};
use crate::storage::{Convert, convert_itself};

/// `LANES` lanes of a scalar.
#[derive(Clone, Copy)]
pub(crate) struct Portable<T, const LANES: usize>(PhantomData<T>);

/// What the lanes need beyond [`Scalar`].
pub(crate) trait PortableScalar:
    Scalar + std::ops::Add<Output = Self> + std::ops::Mul<Output = Self> + std::ops::Div<Output = Self>
{
    fn single(self) -> Self;
    fn round(self) -> Self;
    fn scale(self, n: Self) -> Self;
}

impl PortableScalar for f32 {
    fn single(self) -> Self {
        self
    }

    fn round(self) -> Self {
        self.round_ties_even()
    }

    fn scale(self, n: Self) -> Self {
        self * f32::from_bits(((n as i32 + 127) as u32) << 23)
    }
}

impl PortableScalar for f64 {
    fn single(self) -> Self {
        (self as f32).into()
    }

    fn round(self) -> Self {
        self.round_ties_even()
    }

    fn scale(self, n: Self) -> Self {
        self * f64::from_bits(((n as i64 + 1023) as u64) << 52)
    }
}

impl<T: PortableScalar, const LANES: usize> Simd for Portable<T, LANES> {
    type Scalar = T;
    type Vector = [T; LANES];
    type Mask = (usize, usize);

    const LANES: usize = LANES;
    const FUSED: bool = false;
    const STREAMS: bool = false;

    #[inline(always)]
    unsafe fn splat(value: T) -> [T; LANES] {
        [value; LANES]
    }

    #[inline(always)]
    unsafe fn load(from: *const T) -> [T; LANES] {
        // SAFETY: the caller vouches for LANES readable elements.
        array::from_fn(|lane| unsafe { from.add(lane).read() })
    }

    #[inline(always)]
    unsafe fn store(to: *mut T, value: [T; LANES]) {
        for lane in 0..LANES {
            // SAFETY: the caller vouches for LANES writable elements.
            unsafe { to.add(lane).write(value[lane]) };
        }
    }

    #[inline(always)]
    unsafe fn mask(from: usize, to: usize) -> (usize, usize) {
        (from, to)
    }

    #[inline(always)]
    unsafe fn load_masked(from: *const T, mask: (usize, usize)) -> [T; LANES] {
        array::from_fn(|lane| {
            if mask.0 <= lane && lane < mask.1 {
                // SAFETY: the caller vouches for the lanes of the mask.
                unsafe { from.wrapping_add(lane).read() }
            } else {
                T::default()
            }
        })
    }

    #[inline(always)]
    unsafe fn store_masked(to: *mut T, value: [T; LANES], mask: (usize, usize)) {
        for lane in mask.0..mask.1.min(LANES) {
            // SAFETY: the caller vouches for the lanes of the mask.
            unsafe { to.wrapping_add(lane).write(value[lane]) };
        }
    }

    #[inline(always)]
    unsafe fn multiply_add(a: [T; LANES], b: [T; LANES], c: [T; LANES]) -> [T; LANES] {
        array::from_fn(|lane| a[lane] * b[lane] + c[lane])
    }

    #[inline(always)]
    unsafe fn add(a: [T; LANES], b: [T; LANES]) -> [T; LANES] {
        array::from_fn(|lane| a[lane] + b[lane])
    }

    #[inline(always)]
    unsafe fn subtract(a: [T; LANES], b: [T; LANES]) -> [T; LANES] {
        array::from_fn(|lane| a[lane].minus(b[lane]))
    }

    #[inline(always)]
    unsafe fn multiply(a: [T; LANES], b: [T; LANES]) -> [T; LANES] {
        array::from_fn(|lane| a[lane] * b[lane])
    }

    #[inline(always)]
    unsafe fn divide(a: [T; LANES], b: [T; LANES]) -> [T; LANES] {
        array::from_fn(|lane| a[lane] / b[lane])
    }

    #[inline(always)]
    unsafe fn at_least(v: [T; LANES], bound: [T; LANES]) -> [T; LANES] {
        array::from_fn(|lane| if v[lane] < bound[lane] { bound[lane] } else { v[lane] })
    }

    #[inline(always)]
    unsafe fn at_most(v: [T; LANES], bound: [T; LANES]) -> [T; LANES] {
        array::from_fn(|lane| if v[lane] > bound[lane] { bound[lane] } else { v[lane] })
    }

    #[inline(always)]
    unsafe fn single(v: [T; LANES]) -> [T; LANES] {
        v.map(PortableScalar::single)
    }

    #[inline(always)]
    unsafe fn round(v: [T; LANES]) -> [T; LANES] {
        v.map(PortableScalar::round)
    }

    #[inline(always)]
    unsafe fn scale(v: [T; LANES], n: [T; LANES]) -> [T; LANES] {
        array::from_fn(|lane| v[lane].scale(n[lane]))
    }

    #[inline(always)]
    unsafe fn select_less(a: [T; LANES], b: [T; LANES], yes: [T; LANES], no: [T; LANES]) -> [T; LANES] {
        array::from_fn(|lane| if a[lane] < b[lane] { yes[lane] } else { no[lane] })
    }

    #[inline(always)]
    unsafe fn zip(a: [T; LANES], b: [T; LANES]) -> [[T; LANES]; 2] {
        let lane = |index: usize| if index.is_multiple_of(2) { a[index / 2] } else { b[index / 2] };
        [array::from_fn(lane), array::from_fn(|index| lane(LANES + index))]
    }

    #[inline(always)]
    unsafe fn any_nan(v: [T; LANES]) -> bool {
        // Only NaN differs from itself.
        #[allow(clippy::eq_op)]
        v.iter().any(|lane| lane != lane)
    }
}

convert_itself! {
    {const LANES: usize} f32, Portable<f32, LANES>;
    {const LANES: usize} f64, Portable<f64, LANES>;
}

macro_rules! halves {
    ($($type:ty)*) => {$(
        impl<const LANES: usize> Convert<$type> for Portable<f32, LANES> {
            #[inline(always)]
            unsafe fn load_as(from: *const $type) -> [f32; LANES] {
                // SAFETY: the caller vouches for LANES readable elements.
                array::from_fn(|lane| unsafe { from.add(lane).read() }.to_f32())
            }

            #[inline(always)]
            unsafe fn load_masked_as(from: *const $type, mask: (usize, usize)) -> [f32; LANES] {
                let mut lanes = [0.0; LANES];
                for lane in mask.0..mask.1.min(LANES) {
                    // SAFETY: the caller vouches for the lanes of the mask.
                    lanes[lane] = unsafe { from.wrapping_add(lane).read() }.to_f32();
                }
                lanes
            }

            #[inline(always)]
            unsafe fn store_as(to: *mut $type, value: [f32; LANES]) {
                for lane in 0..LANES {
                    // SAFETY: the caller vouches for LANES writable elements.
                    unsafe { to.add(lane).write(<$type>::from_f32(value[lane])) };
                }
            }

            #[inline(always)]
            unsafe fn store_masked_as(to: *mut $type, value: [f32; LANES], mask: (usize, usize)) {
                for lane in mask.0..mask.1.min(LANES) {
                    // SAFETY: the caller vouches for the lanes of the mask.
                    unsafe { to.wrapping_add(lane).write(<$type>::from_f32(value[lane])) };
                }
            }

            #[inline(always)]
            fn scalar_from(value: $type) -> f32 {
                value.to_f32()
            }

            #[inline(always)]
            fn scalar_to(value: f32) -> $type {
                <$type>::from_f32(value)
            }
        }
    )*};
}

halves!(bf16 f16);
