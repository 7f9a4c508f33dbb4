//! Tiles whose vectors run over output channels: `rows × (VECTORS · LANES)` sums, one broadcast input per row.
//!
//! ```text
//! tile[row][column] = bias[column] + Σ over taps, channels  x(tap, row)[channel] · weights(tap)[channel][column]
//! ```

use crate::fetch::fetch;
use crate::simd::{Scalar, Simd};
use crate::storage::{LINE, OutputRows};

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
    /// In the last step, where sums go that are finite.
    pub rows: Option<PanelRows<'a, T>>,
}

/// Where the rows of a tile go as soon as they are complete.
#[derive(Clone, Copy, Debug)]
pub struct PanelRows<'a, T> {
    /// The outputs; the columns behind theirs are left out. Lent: whoever copies them for every tile reads back several short
    /// stores at once, and so waits until all stores before have reached the cache, those of the last outputs among them.
    pub to: &'a OutputRows<'a, T>,
    /// Where each row begins. There may be fewer than the kernel has; it leaves out the others.
    pub distances: &'a [isize],
}

/// What became of the sums of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PanelSums {
    /// They are in the tile, and finite as far as is known.
    Kept,
    /// They are in the tile, and some are not finite.
    NotFinite,
    /// They are where the tile's rows go.
    Written,
}

/// Computes the tile into `out`, `[row][column]`, or to where its rows go.
///
/// # Safety
///
/// The CPU must have `S`'s instruction set. Each of the first `ROWS` row pointers must be readable at every channel;
/// weights must hold `channels · VECTORS · LANES` elements. Rows must have somewhere to go that nobody else writes to.
#[inline(always)]
pub(crate) unsafe fn panel<S: Simd, const ROWS: usize, const VECTORS: usize>(
    tile: &PanelTile<'_, S::Scalar>,
    out: &mut [S::Scalar],
) -> PanelSums {
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
            let to_fetch = tap.fetch;
            let mut weights = tap.weights;
            let together = tile.channels / UNROLL * UNROLL;
            for channel in (0..together).step_by(UNROLL) {
                for of_channel in (channel..channel + UNROLL).step_by((LINE / size_of::<S::Vector>()).max(1))
                {
                    fetch(to_fetch.wrapping_add(of_channel * S::LANES));
                }
                accumulate::<S, ROWS, VECTORS, UNROLL>(&mut sums, &tap.rows, channel, weights);
                weights = weights.add(UNROLL * width);
            }
            for channel in together..tile.channels {
                accumulate::<S, ROWS, VECTORS, 1>(&mut sums, &tap.rows, channel, weights);
                weights = weights.add(width);
            }
        }
        let mut trace = zero;
        if let Some(bias) = tile.bias {
            for vector in 0..VECTORS {
                let bias = S::load(bias.as_ptr().add(vector * S::LANES));
                let mut of_vector = zero;
                for sums in &mut sums {
                    // Zero times anything but a finite value is NaN.
                    of_vector = S::multiply_add(sums[vector], zero, of_vector);
                    sums[vector] = S::add(sums[vector], bias);
                }
                trace = S::add(trace, of_vector);
            }
        }
        let finite = !S::any_nan(trace);
        if let Some(rows) = tile.rows.as_ref().filter(|_| finite) {
            write::<S, ROWS, VECTORS>(&sums, rows);
            return PanelSums::Written;
        }
        for row in 0..ROWS {
            for vector in 0..VECTORS {
                S::store(out.add(row * width + vector * S::LANES), sums[row][vector]);
            }
        }
        if finite { PanelSums::Kept } else { PanelSums::NotFinite }
    }
}

/// Brings sums within their bounds, and writes them.
///
/// # Safety
///
/// As [`panel`].
#[inline(always)]
unsafe fn write<S: Simd, const ROWS: usize, const VECTORS: usize>(
    sums: &[[S::Vector; VECTORS]; ROWS],
    rows: &PanelRows<'_, S::Scalar>,
) {
    // SAFETY: the caller vouches for the instruction set and the rows.
    unsafe {
        let bounds = [S::splat(rows.to.bounds[0]), S::splat(rows.to.bounds[1])];
        if rows.to.columns < VECTORS * S::LANES {
            write_rows::<S, SomeColumns, ROWS, VECTORS>(sums, rows, bounds);
        } else if rows.to.stream
            && rows
                .distances
                .iter()
                .all(|&row| rows.to.first.wrapping_offset(row).addr().is_multiple_of(LINE))
        {
            write_rows::<S, PastCaches, ROWS, VECTORS>(sums, rows, bounds);
        } else {
            write_rows::<S, AllColumns, ROWS, VECTORS>(sums, rows, bounds);
        }
    }
}

