//! Tiles whose vectors run over output channels: `rows × (VECTORS · LANES)` sums, one broadcast input per row.
//!
//! ```text
//! tile[row][column] = bias[column] + Σ over taps, channels  x(tap, row)[channel] · weights(tap)[channel][column]
//! ```

mod alone;
mod chains;
mod channels;
mod pair;
mod rows;
mod sums;

use crate::storage::{Convert, LINE, OutputRows};

use alone::alone;
use pair::pair;
pub(crate) use pair::{OutputsAhead, PAIR_ROWS, PairSums};

/// The most rows any panel kernel has.
pub const MAX_ROWS: usize = 12;

/// Channels between two lines that kernels have fetched. More often, the lines that are waited for take up the places of those
/// that are read.
pub(crate) const FETCH_EVERY: usize = 2;

/// Lines that kernels have fetched by a tap of so many channels.
pub fn lines_fetched_by_tap(channels: usize) -> usize {
    channels / FETCH_EVERY
}

/// The same in elements.
pub fn fetched_by_tap<T>(channels: usize) -> usize {
    lines_fetched_by_tap(channels) * (LINE / size_of::<T>())
}

/// Channel 0 of the input of every row of a tile. Rows beyond the input read a run of zeros.
pub type RowPointers<T> = [*const T; MAX_ROWS];

/// One tap of a panel tile, or several that are multiplied as if they were one of as many more channels.
#[derive(Clone, Copy, Debug)]
pub struct PanelTap {
    /// Which of the tile's rows it reads,
    pub rows: usize,
    /// and how many elements from there.
    pub distance: isize,
    /// Its number among the taps whose weights a panel has.
    pub number: usize,
    /// How many taps these are, each of which reads right behind the one before and whose weights lie there, too.
    pub count: usize,
    /// How many the tile has before these.
    pub before: usize,
}

impl PanelTap {
    /// A single tap, the only one of a tile or the first.
    pub fn single(number: usize, rows: usize, distance: isize) -> Self {
        PanelTap { rows, distance, number, count: 1, before: 0 }
    }
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
    /// Channels of a tap that are added up, at most, before their sums are added to the others: errors do not grow with the number of
    /// such chains.
    pub chain: usize,
    /// Where its sums begin among those of each panel.
    pub place: usize,
    /// Where each row begins among the outputs. There may be fewer than the kernel has; it leaves out the others.
    pub distances: &'a [isize],
    /// What is brought near meanwhile.
    pub fetch: Fetch<T>,
}

/// What will be read soon. A line is fetched every few channels, wherever it lies: see [`lines_fetched_by_tap`].
#[derive(Clone, Copy, Debug)]
pub enum Fetch<T> {
    /// The weights that follow each panel's, from so many lines of every tap on.
    Weights(usize),
    /// So many elements from here on, by all panels and taps in turn.
    Inputs(*const T, usize),
}

/// A panel, and where its sums go.
#[derive(Debug)]
pub struct TilePanel<'a, T> {
    /// How wide it is, 1 or 2.
    pub vectors: usize,
    /// `[tap][channel][column]`, of the type that the [kernels](PanelKernels) are for.
    pub weights: *const u8,
    /// The weights that follow, in the same order.
    pub next: *const u8,
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

