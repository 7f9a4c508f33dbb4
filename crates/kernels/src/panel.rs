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

/// Channels between two lines that kernels have fetched. More often, the lines that are waited for take up the places of those
/// that are read.
pub(crate) const FETCH_EVERY: usize = 2;

/// Elements that kernels have fetched by a tap of so many channels.
pub fn fetched_by_tap<T>(channels: usize) -> usize {
    channels / FETCH_EVERY * (LINE / size_of::<T>())
}

/// Channel 0 of the input of every row of a tile. Rows beyond the input read a run of zeros.
pub type RowPointers<T> = [*const T; MAX_ROWS];

/// One tap of a panel tile.
#[derive(Clone, Copy, Debug)]
pub struct PanelTap {
    /// Which of the tile's rows it reads,
    pub rows: usize,
    /// and how many elements from there.
    pub distance: isize,
    /// Its number among the taps whose weights a panel has.
    pub number: usize,
}

/// The positions of a tile, and what is done there, whatever the panel.
#[derive(Clone, Copy, Debug)]
pub struct PanelTile<'a, T> {
    /// What taps read. Where all rows are inside the input, taps have the same ones.
    pub rows: &'a [RowPointers<T>],
    /// The taps, summed in this order.
    pub taps: &'a [PanelTap],
    /// Channels to sum over, in rising order. They are side by side in the input.
    pub channels: usize,
    /// Channels of a tap's weights, those among them that are summed over in other steps included.
    pub channels_of_tap: usize,
    /// Whether there are sums to add to. Sums over many channels are made in several steps, so that what a step reads stays in the
    /// caches.
    pub resume: bool,
    /// Where its sums begin among those of each panel.
    pub place: usize,
    /// Where each row begins among the outputs. There may be fewer than the kernel has; it leaves out the others.
    pub distances: &'a [isize],
    /// What is brought near meanwhile.
    pub fetch: Fetch<T>,
}

/// What will be read soon. A line is fetched every few channels, wherever it lies: see [`fetched_by_tap`].
#[derive(Clone, Copy, Debug)]
pub enum Fetch<T> {
    /// The weights that follow each panel's, from so many elements of every tap on.
    Weights(usize),
    /// So many elements from here on, by all panels and taps in turn.
    Inputs(*const T, usize),
}

/// A panel, and where its sums go.
#[derive(Debug)]
pub struct TilePanel<'a, T> {
    /// How wide it is, 1 or 2.
    pub vectors: usize,
    /// `[tap][channel][column]`
    pub weights: *const T,
    /// The weights that follow, in the same order.
    pub next: *const T,
    /// The sums of all tiles, `[row][column]` each.
    pub sums: &'a mut [T],
    /// In the last step, what is added to the sums: one value per column.
    pub bias: Option<&'a [T]>,
    /// In the last step, where sums go that are finite; the columns behind theirs are left out. Lent: whoever copies them for every
    /// tile reads back several short stores at once, and so waits until all stores before have reached the cache, those of the
    /// last outputs among them.
    pub to: Option<&'a OutputRows<'a, T>>,
    /// What became of the sums of the last tile.
    pub became: PanelSums,
}

/// Where the rows of a tile go as soon as they are complete.
#[derive(Clone, Copy, Debug)]
pub struct PanelRows<'a, T> {
    /// The outputs; the columns behind theirs are left out.
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

