//! Tiles whose vectors run over output channels: `rows × (VECTORS · LANES)` sums, one broadcast input per row.
//!
//! ```text
//! tile[row][column] = bias[column] + Σ over taps, channels  x(tap, row)[channel] · weights(tap)[channel][column]
//! ```

use crate::simd::{Scalar, Simd};

/// The most rows any panel kernel has.
pub const MAX_ROWS: usize = 12;

/// One tap of a panel tile: where each row reads its input, and the tap's weights.
#[derive(Clone, Copy, Debug)]
pub struct PanelTap<T> {
    /// Channel 0 of each row's input. Rows beyond the input read a run of zeros.
    pub rows: [*const T; MAX_ROWS],
    /// `[channel][column]`
    pub weights: *const T,
    /// What will be read soon: a vector per channel from here on is brought near, wherever it lies.
    pub fetch: *const T,
}

/// A tile to compute.
#[derive(Clone, Copy, Debug)]
pub struct PanelTile<'a, T> {
    /// The taps, summed in this order.
    pub taps: &'a [PanelTap<T>],
    /// Channels to sum over, in rising order. They are side by side in the input.
    pub channels: usize,
    /// Whether the tile holds sums to add to. Sums over many channels are made in several steps, so that what a step
    /// reads stays in the caches.
    pub resume: bool,
    /// In the last step, what is added to the sums: one value per column.
    pub bias: Option<&'a [T]>,
}

/// Computes the tile into `out`, `[row][column]`. Returns whether every sum was finite, if this is the last step.
///
/// # Safety
///
/// The CPU must have `S`'s instruction set. Each of the first `ROWS` row pointers must be readable at every channel;
/// weights must hold `channels · VECTORS · LANES` elements.
#[inline(always)]
pub(crate) unsafe fn panel<S: Simd, const ROWS: usize, const VECTORS: usize>(
    tile: &PanelTile<'_, S::Scalar>,
    out: &mut [S::Scalar],
) -> bool {
    let width = VECTORS * S::LANES;
    assert!(tile.bias.is_none_or(|bias| bias.len() >= width) && out.len() >= ROWS * width);
    let out = out.as_mut_ptr();
    // SAFETY: the caller vouches for the instruction set, the rows and the weights; bias and out were just checked.
    unsafe {
        let zero = S::splat(S::Scalar::default());
        let mut sums = [[zero; VECTORS]; ROWS];
        if tile.resume {
            for row in 0..ROWS {
                for vector in 0..VECTORS {
                    sums[row][vector] = S::load(out.add(row * width + vector * S::LANES));
                }
            }
        }
        for tap in tile.taps {
            if S::accumulate_panel(&mut sums, tap, tile.channels) {
                continue;
            }
            let mut weights = tap.weights;
            let mut channel = 0;
            // Row pointers outnumber the registers that could hold them: with one vector a row, several channels per
            // reload keep the loads below what the arithmetic needs.
            let unroll = if VECTORS == 1 { 4 } else { 1 };
            while channel + unroll <= tile.channels {
                for of_channel in channel..channel + unroll {
                    S::fetch(tap.fetch.wrapping_add(of_channel * S::LANES));
                }
                accumulate::<S, ROWS, VECTORS>(&mut sums, tap, channel, unroll, weights);
                weights = weights.add(unroll * width);
                channel += unroll;
            }
            while channel < tile.channels {
                accumulate::<S, ROWS, VECTORS>(&mut sums, tap, channel, 1, weights);
                weights = weights.add(width);
                channel += 1;
            }
        }
        let mut trace = zero;
        if let Some(bias) = tile.bias {
            for vector in 0..VECTORS {
                let bias = S::load(bias.as_ptr().add(vector * S::LANES));
                for sums in &mut sums {
                    // Zero times anything but a finite value is NaN.
                    trace = S::multiply_add(sums[vector], zero, trace);
                    sums[vector] = S::add(sums[vector], bias);
                }
            }
        }
        for row in 0..ROWS {
            for vector in 0..VECTORS {
                S::store(out.add(row * width + vector * S::LANES), sums[row][vector]);
            }
        }
        !S::any_nan(trace)
    }
}

/// Adds the products of `count` (at most 4) channels.
///
/// # Safety
///
/// As [`panel`], for those channels of one tap.
#[inline(always)]
unsafe fn accumulate<S: Simd, const ROWS: usize, const VECTORS: usize>(
    sums: &mut [[S::Vector; VECTORS]; ROWS],
    tap: &PanelTap<S::Scalar>,
    channel: usize,
    count: usize,
    weights: *const S::Scalar,
) {
    // SAFETY: the caller vouches for the instruction set, the rows and the weights.
    unsafe {
        let zero = S::splat(S::Scalar::default());
        let mut columns = [[zero; VECTORS]; 4];
        for of_channel in 0..count {
            for vector in 0..VECTORS {
                columns[of_channel][vector] =
                    S::load(weights.add((of_channel * VECTORS + vector) * S::LANES));
            }
        }
        for row in 0..ROWS {
            let inputs = tap.rows[row].add(channel);
            for of_channel in 0..count {
                let input = S::splat(inputs.add(of_channel).read());
                for vector in 0..VECTORS {
                    sums[row][vector] =
                        S::multiply_add(input, columns[of_channel][vector], sums[row][vector]);
                }
            }
        }
    }
}

/// A panel kernel: see [`panel`].
pub(crate) type PanelKernel<T> = unsafe fn(&PanelTile<'_, T>, &mut [T]) -> bool;

/// The panel kernels of an instruction set, by number of rows.
#[derive(Clone, Copy)]
pub(crate) struct PanelKernels<T: Scalar> {
    /// Rising numbers of rows, each with its kernels of one and two vectors.
    pub(crate) by_rows: &'static [(usize, [PanelKernel<T>; 2])],
}