/// Computes a tile of every panel, whose weights are stored as `Q`.
///
/// # Safety
///
/// The CPU must have `S`'s instruction set. Each of the first `ROWS` row pointers of every tap must be readable at every channel of the
/// taps that it stands for, at their distance; panels must have weights of `channels · VECTORS · LANES` elements wherever a tap's begin. Rows must have
/// somewhere to go that nobody else writes to.
#[inline(always)]
pub(crate) unsafe fn panel<S: Convert<Q>, Q, const ROWS: usize, const VECTORS: usize>(
    tile: &PanelTile<'_, S::Scalar>,
    panels: &mut [TilePanel<'_, S::Scalar>],
) {
    let has_pairs = S::PAIRS && S::IS_ITSELF && (ROWS, VECTORS) == (2 * PAIR_ROWS, 2);
    let paired = if has_pairs { panels.len() / 2 * 2 } else { 0 };
    let (pairs, others) = panels.split_at_mut(paired);
    // SAFETY: handed on from the caller.
    unsafe {
        for (number, panels) in pairs.as_chunks_mut().0.iter_mut().enumerate() {
            pair::<S, Q>(tile, 2 * number, panels);
        }
        for (number, panel) in others.iter_mut().enumerate() {
            alone::<S, Q, ROWS, VECTORS>(tile, paired + number, panel);
        }
    }
}

/// Where a panel has lines fetched at a tap.
#[inline(always)]
fn to_fetch<S: Convert<Q>, Q, const VECTORS: usize>(
    tile: &PanelTile<'_, S::Scalar>,
    number: usize,
    tap: usize,
    panel: &TilePanel<'_, S::Scalar>,
) -> *const S::Scalar {
    let tap_bytes = tile.channels_of_tap * VECTORS * S::LANES * size_of::<Q>();
    let fetched = fetched_by_tap::<S::Scalar>(tile.channels);
    let of_tile = tile.taps.last().map_or(0, |last| last.before + last.count);
    let PanelTap { number: first, count: taps, before, .. } = tile.taps[tap];
    let before = (number * of_tile + before) * fetched;
    match tile.fetch {
        Fetch::Weights(lines) => panel.next.wrapping_add(first * tap_bytes + taps * lines * LINE).cast(),
        Fetch::Inputs(from, count) if before < count => from.wrapping_add(before),
        // What is near already costs the least.
        Fetch::Inputs(..) => panel.weights.wrapping_add(first * tap_bytes).cast(),
    }
}

/// A panel kernel: see [`panel`].
pub(crate) type PanelKernel<T> = unsafe fn(&PanelTile<'_, T>, &mut [TilePanel<'_, T>]);

/// The panel kernels of an instruction set that this CPU has, for weights of one type.
#[derive(Clone, Copy)]
pub struct PanelKernels<T: 'static> {
    /// Rising numbers of rows, each with its kernels of one and two vectors.
    pub(crate) by_rows: &'static [(usize, [PanelKernel<T>; 2])],
}

/// The panel kernels of an instruction set for weights of a type.
macro_rules! panels_of {
    ($simd:ty, $stored:ty, [$($feature:literal),*], [$($rows:literal)*]) => {{
        type Number = <$simd as crate::simd::Simd>::Scalar;
        use crate::panel::{MAX_ROWS, PanelKernels, PanelTile, TilePanel, panel};

        $(#[target_feature(enable = $feature)])*
        unsafe fn panel_kernel<const ROWS: usize, const VECTORS: usize>(
            tile: &PanelTile<'_, Number>,
            panels: &mut [TilePanel<'_, Number>],
        ) {
            // SAFETY: the features are those of the instruction set; the caller vouches for the rest.
            unsafe { panel::<$simd, $stored, ROWS, VECTORS>(tile, panels) }
        }

        const { $(assert!($rows <= MAX_ROWS);)* }
        PanelKernels {
            by_rows: &[$(($rows, [panel_kernel::<$rows, 1>, panel_kernel::<$rows, 2>])),*],
        }
    }};
}
pub(crate) use panels_of;

impl<T> PanelKernels<T> {
    /// None at all.
    pub(crate) const NONE: Self = PanelKernels { by_rows: &[] };

    /// The most rows of a tile; none if there are no kernels.
    pub fn most_rows(&self) -> usize {
        self.by_rows.last().map_or(0, |&(rows, _)| rows)
    }

    /// The rows that the kernel for at least `rows` rows really computes.
    pub fn rows_for(&self, rows: usize) -> usize {
        let fitting = self.by_rows.iter().find(|&&(have, _)| have >= rows);
        fitting.map_or(self.most_rows(), |&(have, _)| have)
    }

    /// Computes a tile of `rows` (as [`rows_for`](Self::rows_for) gave) of every panel.
    ///
    /// # Safety
    ///
    /// The first `rows` row pointers of every tap must be readable at each channel of the taps that it stands for, at their distance, and the
    /// weights of every panel must hold `channels × vectors × lanes` elements wherever a tap's begin, of the type that the kernels
    /// are for. The tile's distances must be between those that the outputs of panels were [made](crate::Output::rows) for, and no
    /// other thread may write there at the same time.
    pub unsafe fn compute(&self, rows: usize, tile: &PanelTile<'_, T>, panels: &mut [TilePanel<'_, T>]) {
        let kernel = self.by_rows.iter().find(|&&(have, _)| have == rows);
        let Some((_, kernels)) = kernel else { panic!("there is no panel kernel of {rows} rows") };
        for as_wide in panels.chunk_by_mut(|one, next| one.vectors == next.vectors) {
            // SAFETY: the CPU has the instruction set, or nobody would have been given `self`; the caller vouches for the pointers.
            unsafe { kernels[as_wide[0].vectors - 1](tile, as_wide) }
        }
    }
}
