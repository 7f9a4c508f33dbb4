//! Rows of sums that stay rows.

use std::arch::x86_64::*;
use std::marker::PhantomData;

use super::narrow::{Narrow, Nearest};
use super::{AddBias, Now, Steps, Work, Worker, first_lanes, load, load_for_columns};
use crate::matrix::{FINISHED_COLUMNS, FinishedRows, NARROW_COLUMNS};
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
    rows: *const u16,
    distances: *const isize,
    count: usize,
    /// Rows that are done.
    done: usize,
    pub(super) store: R,
    memory: PhantomData<&'a FinishedRows<'a>>,
}

impl<'a, R: StoreRow> EachRow<'a, R> {
    /// # Safety
    ///
    /// All rows must be inside the sums, and every element writable where it goes.
    #[inline(always)]
    pub(super) unsafe fn new(from: &'a FinishedRows<'a>, store: R) -> Self {
        EachRow {
            rows: from.rows.as_ptr(),
            distances: from.distances.as_ptr(),
            count: from.rows.len().min(from.distances.len()),
            done: 0,
            store,
            memory: PhantomData,
        }
    }
}

/// Needs what storing a row does.
impl<R: StoreRow> Work for EachRow<'_, R> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.count - self.done
    }

    #[inline(always)]
    unsafe fn advance(&mut self, pieces: usize) {
        let end = self.count.min(self.done.saturating_add(pieces));
        while self.done < end {
            // SAFETY: there are so many. Whoever made this vouches for the rows, and the caller for the CPU.
            unsafe {
                let (row, distance) = (*self.rows.add(self.done), *self.distances.add(self.done));
                self.store.store_row(usize::from(row), distance);
            }
            self.done += 1;
        }
    }
}

/// Stores all columns of a row, past the caches to `stream` them if they begin with a line.
///
/// # Safety
///
/// The CPU must have AVX-512, for bf16 with BF16; [`FINISHED_COLUMNS`] elements must be writable.
#[inline(always)]
unsafe fn store_all<N: Narrow>(narrow: &N, to: *mut N::Element, values: [__m512; 2], stream: bool) {
    // SAFETY: handed on from the caller; what is streamed begins with a line.
    unsafe {
        if stream && to.addr().is_multiple_of(LINE) {
            narrow.store::<true>(to, values);
        } else {
            narrow.store::<false>(to, values);
        }
    }
}

/// Finishes a row by some steps, and stores it at its distance from the target. `PLAIN` rows have all columns, and do not go past
/// the caches. Needs AVX-512, for bf16 with BF16.
struct Finished<N: Narrow, S, const PLAIN: bool> {
    sums: *const f32,
    columns: usize,
    target: *mut N::Element,
    /// Whether whole lines go past the caches.
    stream: bool,
    narrow: N,
    steps: S,
}

impl<N: Narrow, S: Steps, const PLAIN: bool> StoreRow for Finished<N, S, PLAIN> {
    #[inline(always)]
    unsafe fn store_row(&mut self, at: usize, distance: isize) {
        let (sums, to) = (self.sums.wrapping_add(at), self.target.wrapping_offset(distance));
        let columns = if PLAIN { FINISHED_COLUMNS } else { self.columns };
        // SAFETY: the caller vouches for as many elements as there are columns, here and there.
        unsafe {
            let values = self.steps.finished(load(sums, columns));
            match columns {
                FINISHED_COLUMNS => store_all(&self.narrow, to, values, !PLAIN && self.stream),
                columns => self.narrow.store_first(to, values, columns),
            }
        }
    }
}

/// Finishes a row and the one beside it, each by its steps, and stores both at their distance from the target. All columns are there.
/// Needs what [`Finished`] does.
struct FinishedPair<N: Narrow, S> {
    sums: [*const f32; 2],
    steps: [S; 2],
    target: *mut N::Element,
    /// Whether whole lines go past the caches.
    stream: bool,
    narrow: N,
}

