//! One position of a depthwise layer, vectors over channels: each lane has its own input and its own weight.
//!
//! ```text
//! out[channel] = bias[channel] + Σ over taps  x(tap)[channel] · weights(tap)[channel]
//! ```

use crate::simd::Simd;

/// One tap of a position.
#[derive(Clone, Copy, Debug)]
pub struct LaneTap<T> {
    /// One input per channel.
    pub input: *const T,
    /// One weight per channel.
    pub weights: *const T,
}

/// A position to compute.
#[derive(Clone, Copy, Debug)]
pub struct LaneTile<'a, T> {
    /// The taps, summed in this order.
    pub taps: &'a [LaneTap<T>],
    /// One value per channel.
    pub bias: &'a [T],
}

/// Computes all channels of a position into `out`. Returns whether every sum was finite.
///
/// # Safety
///
/// The CPU must have `S`'s instruction set; each tap must have `bias.len()` readable inputs and weights.
#[inline(always)]
pub(crate) unsafe fn lane<S: Simd>(tile: &LaneTile<'_, S::Scalar>, out: &mut [S::Scalar]) -> bool {
    const VECTORS: usize = 4;
    let channels = tile.bias.len();
    assert!(out.len() >= channels);
    // SAFETY: the caller vouches for the instruction set and the taps; every access stays below `channels`.
    unsafe {
        let zero = S::splat(S::Scalar::default());
        let mut trace = zero;
        let mut first = 0;
        while first + VECTORS * S::LANES <= channels {
            let mut sums = [zero; VECTORS];
            for tap in tile.taps {
                for vector in 0..VECTORS {
                    let lane = first + vector * S::LANES;
                    let (input, weights) = (S::load(tap.input.add(lane)), S::load(tap.weights.add(lane)));
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
                let input = S::load_masked(tap.input.add(first), mask);
                let weights = S::load_masked(tap.weights.add(first), mask);
                sum = S::multiply_add(input, weights, sum);
            }
            finite &= !S::any_nan(S::multiply(sum, zero));
            let sum = S::add(sum, S::load_masked(tile.bias.as_ptr().add(first), mask));
            if channels - first >= S::LANES {
                S::store(out.as_mut_ptr().add(first), sum);
            } else {
                let mut last = [S::Scalar::default(); 16];
                S::store(last.as_mut_ptr(), sum);
                out[first..channels].copy_from_slice(&last[..channels - first]);
            }
            first += S::LANES;
        }
        finite
    }
}

/// A lane kernel: see [`lane`].
pub(crate) type LaneKernel<T> = unsafe fn(&LaneTile<'_, T>, &mut [T]) -> bool;
