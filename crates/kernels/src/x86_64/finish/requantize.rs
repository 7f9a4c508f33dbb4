//! Integers that become what stands for real numbers.

use std::arch::x86_64::*;

use super::super::avx512::Avx512F32;
use super::narrow::{Narrow, Whole};
use super::rows::store;
use super::{Steps, UNUSUAL, load};
use crate::matrix::FinishedRows;
use crate::quantize::{
    Affine, ByReciprocal, Pass, Requantization, Rounding, bounds_of_bytes, real, with_rounding,
};

/// The real numbers that integers less a value per column stand for.
struct Reals {
    less: [__m512i; 2],
    affine: [Affine<Avx512F32>; 2],
    bounds: (__m512, __m512),
}

impl Reals {
    /// # Safety
    ///
    /// The CPU must have AVX-512.
    #[inline(always)]
    unsafe fn of(&self, half: usize, sums: __m512) -> __m512 {
        // SAFETY: handed on from the caller.
        unsafe {
            let sums = _mm512_sub_epi32(_mm512_castps_si512(sums), self.less[half]);
            real::<Avx512F32>(_mm512_cvtepi32_ps(sums), self.affine[half], self.bounds)
        }
    }
}

/// Requantizes integers.
struct Requantize<'a, R> {
    reals: Reals,
    rounding: &'a R,
}

impl<R: Rounding<Avx512F32>> Steps for Requantize<'_, R> {
    #[inline(always)]
    unsafe fn finished(&mut self, mut sums: [__m512; 2]) -> [__m512; 2] {
        for (half, value) in sums.iter_mut().enumerate() {
            // SAFETY: the caller vouches for AVX-512.
            unsafe { *value = self.rounding.round(self.reals.of(half, *value)) };
        }
        sums
    }
}

/// The same, if no real number can be NaN: the integers of 32 bits that bytes are made of.
struct ToIntegers {
    reals: Reals,
    rounding: ByReciprocal<Avx512F32>,
    zero_point: __m512i,
}

impl ToIntegers {
    /// If that is possible.
    ///
    /// # Safety
    ///
    /// The CPU must have AVX-512.
    #[inline(always)]
    unsafe fn new(
        less: [__m512i; 2],
        affine: [Affine<Avx512F32>; 2],
        to: &Requantization<'_>,
    ) -> Option<Self> {
        let (scale, zero_point) = to.output?;
        // SAFETY: handed on from the caller.
        unsafe {
            for (scales, bias) in affine {
                let unusual =
                    _mm512_fpclass_ps_mask::<UNUSUAL>(scales) | _mm512_fpclass_ps_mask::<UNUSUAL>(bias);
                if unusual != 0 {
                    return None;
                }
            }
            let bounds = bounds_of_bytes::<Avx512F32>(to.bounds, scale);
            Some(ToIntegers {
                reals: Reals { less, affine, bounds },
                rounding: ByReciprocal::with(scale, zero_point)?,
                zero_point: _mm512_set1_epi32(zero_point as i32),
            })
        }
    }
}

impl Steps for ToIntegers {
    #[inline(always)]
    unsafe fn finished(&mut self, mut sums: [__m512; 2]) -> [__m512; 2] {
        const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
        for (half, value) in sums.iter_mut().enumerate() {
            // SAFETY: the caller vouches for AVX-512.
            unsafe {
                let quotient = self.rounding.quotient(self.reals.of(half, *value));
                let integers = _mm512_cvt_roundps_epi32::<NEAREST>(quotient);
                *value = _mm512_castsi512_ps(_mm512_add_epi32(integers, self.zero_point));
            }
        }
        sums
    }
}

/// [Requantizes](Requantize) the integers that products of bytes left, and [stores](store) them.
struct StoreRequantized<'a, Q> {
    from: &'a FinishedRows<'a>,
    less: [__m512i; 2],
    affine: [Affine<Avx512F32>; 2],
    target: *mut Q,
    stream: bool,
}

impl<Q: Narrow> Pass<Avx512F32> for StoreRequantized<'_, Q> {
    #[inline(always)]
    unsafe fn run(self, bounds: (__m512, __m512), rounding: &impl Rounding<Avx512F32>) {
        let mut steps =
            Requantize { reals: Reals { less: self.less, affine: self.affine, bounds }, rounding };
        // SAFETY: handed on from the caller.
        unsafe {
            if self.stream {
                store::<Q, true>(self.from, self.target, &mut steps);
            } else {
                store::<Q, false>(self.from, self.target, &mut steps);
            }
        }
    }
}

/// [`StoreRequantized`] to any memory of a type, of bytes as `whole` ones if possible.
macro_rules! requantize_to {
    ($name:ident, $type:ty $(, $whole:ty)?) => {
        /// # Safety
        ///
        /// As [`store`]; there must be as many values to subtract, scales and biases as columns.
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
        pub(in super::super) unsafe fn $name(
            from: &FinishedRows<'_>,
            less: &[i32],
            to: &Requantization<'_>,
            target: *mut u8,
            stream: bool,
        ) {
            // SAFETY: handed on from the caller.
            unsafe {
                let less = load(less.as_ptr().cast(), from.columns);
                let less = [_mm512_castps_si512(less[0]), _mm512_castps_si512(less[1])];
                let scales = load(to.scales.as_ptr(), from.columns);
                let bias = load(to.bias.as_ptr(), from.columns);
                let affine = [(scales[0], bias[0]), (scales[1], bias[1])];
                $(
                    if let Some(mut steps) = ToIntegers::new(less, affine, to) {
                        return store::<$whole, false>(from, target.cast(), &mut steps);
                    }
                )?
                let target = target.cast::<$type>();
                with_rounding(to, StoreRequantized { from, less, affine, target, stream });
            }
        }
    };
}

requantize_to!(requantize_i8, i8, Whole<i8>);
requantize_to!(requantize_u8, u8, Whole<u8>);
requantize_to!(requantize_f32, f32);
