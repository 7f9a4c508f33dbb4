//! Tiles whose vectors run over neighbouring positions of a row: `columns × (VECTORS · LANES)` sums, one broadcast
//! weight per column (an output channel).
//!
//! ```text
//! tile[column][position] = bias[column] + Σ over taps, channels  x(tap)[channel][position] · weights(tap)[channel][column]
//! ```

use crate::simd::{Scalar, Simd};

/// The most columns any pixel kernel has.
pub const MAX_COLUMNS: usize = 14;

/// One tap of a pixel tile.
#[derive(Clone, Copy, Debug)]
pub struct PixelTap<T> {
    /// Channel 0 at the tile's first position, which need not be inside the input.
    pub input: *const T,
    /// `[channel][column]`, at the tile's first column.
    pub weights: *const T,
    /// The positions `from..to` lie inside the input; the others read as zero.
    pub from: usize,
    /// See `from`.
    pub to: usize,
}

/// A tile to compute.
#[derive(Clone, Copy, Debug)]
pub struct PixelTile<'a, T> {
    /// The taps, summed in this order.
    pub taps: &'a [PixelTap<T>],
    /// Channels to sum over, in rising order.
    pub channels: usize,
    /// Distance between channels in the input.
    pub channel_stride: isize,
    /// Distance between channels in the weights.
    pub weight_stride: usize,
    /// One value per column.
    pub bias: &'a [T],
}

/// Computes the tile into `out`, `[column][position]`. Returns whether every sum was finite.
///
/// # Safety
///
/// The CPU must have `S`'s instruction set. Each tap's input must be readable at every channel for the positions
/// `from..to`, its weights at every channel for `COLUMNS` columns.
#[inline(always)]
pub(crate) unsafe fn pixel<S: Simd, const COLUMNS: usize, const VECTORS: usize>(
    tile: &PixelTile<'_, S::Scalar>,
    out: &mut [S::Scalar],
) -> bool {
    let width = VECTORS * S::LANES;
    assert!(tile.bias.len() >= COLUMNS && out.len() >= COLUMNS * width);
    // SAFETY: the caller vouches for the instruction set, inputs and weights; bias and out were just checked.
    unsafe {
        let zero = S::splat(S::Scalar::default());
        let mut sums = [[zero; VECTORS]; COLUMNS];
        for tap in tile.taps {
            let mut weights = tap.weights;
            let mut input = tap.input;
            if tap.from == 0 && tap.to >= width {
                for _ in 0..tile.channels {
                    let mut positions = [zero; VECTORS];
                    for vector in 0..VECTORS {
                        positions[vector] = S::load(input.add(vector * S::LANES));
                    }
                    accumulate::<S, COLUMNS, VECTORS>(&mut sums, &positions, weights);
                    weights = weights.wrapping_add(tile.weight_stride);
                    input = input.wrapping_offset(tile.channel_stride);
                }
            } else {
                let mut masks = [S::mask(0, 0); VECTORS];
                for vector in 0..VECTORS {
                    let first = vector * S::LANES;
                    masks[vector] = S::mask(tap.from.saturating_sub(first), tap.to.saturating_sub(first));
                }
                for _ in 0..tile.channels {
                    let mut positions = [zero; VECTORS];
                    for vector in 0..VECTORS {
                        positions[vector] =
                            S::load_masked(input.wrapping_add(vector * S::LANES), masks[vector]);
                    }
                    accumulate::<S, COLUMNS, VECTORS>(&mut sums, &positions, weights);
                    weights = weights.wrapping_add(tile.weight_stride);
                    input = input.wrapping_offset(tile.channel_stride);
                }
            }
        }
        let mut trace = zero;
        for column in 0..COLUMNS {
            let bias = S::splat(tile.bias[column]);
            for vector in 0..VECTORS {
                // Zero times anything but a finite value is NaN.
                trace = S::multiply_add(sums[column][vector], zero, trace);
                let sum = S::add(sums[column][vector], bias);
                S::store(out.as_mut_ptr().add(column * width + vector * S::LANES), sum);
            }
        }
        !S::any_nan(trace)
    }
}

/// # Safety
///
/// As [`pixel`], for one channel of one tap.
#[inline(always)]
unsafe fn accumulate<S: Simd, const COLUMNS: usize, const VECTORS: usize>(
    sums: &mut [[S::Vector; VECTORS]; COLUMNS],
    positions: &[S::Vector; VECTORS],
    weights: *const S::Scalar,
) {
    for column in 0..COLUMNS {
        // SAFETY: the caller vouches for the instruction set and `COLUMNS` weights.
        unsafe {
            let weight = S::splat(weights.add(column).read());
            for vector in 0..VECTORS {
                sums[column][vector] = S::multiply_add(weight, positions[vector], sums[column][vector]);
            }
        }
    }
}

/// A pixel kernel: see [`pixel`].
pub(crate) type PixelKernel<T> = unsafe fn(&PixelTile<'_, T>, &mut [T]) -> bool;

/// The pixel kernels of an instruction set.
#[derive(Clone, Copy)]
pub(crate) struct PixelKernels<T: Scalar> {
    /// Falling numbers of vectors, each with its kernels of 1, 2, … columns.
    pub(crate) by_vectors: &'static [(usize, &'static [PixelKernel<T>])],
}