impl<N: Narrow, S: Steps> StoreRow for FinishedPair<N, S> {
    #[inline(always)]
    unsafe fn store_row(&mut self, at: usize, distance: isize) {
        let to = self.target.wrapping_offset(distance);
        let ([left, right], [left_steps, right_steps]) = (self.sums, &mut self.steps);
        // SAFETY: the caller vouches for the columns, here and there.
        unsafe {
            let left = left_steps.finished(load(left.wrapping_add(at), FINISHED_COLUMNS));
            let right = right_steps.finished(load(right.wrapping_add(at), FINISHED_COLUMNS));
            store_all(&self.narrow, to, left, self.stream);
            store_all(&self.narrow, to.wrapping_add(FINISHED_COLUMNS), right, self.stream);
        }
    }
}

/// Finishes a row of [`NARROW_COLUMNS`] and the one beside it together, and stores them at their distance from the target. Needs what
/// [`Finished`] does.
struct FinishedJoined<N: Narrow, S> {
    sums: [*const f32; 2],
    target: *mut N::Element,
    /// Whether whole lines go past the caches.
    stream: bool,
    narrow: N,
    steps: S,
}

impl<N: Narrow, S: Steps> StoreRow for FinishedJoined<N, S> {
    #[inline(always)]
    unsafe fn store_row(&mut self, at: usize, distance: isize) {
        let (to, [left, right]) = (self.target.wrapping_offset(distance), self.sums);
        // SAFETY: the caller vouches for the columns, here and there.
        unsafe {
            let values = [_mm512_loadu_ps(left.wrapping_add(at)), _mm512_loadu_ps(right.wrapping_add(at))];
            store_all(&self.narrow, to, self.steps.finished(values), self.stream);
        }
    }
}

/// Rows of no more than [`NARROW_COLUMNS`], finished by some steps and stored two by two, each a piece of work. `WHOLE` rows have all
/// of these columns. Needs what [`Finished`] does.
struct EachTwo<'a, N: Narrow, S, const WHOLE: bool> {
    from: &'a FinishedRows<'a>,
    /// Rows that are done.
    done: usize,
    target: *mut N::Element,
    narrow: N,
    steps: S,
}

impl<N: Narrow, S: Steps, const WHOLE: bool> Work for EachTwo<'_, N, S, WHOLE> {
    #[inline(always)]
    fn len(&self) -> usize {
        self.from.rows.len().min(self.from.distances.len()).saturating_sub(self.done).div_ceil(2)
    }

    #[inline(always)]
    unsafe fn advance(&mut self, pieces: usize) {
        let (rows, distances) = (self.from.rows.as_ptr(), self.from.distances.as_ptr());
        let count = self.from.rows.len().min(self.from.distances.len());
        let end = count.min(self.done.saturating_add(pieces.saturating_mul(2)));
        let columns = if WHOLE { NARROW_COLUMNS } else { self.from.columns };
        let [mask, _] = first_lanes(columns);
        while self.done < end {
            // The last row is its own neighbour, if it has no other.
            let (one, other) = (self.done, (self.done + 1).min(count - 1));
            // SAFETY: there are so many. Whoever made this vouches for the rows, and the caller for the CPU.
            unsafe {
                let (at, to) = (usize::from(*rows.add(one)), *distances.add(one));
                let (other_at, other_to) = (usize::from(*rows.add(other)), *distances.add(other));
                let values = [
                    _mm512_maskz_loadu_ps(mask, self.from.sums.wrapping_add(at)),
                    _mm512_maskz_loadu_ps(mask, self.from.sums.wrapping_add(other_at)),
                ];
                let to = [self.target.wrapping_offset(to), self.target.wrapping_offset(other_to)];
                let values = self.steps.finished(values);
                self.narrow.store_apart::<WHOLE>(to, values, columns);
            }
            self.done += 2;
        }
    }
}