/// Computes a tile of every panel.
///
/// # Safety
///
/// The CPU must have `S`'s instruction set. Each of the first `ROWS` row pointers of every tap must be readable at every channel, at
/// the tap's distance; panels must have weights of `channels · VECTORS · LANES` elements wherever a tap's begin. Rows must have
/// somewhere to go that nobody else writes to.
#[inline(always)]
pub(crate) unsafe fn panel<S: Simd, const ROWS: usize, const VECTORS: usize>(
    tile: &PanelTile<'_, S::Scalar>,
    panels: &mut [TilePanel<'_, S::Scalar>],
) {
    let width = VECTORS * S::LANES;
    let tap_len = tile.channels_of_tap * width;
    let fetched = fetched_by_tap::<S::Scalar>(tile.channels);
    for (number, panel) in panels.iter_mut().enumerate() {
        let out = &mut panel.sums[tile.place..][..ROWS * width];
        assert!(panel.bias.is_none_or(|bias| bias.len() >= width));
        let out = out.as_mut_ptr();
        // SAFETY: the caller vouches for the instruction set, the rows and the weights; bias and out were just checked.
        panel.became = unsafe {
            let zero = S::splat(S::Scalar::default());
            let mut sums = [[zero; VECTORS]; ROWS];
            if tile.resume {
                for row in 0..ROWS {
                    for vector in 0..VECTORS {
                        sums[row][vector] = S::load(out.add(row * width + vector * S::LANES));
                    }
                }
            }
            for (index, tap) in tile.taps.iter().enumerate() {
                let weights = panel.weights.add(tap.number * tap_len);
                let before = (number * tile.taps.len() + index) * fetched;
                let fetch = match tile.fetch {
                    Fetch::Weights(from) => panel.next.wrapping_add(tap.number * tap_len + from),
                    Fetch::Inputs(from, count) if before < count => from.wrapping_add(before),
                    // What is near already costs the least.
                    Fetch::Inputs(..) => weights,
                };
                let rows = &tile.rows[tap.rows];
                if !S::accumulate_panel(&mut sums, rows, tap.distance, weights, fetch, tile.channels) {
                    let rows = moved(rows, tap.distance);
                    accumulate_tap::<S, ROWS, VECTORS>(&mut sums, &rows, weights, fetch, tile.channels);
                }
            }
            let rows = panel.to.map(|to| PanelRows { to, distances: tile.distances });
            finish::<S, ROWS, VECTORS>(&mut sums, panel.bias, rows, out)
        };
    }
}

/// Rows so many elements further on.
#[inline(always)]
fn moved<T>(rows: &RowPointers<T>, distance: isize) -> RowPointers<T> {
    rows.map(|row| row.wrapping_offset(distance))
}

/// Adds the bias, and stores the sums into `out`, `[row][column]`, or where their rows go.
///
/// # Safety
///
/// As [`panel`]; bias and `out` must have room for the sums.
#[inline(always)]
unsafe fn finish<S: Simd, const ROWS: usize, const VECTORS: usize>(
    sums: &mut [[S::Vector; VECTORS]; ROWS],
    bias: Option<&[S::Scalar]>,
    rows: Option<PanelRows<'_, S::Scalar>>,
    out: *mut S::Scalar,
) -> PanelSums {
    // SAFETY: the caller vouches for the instruction set, the bias, the rows and `out`.
    unsafe {
        let zero = S::splat(S::Scalar::default());
        let mut trace = zero;
        if let Some(bias) = bias {
            for vector in 0..VECTORS {
                let bias = S::load(bias.as_ptr().add(vector * S::LANES));
                let mut of_vector = zero;
                for sums in &mut *sums {
                    // Zero times anything but a finite value is NaN.
                    of_vector = S::multiply_add(sums[vector], zero, of_vector);
                    sums[vector] = S::add(sums[vector], bias);
                }
                trace = S::add(trace, of_vector);
            }
        }
        let finite = !S::any_nan(trace);
        if let Some(rows) = rows.as_ref().filter(|_| finite) {
            write::<S, ROWS, VECTORS>(sums, rows);
            return PanelSums::Written;
        }
        for row in 0..ROWS {
            for vector in 0..VECTORS {
                S::store(out.add((row * VECTORS + vector) * S::LANES), sums[row][vector]);
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

/// Adds the products of all channels of a tap.
///
/// # Safety
///
/// As [`panel`].
#[inline(always)]
unsafe fn accumulate_tap<S: Simd, const ROWS: usize, const VECTORS: usize>(
    sums: &mut [[S::Vector; VECTORS]; ROWS],
    rows: &RowPointers<S::Scalar>,
    mut weights: *const S::Scalar,
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
            accumulate::<S, ROWS, VECTORS, UNROLL>(sums, rows, channel, weights);
            weights = weights.add(UNROLL * width);
        }
        for channel in together..channels {
            accumulate::<S, ROWS, VECTORS, 1>(sums, rows, channel, weights);
            weights = weights.add(width);
        }
    }
}

/// Adds the products of some channels.
///
/// # Safety
///
/// As [`panel`], for those channels of one tap.
#[inline(always)]
unsafe fn accumulate<S: Simd, const ROWS: usize, const VECTORS: usize, const CHANNELS: usize>(
    sums: &mut [[S::Vector; VECTORS]; ROWS],
    rows: &RowPointers<S::Scalar>,
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
pub(crate) type PanelKernel<T> = unsafe fn(&PanelTile<'_, T>, &mut [TilePanel<'_, T>]);

/// The panel kernels of an instruction set, by number of rows.
#[derive(Clone, Copy)]
pub(crate) struct PanelKernels<T: Scalar> {
    /// Rising numbers of rows, each with its kernels of one and two vectors.
    pub(crate) by_rows: &'static [(usize, [PanelKernel<T>; 2])],
}
