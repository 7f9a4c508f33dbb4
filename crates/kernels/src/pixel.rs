//! Tiles whose vectors run over neighbouring positions: `columns × (VECTORS · LANES)` sums, one broadcast weight per
//! column (an output channel, or a phase of it).
//!
//! ```text
//! tile[column][position] = bias[column] + Σ over channels, taps  x(tap)[channel][position] · weights(tap)[channel][column]
//! ```

use crate::fetch::{fetch, fetch_near};
use crate::simd::{Scalar, Simd};
use crate::storage::LINE;

/// The most columns any pixel kernel has.
pub const MAX_COLUMNS: usize = 14;

/// One tap of a pixel tile.
#[derive(Clone, Copy, Debug)]
pub struct PixelTap {
    /// From a position to the input that the tap reads for it.
    pub input: isize,
    /// Where its weights `[channel][column]` begin.
    pub weights: usize,
    /// The columns that it feeds, one bit each; what its other weights are does not matter.
    pub feeds: u32,
    /// Whether what it reads at the next channel is to be brought near: no tap before it reads that, and it is not near
    /// already.
    pub leads: bool,
}

/// Tiles to compute, one behind the other.
#[derive(Clone, Copy, Debug)]
pub struct PixelTiles<'a, T> {
    /// The taps, summed in this order for every channel.
    pub taps: &'a [PixelTap],
    /// Channel 0 at the first tile's first position.
    pub input: *const T,
    /// What the taps' weights are counted from.
    pub weights: *const T,
    /// Channels to sum over, in rising order.
    pub channels: usize,
    /// Distance between channels in the input.
    pub channel_stride: usize,
    /// Distance between channels in the weights.
    pub weight_stride: usize,
    /// One value per column.
    pub bias: &'a [T],
    /// How many tiles.
    pub count: usize,
    /// Distance between columns in the output.
    pub pitch: usize,
    /// What is brought near meanwhile, if there is a single tap, which feeds all columns.
    pub ahead: LinesAhead,
    /// Where inputs are copied to meanwhile, `[channel][position]`, if there is a single tap of that kind and tile; null if nowhere.
    pub copy: *mut T,
}

/// Lines to be brought near, some with each channel.
#[derive(Clone, Copy, Debug)]
pub struct LinesAhead {
    /// The first line of channel 0. There need not be any memory.
    pub first: *const u8,
    /// From channel to channel, in bytes.
    pub step: isize,
    /// How many of each channel, one behind the other: at most [`MOST_LINES_AHEAD`].
    pub lines: usize,
}

/// The most lines that are brought near with a channel.
pub const MOST_LINES_AHEAD: usize = 2;

impl LinesAhead {
    /// None at all.
    pub const NONE: LinesAhead = LinesAhead { first: std::ptr::null(), step: 0, lines: 0 };
}

/// The way through the channels of a tap. Steps are in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChannelWalk<T> {
    pub(crate) input: *const T,
    pub(crate) input_step: isize,
    pub(crate) weights: *const T,
    pub(crate) weight_step: isize,
    /// Two lines are brought near with every channel, the second so far behind the first.
    pub(crate) ahead: *const u8,
    pub(crate) second: isize,
    pub(crate) ahead_step: isize,
    /// Where inputs are copied to, side by side; null if nowhere.
    pub(crate) copy: *mut T,
    pub(crate) channels: usize,
}

impl<T> ChannelWalk<T> {
    /// Through all channels of tiles, from an input and weights on.
    fn new(tiles: &PixelTiles<'_, T>, input: *const T, weights: *const T) -> Self {
        // Lines are brought near even if none are to be: weights that are near, as asking takes less than deciding.
        let (ahead, ahead_step) = match tiles.ahead.lines {
            0 => (weights.cast(), 0),
            _ => (tiles.ahead.first, tiles.ahead.step),
        };
        ChannelWalk {
            input,
            input_step: (tiles.channel_stride * size_of::<T>()) as isize,
            weights,
            weight_step: (tiles.weight_stride * size_of::<T>()) as isize,
            ahead,
            second: if tiles.ahead.lines > 1 { LINE as isize } else { 0 },
            ahead_step,
            copy: tiles.copy,
            channels: tiles.channels,
        }
    }
}

