//! Integers that become what stands for real numbers.

use std::arch::x86_64::*;

use super::super::avx512::Avx512F32;
use super::narrow::Narrow;
use super::rows::store;
use super::{Steps, load};
use crate::matrix::FinishedRows;
use crate::quantize::{Affine, Pass, Requantization, Rounding, real, with_rounding};

/// Requantizes integers less a value per column.
struct Requantize<'a, R> {
    less: [__m512i; 2],
    affine: [Affine<Avx512F32>; 2],
    bounds: (__m512, __m512),
    rounding: &'a R,
}

impl<R: Rounding<Avx512F32>> Steps for Requantize<'_, R> {
    #[inline(always)]
    unsafe fn finished(&mut self, mut sums: [__m512; 2]) -> [__m512; 2] {
        for (half, value) in sums.iter_mut().enumerate() {
            // SAFETY: the caller vouches for AVX-512.
            unsafe {
                let sum = _mm512_sub_epi32(_mm512_castps_si512(*value), self.less[half]);
                let real = real::<Avx512F32>(_mm512_cvtepi32_ps(sum), self.affine[half], self.bounds);
                *value = self.rounding.round(real);
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
        let mut steps = Requantize { less: self.less, affine: self.affine, bounds, rounding };
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

/// [`StoreRequantized`] to any memory of a type.
macro_rules! requantize_to {
    ($name:ident, $type:ty) => {
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
                let scales = load(to.scales.as_ptr(), from.columns);
                let bias = load(to.bias.as_ptr(), from.columns);
                let pass = StoreRequantized {
                    from,
                    less: [_mm512_castps_si512(less[0]), _mm512_castps_si512(less[1])],
                    affine: [(scales[0], bias[0]), (scales[1], bias[1])],
                    target: target.cast::<$type>(),
                    stream,
                };
                with_rounding(to, pass);
            }
        }
    };
}

requantize_to!(requantize_i8, i8);
requantize_to!(requantize_u8, u8);
requantize_to!(requantize_f32, f32);
