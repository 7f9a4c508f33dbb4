//! Rows of sums that stay rows.

use std::arch::x86_64::*;

use super::narrow::{Narrow, Nearest};
use super::{AddBias, Now, Steps, Work, Worker, load};
use crate::matrix::{FINISHED_COLUMNS, FinishedRows};
use crate::quantize::UNBOUNDED;
use crate::storage::LINE;

/// Finishes rows by some steps, and stores them at their distances from the target.
pub(super) struct StoreRows<'a, N: Narrow, S> {
    from: &'a FinishedRows<'a>,
    /// Rows that are done.
    done: usize,
    target: *mut N::Element,
    /// Whether whole lines go past the caches.
    stream: bool,
    narrow: N,
    pub(super) steps: S,
}

impl<'a, N: Narrow, S: Steps> StoreRows<'a, N, S> {
    /// # Safety
    ///
    /// All rows must be inside the sums, and every element writable where it goes.
    #[inline(always)]
    pub(super) unsafe fn new(
        from: &'a FinishedRows<'a>,
        target: *mut N::Element,
        stream: bool,
        narrow: N,
        steps: S,
    ) -> Self {
        StoreRows { from, done: 0, target, stream, narrow, steps }
    }
}

/// Needs AVX-512, for bf16 with BF16.
impl<N: Narrow, S: Steps> Work for StoreRows<'_, N, S> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.from.rows.len() - self.done
    }

    #[inline(always)]
    unsafe fn advance(&mut self, pieces: usize) {
        let from = self.from;
        let end = self.done + pieces.min(self.len());
        let rows = from.rows[self.done..end].iter().zip(&from.distances[self.done..end]);
        for (&row, &distance) in rows {
            let to = self.target.wrapping_offset(distance);
            // SAFETY: whoever made this vouches for as many elements as there are columns, here and there.
            unsafe {
                let sums = load(from.sums.as_ptr().wrapping_add(usize::from(row) * from.pitch), from.columns);
                let values = self.steps.finished(sums);
                match from.columns {
                    FINISHED_COLUMNS if self.stream && to.addr().is_multiple_of(LINE) => {
                        self.narrow.store::<true>(to, values);
                    }
                    FINISHED_COLUMNS => self.narrow.store::<false>(to, values),
                    columns => self.narrow.store_first(to, values, columns),
                }
            }
        }
        self.done = end;
    }
}

/// [Adds the bias](AddBias) to rows and [stores](StoreRows) them as numbers of a type, when the worker does it. Returns whether
/// all sums with their bias were usual: neither infinite nor NaN nor subnormal. What is stored of others is of no use.
///
/// # Safety
///
/// The CPU must have AVX-512 with BF16, and what the worker needs. As [`StoreRows::new`]; there must be as many biases as columns.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
pub(in super::super) unsafe fn finish<Q>(
    worker: impl Worker,
    from: &FinishedRows<'_>,
    bias: &[f32],
    bounds: (f32, f32),
    target: *mut u8,
    stream: bool,
) -> bool
where
    Nearest<Q>: Narrow<Element = Q>,
{
    let (least, greatest) = (_mm512_set1_ps(bounds.0), _mm512_set1_ps(bounds.1));
    let (target, narrow) = (target.cast(), Nearest::<Q>::NEW);
    // SAFETY: handed on from the caller.
    unsafe {
        let bias = load(bias.as_ptr(), from.columns);
        if bounds == UNBOUNDED {
            let steps = AddBias::<false> { bias, least, greatest, unusual: 0 };
            let mut rows = StoreRows::new(from, target, stream, narrow, steps);
            worker.have_done(&mut rows);
            rows.steps.unusual == 0
        } else {
            let steps = AddBias::<true> { bias, least, greatest, unusual: 0 };
            let mut rows = StoreRows::new(from, target, stream, narrow, steps);
            worker.have_done(&mut rows);
            rows.steps.unusual == 0
        }
    }
}

/// [`finish`], now.
///
/// # Safety
///
/// As [`finish`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
pub(in super::super) unsafe fn finish_now<Q>(
    from: &FinishedRows<'_>,
    bias: &[f32],
    bounds: (f32, f32),
    target: *mut u8,
    stream: bool,
) -> bool
where
    Nearest<Q>: Narrow<Element = Q>,
{
    // SAFETY: handed on from the caller.
    unsafe { finish::<Q>(Now, from, bias, bounds, target, stream) }
}