/// Computes the tiles into `out`, `[column][position]`. Returns whether every sum was finite.
///
/// # Safety
///
/// The CPU must have `S`'s instruction set. At every channel, each tap's input must be readable for all positions of all
/// tiles, its weights for `COLUMNS` columns. A copy must have room for them, and nobody else may use it.
#[inline(always)]
pub(crate) unsafe fn pixel<S: Simd, const COLUMNS: usize, const VECTORS: usize>(
    tiles: &PixelTiles<'_, S::Scalar>,
    out: &mut [S::Scalar],
) -> bool {
    let width = VECTORS * S::LANES;
    assert!(tiles.bias.len() >= COLUMNS && tiles.pitch >= tiles.count * width);
    assert!(out.len() >= (COLUMNS - 1) * tiles.pitch + tiles.count * width);
    let all = (1 << COLUMNS) - 1;
    // SAFETY: the caller vouches for the instruction set, inputs and weights; bias and out were just checked.
    unsafe {
        let zero = S::splat(S::Scalar::default());
        let mut trace = zero;
        for tile in 0..tiles.count {
            let mut sums = [[zero; VECTORS]; COLUMNS];
            let mut input = tiles.input.wrapping_add(tile * width);
            let mut weights = tiles.weights;
            // With a single tap there is little else to do for a channel than to multiply.
            let (taps, multiplied) = match tiles.taps {
                [tap] if tap.feeds == all && !tap.leads => {
                    let (input, weights) =
                        (input.wrapping_offset(tap.input), weights.wrapping_add(tap.weights));
                    accumulate_channels::<S, COLUMNS, VECTORS>(
                        &mut sums,
                        &ChannelWalk::new(tiles, input, weights),
                    );
                    (&[][..], tiles.channels)
                }
                taps => (taps, 0),
            };
            for _ in multiplied..tiles.channels {
                for tap in taps {
                    let (input, weights) =
                        (input.wrapping_offset(tap.input), weights.wrapping_add(tap.weights));
                    if tap.leads {
                        fetch_near(input.wrapping_add(tiles.channel_stride), width);
                    }
                    if tap.feeds == all {
                        accumulate::<S, COLUMNS, VECTORS>(&mut sums, input, weights);
                    } else {
                        accumulate_some::<S, COLUMNS, VECTORS>(&mut sums, input, weights, tap.feeds);
                    }
                }
                input = input.wrapping_add(tiles.channel_stride);
                weights = weights.wrapping_add(tiles.weight_stride);
            }
            for column in 0..COLUMNS {
                let bias = S::splat(tiles.bias[column]);
                let out = out.as_mut_ptr().add(column * tiles.pitch + tile * width);
                for vector in 0..VECTORS {
                    // Zero times anything but a finite value is NaN.
                    trace = S::multiply_add(sums[column][vector], zero, trace);
                    S::store(out.add(vector * S::LANES), S::add(sums[column][vector], bias));
                }
            }
        }
        !S::any_nan(trace)
    }
}

/// Whether a shape is among those with a loop of their own: so many vectors, by at least so many columns.
pub(crate) fn has_loop(loops: &[(usize, usize)], columns: usize, vectors: usize) -> bool {
    loops.iter().any(|&(of, fewest)| of == vectors && columns >= fewest)
}

