//! Tiles whose vectors run over output channels: `rows × (VECTORS · LANES)` sums, one broadcast input per row.
//!
//! ```text
//! tile[row][column] = bias[column] + Σ over taps, channels  x(tap, row)[channel] · weights(tap)[channel][column]
//! ```

mod alone;
mod channels;
mod pair;
mod rows;
mod sums;

use crate::simd::{Scalar, Simd};
use crate::storage::{LINE, OutputRows};

use alone::alone;
use pair::pair;
pub(crate) use pair::{OutputsAhead, PAIR_ROWS, PairSums};

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
    let paired = if S::PAIRS && (ROWS, VECTORS) == (2 * PAIR_ROWS, 2) { panels.len() / 2 * 2 } else { 0 };
    let (pairs, others) = panels.split_at_mut(paired);
    // SAFETY: handed on from the caller.
    unsafe {
        for (number, panels) in pairs.as_chunks_mut().0.iter_mut().enumerate() {
            pair::<S>(tile, 2 * number, panels);
        }
        for (number, panel) in others.iter_mut().enumerate() {
            alone::<S, ROWS, VECTORS>(tile, paired + number, panel);
        }
    }
}

/// Where a panel has lines fetched at a tap.
#[inline(always)]
fn to_fetch<S: Simd, const VECTORS: usize>(
    tile: &PanelTile<'_, S::Scalar>,
    number: usize,
    tap: usize,
    panel: &TilePanel<'_, S::Scalar>,
) -> *const S::Scalar {
    let tap_len = tile.channels_of_tap * VECTORS * S::LANES;
    let fetched = fetched_by_tap::<S::Scalar>(tile.channels);
    let before = (number * tile.taps.len() + tap) * fetched;
    let number = tile.taps[tap].number;
    match tile.fetch {
        Fetch::Weights(from) => panel.next.wrapping_add(number * tap_len + from),
        Fetch::Inputs(from, count) if before < count => from.wrapping_add(before),
        // What is near already costs the least.
        Fetch::Inputs(..) => panel.weights.wrapping_add(number * tap_len),
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
