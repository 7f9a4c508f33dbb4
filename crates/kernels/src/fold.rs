//! Adding up, along a row, the products that meet in an output.
//!
//! ```text
//! out[q] = bias + Σ over taps, rows  products[row + tap][q − first(tap)]      where there is such a product
//! ```

use crate::simd::Simd;

/// One tap along a row.
#[derive(Clone, Copy, Debug)]
pub struct FoldTap {
    /// How far behind the beginning of a row its products begin.
    pub products: usize,
    /// Where the first of them belongs in the output.
    pub first: isize,
}

/// A row of outputs of each of some channels.
#[derive(Clone, Copy, Debug)]
pub struct FoldedRows<'a, T> {
    /// Rows of products.
    pub products: &'a [T],
    /// From those of an output channel to those of the next.
    pub channel_stride: usize,
    /// Where those begin that meet in these outputs.
    pub rows: &'a [usize],
    /// The taps, the first of which is added first, in all rows.
    pub taps: &'a [FoldTap],
    /// How many products a tap has in a row.
    pub len: usize,
    /// What is added at last, per output channel.
    pub bias: &'a [T],
    /// How many outputs a row has.
    pub outputs: usize,
    /// From row to row among the outputs.
    pub pitch: usize,
}

impl<T> FoldedRows<'_, T> {
    /// Whether all products are there, and so many outputs.
    fn are_inside(&self, outputs: usize) -> bool {
        let channels = self.bias.len();
        let end =
            |stride: usize, len: usize| channels.saturating_sub(1).checked_mul(stride)?.checked_add(len);
        let last_row = self.rows.iter().copied().max().unwrap_or(0);
        let last_tap = self.taps.iter().map(|tap| tap.products).max().unwrap_or(0);
        let row_end = last_row.checked_add(last_tap).and_then(|begin| begin.checked_add(self.len));
        let products_end = row_end.and_then(|row_end| end(self.channel_stride, row_end));
        let are_there = products_end.is_some_and(|end| end <= self.products.len());
        (channels == 0 || end(self.pitch, self.outputs).is_some_and(|end| end <= outputs))
            && (self.rows.is_empty() || self.taps.is_empty() || are_there)
    }
}

/// Adds up rows, into `out`. Returns whether every sum is finite, those in the last vector of a row and behind it among them.
///
/// # Safety
///
/// The CPU must have `S`'s instruction set.
#[inline(always)]
pub(crate) unsafe fn fold<S: Simd>(rows: &FoldedRows<'_, S::Scalar>, out: &mut [S::Scalar]) -> bool {
    assert!(rows.are_inside(out.len()));
    let (len, out) = (rows.len as isize, out.as_mut_ptr());
    // SAFETY: the caller vouches for the instruction set. Lanes of vectors that are loaded whole are products of the row, which are
    // there, as was just checked; masks leave out what is not, and what is behind a row of outputs.
    unsafe {
        let zero = S::splat(S::Scalar::default());
        let mut trace = zero;
        for (channel, &bias) in rows.bias.iter().enumerate() {
            let products = rows.products.as_ptr().wrapping_add(channel * rows.channel_stride);
            let out = out.wrapping_add(channel * rows.pitch);
            let bias = S::splat(bias);
            for q in (0..rows.outputs).step_by(S::LANES) {
                let (mut sum, left) = (zero, rows.outputs - q);
                for tap in rows.taps {
                    let (from, to) = (tap.first - q as isize, tap.first - q as isize + len);
                    let products = products.wrapping_offset(tap.products as isize - from);
                    if from <= 0 && to >= S::LANES as isize {
                        for &row in rows.rows {
                            sum = S::add(sum, S::load(products.wrapping_add(row)));
                        }
                    } else if from < S::LANES as isize && to > 0 {
                        let mask = S::mask(from.max(0) as usize, to as usize);
                        for &row in rows.rows {
                            sum = S::add(sum, S::load_masked(products.wrapping_add(row), mask));
                        }
                    }
                }
                // Zero times anything but a finite value is NaN.
                trace = S::multiply_add(sum, zero, trace);
                let (sum, out) = (S::add(sum, bias), out.wrapping_add(q));
                if left >= S::LANES {
                    S::store(out, sum);
                } else {
                    S::store_masked(out, sum, S::mask(0, left));
                }
            }
        }
        !S::any_nan(trace)
    }
}
