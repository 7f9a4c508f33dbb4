//! Adding the products of channels to the sums of a tile, where an instruction set has no loop of its own for them.

use super::{FETCH_EVERY, RowPointers};
use crate::fetch::fetch;
use crate::storage::{Convert, LINE};

/// Channels that are multiplied between two looks at how many are left.
const UNROLL: usize = 4;

/// Adds the products of all channels of a tap.
///
/// # Safety
///
/// As [`panel`](super::panel).
#[inline(always)]
pub(super) unsafe fn accumulate_tap<S: Convert<Q>, Q, const ROWS: usize, const VECTORS: usize>(
    sums: &mut [[S::Vector; VECTORS]; ROWS],
    rows: &RowPointers<S::Scalar>,
    mut weights: *const Q,
    mut to_fetch: *const S::Scalar,
    channels: usize,
) {
    let width = VECTORS * S::LANES;
    let together = channels / UNROLL * UNROLL;
    // SAFETY: the caller vouches for the instruction set, the rows and the weights.
    unsafe {
        for channel in (0..together).step_by(UNROLL) {
            for _ in (0..UNROLL).step_by(FETCH_EVERY) {
                fetch(to_fetch);
                to_fetch = to_fetch.wrapping_byte_add(LINE);
            }
            accumulate::<S, Q, ROWS, VECTORS, UNROLL>(sums, rows, channel, weights);
            weights = weights.add(UNROLL * width);
        }
        for channel in together..channels {
            accumulate::<S, Q, ROWS, VECTORS, 1>(sums, rows, channel, weights);
            weights = weights.add(width);
        }
    }
}

/// Adds the products of some channels.
///
/// # Safety
///
/// As [`panel`](super::panel), for those channels of one tap.
#[inline(always)]
unsafe fn accumulate<S: Convert<Q>, Q, const ROWS: usize, const VECTORS: usize, const CHANNELS: usize>(
    sums: &mut [[S::Vector; VECTORS]; ROWS],
    rows: &RowPointers<S::Scalar>,
    channel: usize,
    weights: *const Q,
) {
    // SAFETY: the caller vouches for the instruction set, the rows and the weights.
    unsafe {
        let zero = S::splat(S::Scalar::default());
        let mut columns = [[zero; VECTORS]; CHANNELS];
        if VECTORS == 1 {
            // Row pointers may outnumber the registers that could hold them: several channels per reload keep the loads below
            // what the arithmetic needs.
            for of_channel in 0..CHANNELS {
                columns[of_channel][0] = S::load_as(weights.add(of_channel * S::LANES));
            }
            for row in 0..ROWS {
                for of_channel in 0..CHANNELS {
                    let input = S::splat(rows[row].add(channel + of_channel).read());
                    sums[row][0] = S::multiply_add(input, columns[of_channel][0], sums[row][0]);
                }
            }
            return;
        }
        for of_channel in 0..CHANNELS {
            for vector in 0..VECTORS {
                columns[of_channel][vector] =
                    S::load_as(weights.add((of_channel * VECTORS + vector) * S::LANES));
            }
            for row in 0..ROWS {
                let input = S::splat(rows[row].add(channel + of_channel).read());
                for vector in 0..VECTORS {
                    sums[row][vector] =
                        S::multiply_add(input, columns[of_channel][vector], sums[row][vector]);
                }
            }
        }
    }
}