/// All channels of the only tap.
///
/// # Safety
///
/// As [`pixel`].
#[inline(always)]
unsafe fn accumulate_channels<S: Simd, const COLUMNS: usize, const VECTORS: usize>(
    sums: &mut [[S::Vector; VECTORS]; COLUMNS],
    walk: &ChannelWalk<S::Scalar>,
) {
    // SAFETY: the caller vouches for the instruction set, inputs and weights.
    unsafe {
        let is_done = S::accumulate_channels(sums, walk);
        debug_assert_eq!(is_done, has_loop(S::CHANNEL_LOOPS, COLUMNS, VECTORS));
        if is_done {
            return;
        }
        let ChannelWalk { mut input, mut weights, mut ahead, mut copy, .. } = *walk;
        for _ in 0..walk.channels {
            fetch(ahead);
            fetch(ahead.wrapping_offset(walk.second));
            if !walk.copy.is_null() {
                for vector in 0..VECTORS {
                    S::store(copy.add(vector * S::LANES), S::load(input.add(vector * S::LANES)));
                }
                copy = copy.wrapping_add(VECTORS * S::LANES);
            }
            accumulate::<S, COLUMNS, VECTORS>(sums, input, weights);
            input = input.wrapping_byte_offset(walk.input_step);
            weights = weights.wrapping_byte_offset(walk.weight_step);
            ahead = ahead.wrapping_offset(walk.ahead_step);
        }
    }
}

/// One channel of one tap. What there is less of, weights or inputs, stays in registers meanwhile.
///
/// # Safety
///
/// As [`pixel`].
#[inline(always)]
unsafe fn accumulate<S: Simd, const COLUMNS: usize, const VECTORS: usize>(
    sums: &mut [[S::Vector; VECTORS]; COLUMNS],
    input: *const S::Scalar,
    weights: *const S::Scalar,
) {
    // SAFETY: the caller vouches for the instruction set, inputs and weights.
    unsafe {
        let zero = S::splat(S::Scalar::default());
        if COLUMNS <= VECTORS {
            let mut kept = [zero; COLUMNS];
            for column in 0..COLUMNS {
                kept[column] = S::splat(weights.add(column).read());
            }
            for vector in 0..VECTORS {
                let positions = S::load(input.add(vector * S::LANES));
                for column in 0..COLUMNS {
                    sums[column][vector] = S::multiply_add(kept[column], positions, sums[column][vector]);
                }
            }
        } else {
            let all = u32::MAX;
            accumulate_some::<S, COLUMNS, VECTORS>(sums, input, weights, all);
        }
    }
}

/// One channel of one tap, for some of the columns.
///
/// # Safety
///
/// As [`pixel`].
#[inline(always)]
unsafe fn accumulate_some<S: Simd, const COLUMNS: usize, const VECTORS: usize>(
    sums: &mut [[S::Vector; VECTORS]; COLUMNS],
    input: *const S::Scalar,
    weights: *const S::Scalar,
    feeds: u32,
) {
    // SAFETY: the caller vouches for the instruction set, inputs and weights.
    unsafe {
        let mut positions = [S::splat(S::Scalar::default()); VECTORS];
        for vector in 0..VECTORS {
            positions[vector] = S::load(input.add(vector * S::LANES));
        }
        for column in 0..COLUMNS {
            if feeds >> column & 1 == 0 {
                continue;
            }
            let weight = S::splat(weights.add(column).read());
            for vector in 0..VECTORS {
                sums[column][vector] = S::multiply_add(weight, positions[vector], sums[column][vector]);
            }
        }
    }
}

/// A pixel kernel: see [`pixel`].
pub(crate) type PixelKernel<T> = unsafe fn(&PixelTiles<'_, T>, &mut [T]) -> bool;

/// The pixel kernels of an instruction set.
#[derive(Clone, Copy)]
pub(crate) struct PixelKernels<T: Scalar> {
    /// Falling numbers of vectors, each with its kernels of 1, 2, … columns.
    pub(crate) by_vectors: &'static [(usize, &'static [PixelKernel<T>])],
    /// The shapes with a loop of their own for a single tap: so many vectors, by at least so many columns.
    pub(crate) loops: &'static [(usize, usize)],
}
