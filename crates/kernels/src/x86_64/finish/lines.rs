//! Rows of bytes that fill a line, from two blocks of sums.

use std::arch::x86_64::*;

use super::super::bytes::in_order;
use super::narrow::{Bytes, Whole};
use super::requantize::Divide;
use super::rows::StoreRow;
use super::{Steps, load};
use crate::matrix::FINISHED_COLUMNS;
use crate::storage::LINE;

// A line is two blocks of bytes.
const _: () = assert!(LINE == 2 * FINISHED_COLUMNS);

/// Requantizes a row and the one beside it, and stores both at their distance from the target. `PLAIN` lines become bytes [as they
/// are](Whole::is_plain), and do not go past the caches. Needs AVX-512.
pub(super) struct Line<Q, const PLAIN: bool> {
    /// Where the first rows begin, of [`FINISHED_COLUMNS`] each.
    pub(super) sums: [*const f32; 2],
    /// For each of them.
    pub(super) steps: [Divide; 2],
    pub(super) target: *mut Q,
    /// Whether lines go past the caches.
    pub(super) stream: bool,
    pub(super) narrow: Whole<Q>,
}

impl<Q, const PLAIN: bool> StoreRow for Line<Q, PLAIN>
where
    Whole<Q>: Bytes,
{
    #[inline(always)]
    unsafe fn store_row(&mut self, at: usize, distance: isize) {
        let to = self.target.wrapping_offset(distance);
        let ([left, right], [left_steps, right_steps]) = (self.sums, &mut self.steps);
        // SAFETY: the caller vouches for the columns, here and there.
        unsafe {
            let [a, b] = left_steps.finished(load(left.wrapping_add(at), FINISHED_COLUMNS));
            let [c, d] = right_steps.finished(load(right.wrapping_add(at), FINISHED_COLUMNS));
            let line = in_order(self.narrow.narrowed::<PLAIN>([a, b, c, d]));
            if !PLAIN && self.stream && to.addr().is_multiple_of(LINE) {
                _mm512_stream_si512(to.cast(), line);
            } else {
                _mm512_storeu_si512(to.cast(), line);
            }
        }
    }
}
