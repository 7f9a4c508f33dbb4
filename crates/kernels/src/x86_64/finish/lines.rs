//! Rows of bytes that fill a line, from two blocks of sums.

use std::arch::x86_64::*;

use super::super::bytes::in_order;
use super::narrow::{Bytes, Whole};
use super::requantize::Divide;
use super::{Steps, Work, load};
use crate::matrix::{FINISHED_COLUMNS, FinishedRows};
use crate::storage::LINE;

/// Requantizes rows and those beside them, and stores both at their distances from the target.
pub(super) struct StoreLines<'a, Q> {
    from: &'a FinishedRows<'a>,
    /// From the first column of the first row beside on.
    beside: *const f32,
    /// Rows that are done.
    done: usize,
    target: *mut Q,
    /// Whether lines go past the caches.
    stream: bool,
    narrow: Whole<Q>,
    /// For the rows and for those beside them.
    steps: [Divide; 2],
}

// A line is two blocks of bytes.
const _: () = assert!(LINE == 2 * FINISHED_COLUMNS);

impl<'a, Q> StoreLines<'a, Q> {
    /// # Safety
    ///
    /// All rows must be inside the sums and those beside, [`FINISHED_COLUMNS`] each, and every byte writable where it goes.
    #[inline(always)]
    pub(super) unsafe fn new(
        from: &'a FinishedRows<'a>,
        beside: &'a [f32],
        target: *mut Q,
        stream: bool,
        narrow: Whole<Q>,
        steps: [Divide; 2],
    ) -> Self {
        StoreLines { from, beside: beside.as_ptr(), done: 0, target, stream, narrow, steps }
    }
}

/// Needs AVX-512.
impl<Q> Work for StoreLines<'_, Q>
where
    Whole<Q>: Bytes,
{
    #[inline(always)]
    fn len(&self) -> usize {
        self.from.rows.len() - self.done
    }

    #[inline(always)]
    unsafe fn advance(&mut self, pieces: usize) {
        let from = self.from;
        let end = self.done + pieces.min(self.len());
        let rows = from.rows[self.done..end].iter().zip(&from.distances[self.done..end]);
        let [own, others] = &mut self.steps;
        for (&row, &distance) in rows {
            let at = usize::from(row) * from.pitch;
            let to = self.target.wrapping_offset(distance);
            // SAFETY: whoever made this vouches for the columns, here and there.
            unsafe {
                let [a, b] = own.finished(load(from.sums.as_ptr().wrapping_add(at), FINISHED_COLUMNS));
                let [c, d] = others.finished(load(self.beside.wrapping_add(at), FINISHED_COLUMNS));
                let line = in_order(self.narrow.narrowed([a, b, c, d]));
                if self.stream && to.addr().is_multiple_of(LINE) {
                    _mm512_stream_si512(to.cast(), line);
                } else {
                    _mm512_storeu_si512(to.cast(), line);
                }
            }
        }
        self.done = end;
    }
}