/// How a row is written. Not a closure, which would be compiled by itself, without the instruction set.
trait Write<S: Simd> {
    /// # Safety
    ///
    /// The CPU must have `S`'s instruction set, and as many lanes as there are columns must be writable.
    unsafe fn write(to: *mut S::Scalar, value: S::Vector, columns: usize);
}

struct AllColumns;
struct SomeColumns;
struct PastCaches;

impl<S: Simd> Write<S> for AllColumns {
    #[inline(always)]
    unsafe fn write(to: *mut S::Scalar, value: S::Vector, _: usize) {
        // SAFETY: handed on from the caller.
        unsafe { S::store(to, value) }
    }
}

impl<S: Simd> Write<S> for SomeColumns {
    #[inline(always)]
    unsafe fn write(to: *mut S::Scalar, value: S::Vector, columns: usize) {
        // SAFETY: handed on from the caller; the mask leaves out other lanes.
        unsafe { S::store_masked(to, value, S::mask(0, columns)) }
    }
}

impl<S: Simd> Write<S> for PastCaches {
    #[inline(always)]
    unsafe fn write(to: *mut S::Scalar, value: S::Vector, _: usize) {
        // SAFETY: handed on from the caller.
        unsafe { S::stream(to, value) }
    }
}

/// # Safety
///
/// As [`panel`]; rows must begin where `W` can write.
#[inline(always)]
unsafe fn write_rows<S: Simd, W: Write<S>, const ROWS: usize, const VECTORS: usize>(
    sums: &[[S::Vector; VECTORS]; ROWS],
    rows: &PanelRows<'_, S::Scalar>,
    [least, greatest]: [S::Vector; 2],
) {
    let OutputRows { first, columns, .. } = *rows.to;
    // Sums stay in registers only if no row is left out of the loop, whether or not it goes anywhere.
    for row in 0..ROWS {
        if row < rows.distances.len() {
            let to = first.wrapping_offset(rows.distances[row]);
            for vector in 0..VECTORS {
                let before = vector * S::LANES;
                // SAFETY: the caller vouches for the instruction set and the rows.
                unsafe {
                    let value = S::at_most(S::at_least(sums[row][vector], least), greatest);
                    W::write(to.wrapping_add(before), value, columns.saturating_sub(before));
                }
            }
        }
    }
}

/// Channels that are multiplied between two looks at how many are left.
const UNROLL: usize = 4;

/// Adds the products of some channels.
///
/// # Safety
///
/// As [`panel`], for those channels of one tap.
#[inline(always)]
unsafe fn accumulate<S: Simd, const ROWS: usize, const VECTORS: usize, const CHANNELS: usize>(
    sums: &mut [[S::Vector; VECTORS]; ROWS],
    rows: &[*const S::Scalar; MAX_ROWS],
    channel: usize,
    weights: *const S::Scalar,
) {
    // SAFETY: the caller vouches for the instruction set, the rows and the weights.
    unsafe {
        let zero = S::splat(S::Scalar::default());
        let mut columns = [[zero; VECTORS]; CHANNELS];
        if VECTORS == 1 {
            // Row pointers may outnumber the registers that could hold them: several channels per reload keep the loads below
            // what the arithmetic needs.
            for of_channel in 0..CHANNELS {
                columns[of_channel][0] = S::load(weights.add(of_channel * S::LANES));
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
                    S::load(weights.add((of_channel * VECTORS + vector) * S::LANES));
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

/// A panel kernel: see [`panel`].
pub(crate) type PanelKernel<T> = unsafe fn(&PanelTile<'_, T>, &mut [T]) -> PanelSums;

/// The panel kernels of an instruction set, by number of rows.
#[derive(Clone, Copy)]
pub(crate) struct PanelKernels<T: Scalar> {
    /// Rising numbers of rows, each with its kernels of one and two vectors.
    pub(crate) by_rows: &'static [(usize, [PanelKernel<T>; 2])],
}
