//! Rows of sums that stay rows.

use std::arch::x86_64::*;

use half::{bf16, f16};

use super::narrow::{Narrow, Nearest};
use super::{AddBias, Steps, load};
use crate::matrix::{FINISHED_COLUMNS, FinishedRows};
use crate::quantize::UNBOUNDED;
use crate::storage::LINE;

/// Finishes rows by some steps, and stores them at their distances from the target. With `STREAM`, whole lines go past the
/// caches.
///
/// # Safety
///
/// The CPU must have AVX-512, for bf16 with BF16. All rows must be inside the sums, and every element writable where it goes.
#[inline(always)]
pub(super) unsafe fn store<N: Narrow, const STREAM: bool>(
    from: &FinishedRows<'_>,
    target: *mut N::Element,
    steps: &mut impl Steps,
    narrow: &N,
) {
    for (&row, &distance) in from.rows.iter().zip(from.distances) {
        let to = target.wrapping_offset(distance);
        // SAFETY: the caller vouches for as many elements as there are columns, here and there.
        unsafe {
            let sums = load(from.sums.as_ptr().wrapping_add(usize::from(row) * from.pitch), from.columns);
            let values = steps.finished(sums);
            match from.columns {
                FINISHED_COLUMNS if STREAM && to.addr().is_multiple_of(LINE) => {
                    narrow.store::<true>(to, values)
                }
                FINISHED_COLUMNS => narrow.store::<false>(to, values),
                columns => narrow.store_first(to, values, columns),
            }
        }
    }
}

/// [Adds the bias](AddBias) to rows and [stores](store) them. Returns whether all sums with their bias were usual: neither
/// infinite nor NaN nor subnormal. What is stored of others is of no use.
///
/// # Safety
///
/// As [`store`]; there must be as many biases as columns.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
unsafe fn finish<Q, const STREAM: bool, const BOUNDED: bool>(
    from: &FinishedRows<'_>,
    bias: &[f32],
    bounds: (f32, f32),
    target: *mut Q,
) -> bool
where
    Nearest<Q>: Narrow<Element = Q>,
{
    let (least, greatest) = (_mm512_set1_ps(bounds.0), _mm512_set1_ps(bounds.1));
    // SAFETY: handed on from the caller.
    unsafe {
        let bias = load(bias.as_ptr(), from.columns);
        let mut steps = AddBias::<BOUNDED> { bias, least, greatest, unusual: 0 };
        store::<_, STREAM>(from, target, &mut steps, &Nearest::<Q>::NEW);
        steps.unusual == 0
    }
}

/// [`finish`] to any memory of a type.
macro_rules! finish_to {
    ($name:ident, $type:ty) => {
        /// # Safety
        ///
        /// As [`finish`].
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
        pub(in super::super) unsafe fn $name(
            from: &FinishedRows<'_>,
            bias: &[f32],
            bounds: (f32, f32),
            target: *mut u8,
            stream: bool,
        ) -> bool {
            let target = target.cast::<$type>();
            // SAFETY: handed on from the caller.
            unsafe {
                match (stream, bounds != UNBOUNDED) {
                    (false, false) => finish::<_, false, false>(from, bias, bounds, target),
                    (false, true) => finish::<_, false, true>(from, bias, bounds, target),
                    (true, false) => finish::<_, true, false>(from, bias, bounds, target),
                    (true, true) => finish::<_, true, true>(from, bias, bounds, target),
                }
            }
        }
    };
}

finish_to!(finish_f32, f32);
finish_to!(finish_bf16, bf16);
finish_to!(finish_f16, f16);
