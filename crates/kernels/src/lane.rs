//! Positions of a depthwise layer, vectors over channels: each lane has its own input and its own weight.
//!
//! ```text
//! out[position][channel] = bias[channel] + Σ over taps  x(tap, position)[channel] · weights(tap)[channel]
//! ```

use crate::simd::Simd;

/// One tap of all positions.
#[derive(Clone, Copy, Debug)]
pub struct LaneTap<T> {
    /// At the first position, one input per channel.
    pub input: *const T,
    /// One weight per channel.
    pub weights: *const T,
}

/// Positions to compute.
#[derive(Clone, Copy, Debug)]
pub struct LaneTile<'a, T> {
    /// The taps, summed in this order.
    pub taps: &'a [LaneTap<T>],
    /// One value per channel.
    pub bias: &'a [T],
    /// How many there are.
    pub positions: usize,
    /// From the input of a position to that of the next.
    pub step: isize,
}

/// Computes all channels of all positions into `out`. Returns whether every sum was finite.
///
/// # Safety
///
/// The CPU must have `S`'s instruction set; each tap must have `bias.len()` weights, and as many readable inputs at every position.
#[inline(always)]
pub(crate) unsafe fn lane<S: Simd>(tile: &LaneTile<'_, S::Scalar>, out: &mut [S::Scalar]) -> bool {
    let channels = tile.bias.len();
    assert!(out.len() >= tile.positions * channels);
    let mut finite = true;
    for position in 0..tile.positions {
        let out = &mut out[position * channels..(position + 1) * channels];
        // SAFETY: handed on from the caller.
        finite &= unsafe { lane_position::<S>(tile, position as isize * tile.step, out) };
    }
    finite
}

/// Computes the position whose inputs lie at a distance from the first one's.
///
/// # Safety
///
/// As [`lane`], of that position; `out` must have as many elements as there are channels.
#[inline(always)]
unsafe fn lane_position<S: Simd>(
    tile: &LaneTile<'_, S::Scalar>,
    distance: isize,
    out: &mut [S::Scalar],
) -> bool {
    const VECTORS: usize = 4;
    let channels = out.len();
    // SAFETY: the caller vouches for the instruction set and the taps; every access stays below `channels`.
    unsafe {
        let zero = S::splat(S::Scalar::default());
        let mut trace = zero;
        let mut first = 0;
        while first + VECTORS * S::LANES <= channels {
            let mut sums = [zero; VECTORS];
            for tap in tile.taps {
                let input = tap.input.offset(distance);
                for vector in 0..VECTORS {
                    let lane = first + vector * S::LANES;
                    let (input, weights) = (S::load(input.add(lane)), S::load(tap.weights.add(lane)));
                    sums[vector] = S::multiply_add(input, weights, sums[vector]);
                }
            }
            for vector in 0..VECTORS {
                let lane = first + vector * S::LANES;
                trace = S::multiply_add(sums[vector], zero, trace);
                let sum = S::add(sums[vector], S::load(tile.bias.as_ptr().add(lane)));
                S::store(out.as_mut_ptr().add(lane), sum);
            }
            first += VECTORS * S::LANES;
        }
        let mut finite = !S::any_nan(trace);
        while first < channels {
            let mask = S::mask(0, channels - first);
            let mut sum = zero;
            for tap in tile.taps {
                let input = S::load_masked(tap.input.offset(distance).add(first), mask);
                let weights = S::load_masked(tap.weights.add(first), mask);
                sum = S::multiply_add(input, weights, sum);
            }
            finite &= !S::any_nan(S::multiply(sum, zero));
            let sum = S::add(sum, S::load_masked(tile.bias.as_ptr().add(first), mask));
            S::store_masked(out.as_mut_ptr().add(first), sum, mask);
            first += S::LANES;
        }
        finite
    }
}

/// A lane kernel: see [`lane`].
pub(crate) type LaneKernel<T> = unsafe fn(&LaneTile<'_, T>, &mut [T]) -> bool;