/// [Finishes](Finished) rows when the worker does it. Returns the steps, which are for [as many columns](load_for_columns).
///
/// # Safety
///
/// The CPU must have AVX-512, for bf16 with BF16, and what the worker needs. As [`EachRow::new`].
#[inline(always)]
pub(super) unsafe fn finish_rows<N: Narrow, S: Steps>(
    worker: impl Worker,
    from: &FinishedRows<'_>,
    (target, stream): (*mut N::Element, bool),
    narrow: N,
    steps: S,
) -> S {
    let &FinishedRows { sums, columns, .. } = from;
    // SAFETY: handed on from the caller.
    unsafe {
        if columns == NARROW_COLUMNS {
            let mut rows = EachTwo::<_, _, true> { from, done: 0, target, narrow, steps };
            worker.have_done(&mut rows);
            rows.steps
        } else if columns < NARROW_COLUMNS {
            let mut rows = EachTwo::<_, _, false> { from, done: 0, target, narrow, steps };
            worker.have_done(&mut rows);
            rows.steps
        } else if columns == FINISHED_COLUMNS && !stream {
            let row = Finished::<_, _, true> { sums, columns, target, stream, narrow, steps };
            let mut rows = EachRow::new(from, row);
            worker.have_done(&mut rows);
            rows.store.steps
        } else {
            let row = Finished::<_, _, false> { sums, columns, target, stream, narrow, steps };
            let mut rows = EachRow::new(from, row);
            worker.have_done(&mut rows);
            rows.store.steps
        }
    }
}

/// [Adds the bias](AddBias) to rows and [stores](Finished) them as numbers of a type, when the worker does it. Returns whether
/// all sums with their bias were finite. What is stored of others is of no use, nor is what is stored of subnormal ones.
///
/// # Safety
///
/// The CPU must have AVX-512 with BF16, and what the worker needs. As [`EachRow::new`]; there must be as many biases as columns,
/// with those beside, if there are any, of vectors that are full.
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
        if bounds == UNBOUNDED {
            add_bias::<_, false>(worker, from, bias, bounds, (target, stream), narrow)
        } else {
            add_bias::<_, true>(worker, from, bias, bounds, (target, stream), narrow)
        }
    }
}

/// [`finish`], with bounds or without.
///
/// # Safety
///
/// As [`finish`].
#[inline(always)]
unsafe fn add_bias<N: Narrow, const BOUNDED: bool>(
    worker: impl Worker,
    from: &FinishedRows<'_>,
    bias: &[f32],
    bounds: (f32, f32),
    (target, stream): (*mut N::Element, bool),
    narrow: N,
) -> bool {
    // SAFETY: handed on from the caller.
    unsafe {
        let Some(beside) = from.beside else {
            let steps = AddBias::<BOUNDED>::new(load_for_columns(bias.as_ptr(), from.columns), bounds);
            return finish_rows(worker, from, (target, stream), narrow, steps).were_finite();
        };
        // Of all columns, or of both rows of fewer.
        let steps = AddBias::<BOUNDED>::new(load(bias.as_ptr(), FINISHED_COLUMNS), bounds);
        let sums = [from.sums, beside];
        if from.columns == NARROW_COLUMNS {
            let mut rows = EachRow::new(from, FinishedJoined { sums, target, stream, narrow, steps });
            worker.have_done(&mut rows);
            return rows.store.steps.were_finite();
        }
        let of_others = load(bias.as_ptr().wrapping_add(FINISHED_COLUMNS), FINISHED_COLUMNS);
        let steps = [steps, AddBias::new(of_others, bounds)];
        let pair = FinishedPair { sums, steps, target, stream, narrow };
        let mut rows = EachRow::new(from, pair);
        worker.have_done(&mut rows);
        let [own, others] = &rows.store.steps;
        own.were_finite() && others.were_finite()
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
