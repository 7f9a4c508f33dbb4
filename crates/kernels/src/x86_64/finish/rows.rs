//! Rows of sums that stay rows.

use super::narrow::{Narrow, Nearest};
use super::{AddBias, Now, Steps, Work, Worker, load};
use crate::matrix::{FINISHED_COLUMNS, FinishedRows};
use crate::quantize::UNBOUNDED;
use crate::storage::LINE;

/// What stores a row of sums.
pub(super) trait StoreRow {
    /// Stores the row that begins at an element of the sums, so far from the target.
    ///
    /// # Safety
    ///
    /// The CPU must have what it needs. The row must be inside the sums, and every element writable where it goes.
    unsafe fn store_row(&mut self, at: usize, distance: isize);
}

/// Stores rows one after the other, each a piece of work.
pub(super) struct EachRow<'a, R> {
    from: &'a FinishedRows<'a>,
    /// Rows that are done.
    done: usize,
    pub(super) store: R,
}

impl<'a, R: StoreRow> EachRow<'a, R> {
    /// # Safety
    ///
    /// All rows must be inside the sums, and every element writable where it goes.
    #[inline(always)]
    pub(super) unsafe fn new(from: &'a FinishedRows<'a>, store: R) -> Self {
        EachRow { from, done: 0, store }
    }
}

/// Needs what storing a row does.
impl<R: StoreRow> Work for EachRow<'_, R> {
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
            // SAFETY: whoever made this vouches for the rows, and the caller for the CPU.
            unsafe { self.store.store_row(usize::from(row) * from.pitch, distance) };
        }
        self.done = end;
    }
}

/// Finishes a row by some steps, and stores it at its distance from the target. Needs AVX-512, for bf16 with BF16.
pub(super) struct Finished<'a, N: Narrow, S> {
    pub(super) from: &'a FinishedRows<'a>,
    pub(super) target: *mut N::Element,
    /// Whether whole lines go past the caches.
    pub(super) stream: bool,
    pub(super) narrow: N,
    pub(super) steps: S,
}

impl<N: Narrow, S: Steps> StoreRow for Finished<'_, N, S> {
    #[inline(always)]
    unsafe fn store_row(&mut self, at: usize, distance: isize) {
        let to = self.target.wrapping_offset(distance);
        // SAFETY: the caller vouches for as many elements as there are columns, here and there.
        unsafe {
            let sums = load(self.from.sums.wrapping_add(at), self.from.columns);
            let values = self.steps.finished(sums);
            match self.from.columns {
                FINISHED_COLUMNS if self.stream && to.addr().is_multiple_of(LINE) => {
                    self.narrow.store::<true>(to, values);
                }
                FINISHED_COLUMNS => self.narrow.store::<false>(to, values),
                columns => self.narrow.store_first(to, values, columns),
            }
        }
    }
}

/// [Adds the bias](AddBias) to rows and [stores](Finished) them as numbers of a type, when the worker does it. Returns whether
/// all sums with their bias were finite. What is stored of others is of no use, nor is what is stored of subnormal ones.
///
/// # Safety
///
/// The CPU must have AVX-512 with BF16, and what the worker needs. As [`EachRow::new`]; there must be as many biases as columns.
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
    let (target, narrow) = (target.cast(), Nearest::<Q>::NEW);
    // SAFETY: handed on from the caller.
    unsafe {
        let bias = load(bias.as_ptr(), from.columns);
        if bounds == UNBOUNDED {
            let steps = AddBias::<false>::new(bias, bounds);
            let mut rows = EachRow::new(from, Finished { from, target, stream, narrow, steps });
            worker.have_done(&mut rows);
            rows.store.steps.were_finite()
        } else {
            let steps = AddBias::<true>::new(bias, bounds);
            let mut rows = EachRow::new(from, Finished { from, target, stream, narrow, steps });
            worker.have_done(&mut rows);
            rows.store.steps.were_finite()
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
