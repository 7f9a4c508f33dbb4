//! Cutting a problem into tasks whose memory stays in the caches.

use std::ops::Range;

use outstride_kernels::{Real, TILE_ROWS};

use super::super::axis::{EngineAxis, Span};
use super::super::boxes::{Boxes, Workers};
use super::super::channels;
use super::super::pack::PackedFilter;
use super::bundle::Bundle;
use super::matrix;
use super::rows::Strips;
use super::sums::PanelGroup;
use super::winograd::{Points, WinogradWeights, product_rows};
use super::{Arithmetic, PanelPlan, Stores, longest};

/// Weights that one step of the sums of a panel group reads: they stay in the second-level cache while the positions of a
/// box pass by.
const WEIGHT_BYTES: usize = 1 << 18;

/// Input that one step reads.
const INPUT_BYTES: usize = 1 << 19;

/// Input of a whole box, all steps together.
const BOX_BYTES: usize = 1 << 22;

/// Input of a whole box, cut into parts.
const PART_BYTES: usize = 1 << 20;

/// The same, where the weights do not stay in the second-level cache and every box means another pass over them: for numbers
/// in one part, and what every other part adds. The more parts, the more products there are per byte.
const FEW_PASSES_BYTES: [usize; 2] = [1 << 20, 5 << 17];

/// Input of a whole box, transformed into points, which are fetched one after the other.
const POINT_BYTES: usize = 1 << 21;

/// The same, where the weights of all points do not stay in any cache, so that every box means another pass over them.
const FEW_PASSES_POINT_BYTES: usize = 1 << 23;

/// Sums that wait to be stored.
const SUM_BYTES: usize = 3 << 17;

/// Where every step reads other inputs, more weights and more products make better use of them.
const WINOGRAD_WEIGHT_BYTES: usize = 1 << 19;
const WINOGRAD_SUM_BYTES: usize = 1 << 20;

/// Where all weights take more than this, threads share them out rather than each passing over all of them.
const SHARED_WEIGHT_BYTES: usize = 1 << 20;

/// How many times as large as the input all weights are, at least, where threads share out bundles of phases: with each of them, the
/// input is copied once more.
const TIMES_THE_INPUT: usize = 4;

impl PanelPlan {
    /// Cuts the positions into boxes, and the panels into parts where there are too few boxes.
    pub(super) fn cut<T: Real>(
        &mut self,
        axes: &[EngineAxis<'_>],
        filter: &PackedFilter<T>,
        workers: Workers,
    ) {
        let members = self.waiting_members();
        let panels = self.bundles.iter().map(Bundle::panels).max().unwrap_or(1);
        let rows = filter.kernels.panel_rows();
        let sums = members * 2 * filter.kernels.lanes() * size_of::<T>();
        let for_splits = Workers { turns: workers.turns.min(self.most_splits_per_thread()), ..workers };
        let threads = workers.threads;
        let space = longest(&self.bundles, axes.len());
        let weights = self.weight_bytes(filter) / filter.groups.max(1);
        // Threads take lines of the output from each other, and those that caches fetch with them. But where the weights are many,
        // sharing them out matters more.
        let grain = filter.grain();
        let of_line = if self.stores_tiles_at_once() { grain.panels_of_line() } else { 1 };
        self.panels_of_lines = if self.stores_tiles_at_once() && weights <= SHARED_WEIGHT_BYTES {
            grain.panels_of_two_lines()
        } else {
            of_line
        };
        let bytes_of_position = match self.arithmetic {
            Arithmetic::Tiles => filter.part_bytes(),
            Arithmetic::Vectors | Arithmetic::Winograd => filter.in_channels * size_of::<T>(),
        };
        let input = self.input_positions(axes, &space).saturating_mul(bytes_of_position);
        let are_enough = |shares: usize| match self.arithmetic {
            Arithmetic::Vectors | Arithmetic::Winograd => {
                weights > SHARED_WEIGHT_BYTES && shares >= for_splits.tasks()
            }
            // Boxes mean passes over the weights, and parts of the panels mean copies of the input: the larger is shared out.
            Arithmetic::Tiles => weights > input && (shares >= 2 * threads || shares.is_multiple_of(threads)),
        };
        let mut shares = panels.div_ceil(self.panels_of_lines);
        // Many phases of few panels, as many in every bundle, that are much more than the input.
        let are_even = self.bundles.windows(2).all(|pair| pair[0].jobs() == pair[1].jobs());
        let suits_bundles = are_even && weights / TIMES_THE_INPUT > input;
        let by_bundles = suits_bundles && !are_enough(shares) && are_enough(self.bundles.len());
        if by_bundles {
            shares = self.bundles.len();
        }
        let by_panels = are_enough(shares);
        let granules = self.granules();
        let per_row: usize = granules.iter().product();
        let rows_there = |chunk: &[usize]| chunk.iter().product::<usize>() / per_row;
        let fits = |chunk: &[usize]| {
            let positions: usize = chunk.iter().product();
            let spans: Vec<Span> = chunk.iter().map(|&count| Span { first: 0, count }).collect();
            let input = self.input_positions(axes, &spans);
            let bytes = input.saturating_mul(size_of::<T>());
            let fits = match self.arithmetic {
                Arithmetic::Vectors => {
                    bytes.saturating_mul(self.blocks.size) <= INPUT_BYTES
                        && bytes.saturating_mul(filter.in_channels) <= BOX_BYTES
                }
                Arithmetic::Tiles => {
                    let few_passes = FEW_PASSES_BYTES[0] + (filter.grain().parts() - 1) * FEW_PASSES_BYTES[1];
                    let limit = if weights > SHARED_WEIGHT_BYTES { few_passes } else { PART_BYTES };
                    input.saturating_mul(filter.part_bytes()) <= limit
                }
                Arithmetic::Winograd => {
                    let points = self.points_of_box(filter, &spans);
                    let far = filter.winograd.as_ref().is_ok_and(WinogradWeights::are_far);
                    let limit = if far { FEW_PASSES_POINT_BYTES } else { POINT_BYTES };
                    points.saturating_mul(size_of::<T>()) <= limit
                }
            } && positions.saturating_mul(sums) <= SUM_BYTES;
            fits || rows_there(chunk) <= rows
        };
        let worthwhile = |chunk: &[usize]| rows_there(chunk) >= 2 * rows;
        let cut = |granules: &[usize]| Boxes::cut(space.clone(), granules, &self.reach, fits);
        let (mut boxes, mut granules) = (cut(&granules), granules);
        if let Some(whole_blocks) = self.whole_blocks(space[0].count) {
            let others = cut(&whole_blocks);
            // With fewer boxes than threads, each thread would copy more of the input than now.
            let fewer = (threads..boxes.len()).contains(&others.len());
            if fewer && others.largest().is_some_and(|chunk| fits(&chunk)) {
                (boxes, granules) = (others, whole_blocks);
            }
        }
        if !by_panels {
            if self.stores == Stores::Positions && filter.groups > 1 {
                // Groups share lines of a channels-last output. Threads that write the same ones take these from each other,
                // so that each has a box of its own.
                boxes = boxes.spread(&granules, Workers { turns: 1, ..workers }, 1, worthwhile);
            }
            boxes = boxes.spread(&granules, workers, filter.groups, worthwhile);
        }
        self.boxes = boxes;
        let items = (self.boxes.len() * filter.groups).max(1);
        if items.saturating_mul(shares) < threads && !by_bundles {
            self.panels_of_lines = of_line;
            shares = panels.div_ceil(of_line);
        }
        self.splits_bundles = by_bundles;
        self.splits = for_splits.parts(items, shares, 1);
    }

    /// Granules of boxes that have whole blocks of rows of every position, so that no zeros are needed around the input.
    fn whole_blocks(&self, batch: usize) -> Option<Vec<usize>> {
        let are_whole = self.arithmetic == Arithmetic::Tiles && !self.are_apart(batch);
        are_whole.then(|| std::iter::once(self.rows_at_once).chain(self.granules().drain(1..)).collect())
    }

    /// Per axis, of what boxes have whole multiples.
    fn granules(&self) -> Vec<usize> {
        self.tilings.iter().map(|tiling| tiling.granule()).collect()
    }

    /// Bytes of the weights that the sums are made of, before any transform.
    fn weight_bytes<T: Real>(&self, filter: &PackedFilter<T>) -> usize {
        match (self.arithmetic, &filter.matrix) {
            (Arithmetic::Tiles, Ok(weights)) => weights.bytes(),
            // Whether or not some plan before this one had them widened.
            _ => filter.computed_bytes(),
        }
    }

    /// A thread that takes several parts of the panels of a box copies its input once, but transforms it every time.
    fn most_splits_per_thread(&self) -> usize {
        match self.arithmetic {
            Arithmetic::Tiles => 4,
            Arithmetic::Vectors => 2,
            // Transforms are a good part of all work.
            Arithmetic::Winograd => 1,
        }
    }

    /// The tiles of transforms that hold the positions of some spans; without transforms, the positions.
    pub(super) fn transformed_tiles(&self, spans: &[Span]) -> usize {
        spans.iter().zip(&self.tilings).map(|(span, tiling)| tiling.tiles(span.count)).product()
    }

    /// The most elements of points that are kept of a box.
    pub(super) fn points_of_box<T: Real>(&self, filter: &PackedFilter<T>, spans: &[Span]) -> usize {
        let Ok(weights) = &filter.winograd else { return 0 };
        let tiles = self.transformed_tiles(spans);
        let len = |bundle| Points::<T>::len(bundle, weights.scheme(), tiles, filter.in_channels);
        self.bundles.iter().map(len).max().unwrap_or(0)
    }

    /// Rows of a panel's sums and products, of all members together, given those of a member's sums and the transformed tiles
    /// of a box.
    pub(super) fn rows_of_panel(&self, bundle: &Bundle, rows: usize, tiles: usize) -> usize {
        rows * bundle.members.len() + self.points * product_rows(tiles)
    }

    /// How many panels of every member of a bundle are computed before they are stored, at so many rows each.
    pub(super) fn panels_at_once<T: Real>(
        &self,
        filter: &PackedFilter<T>,
        bundle: &Bundle,
        rows: usize,
    ) -> usize {
        let row_bytes = 2 * filter.kernels.lanes() * size_of::<T>();
        let by_sums = self.sum_bytes() / (rows * row_bytes).max(1);
        by_sums.clamp(1, self.near_panels(filter, bundle))
    }

    /// Bytes of the sums, and products, of panels that are computed before they are stored.
    pub(super) fn sum_bytes(&self) -> usize {
        match self.arithmetic {
            Arithmetic::Winograd => WINOGRAD_SUM_BYTES,
            Arithmetic::Vectors | Arithmetic::Tiles => SUM_BYTES,
        }
    }

    /// How many panels of every member of a bundle have weights that stay near together. At least one.
    pub(super) fn near_panels<T: Real>(&self, filter: &PackedFilter<T>, bundle: &Bundle) -> usize {
        let row_bytes = 2 * filter.kernels.lanes() * size_of::<T>();
        let (weights, taps) = match self.arithmetic {
            Arithmetic::Winograd => (WINOGRAD_WEIGHT_BYTES, 1),
            Arithmetic::Vectors | Arithmetic::Tiles => (WEIGHT_BYTES, bundle.most_met_taps()),
        };
        (weights / (taps * self.blocks.size * row_bytes).max(1)).clamp(1, bundle.panels())
    }

    /// Of so many tiles of vectors, those whose sums wait to be stored.
    pub(super) fn waiting_tiles(&self, tiles: usize) -> usize {
        let are_whole = self.arithmetic == Arithmetic::Vectors && self.blocks.iter().len() == 1;
        if are_whole && self.stores == Stores::Positions { tiles.min(1) } else { tiles }
    }

    /// Members of a bundle whose sums wait for each other.
    pub(super) fn waiting_members(&self) -> usize {
        let waiting = |bundle: &Bundle| if self.stores_tiles_at_once() { 1 } else { bundle.members.len() };
        self.bundles.iter().map(waiting).max().unwrap_or(1)
    }

    /// Tiles that the positions of a box are cut into.
    pub(super) fn tiles_of_box(&self, axes: &[EngineAxis<'_>], spans: &[Span]) -> usize {
        let positions = spans.iter().map(|span| span.count).product();
        self.strips(&self.needed(axes, spans), spans).tiles(positions, TILE_ROWS)
    }

    /// The runs of positions that tiles are cut from, if so much input is copied.
    pub(super) fn strips(&self, needed: &[Span], spans: &[Span]) -> Strips {
        let (strides, _) = channels::position_strides(needed, &self.borders.order);
        let strides: Vec<isize> = strides.into_iter().map(|stride| stride as isize).collect();
        let counts: Vec<usize> = spans.iter().map(|span| span.count).collect();
        Strips::new(&counts, &self.borders.order, &strides, TILE_ROWS)
    }

    /// Whether sums of tiles are stored before there are others.
    fn stores_tiles_at_once(&self) -> bool {
        self.arithmetic == Arithmetic::Tiles && self.stores == Stores::Positions
    }

    /// The end of the panels of a bundle that tiles compute together, from the first of some on: all of one width, if their sums do
    /// not wait.
    pub(super) fn tile_panels_at_once<T: Real>(
        &self,
        filter: &PackedFilter<T>,
        bundle: &Bundle,
        mut panels: Range<usize>,
    ) -> usize {
        let vectors = |panel: usize| filter.panel(bundle.members[0].panels.start + panel).vectors;
        let first = panels.start;
        let other = panels.find(|&panel| vectors(panel) != vectors(first));
        if self.stores_tiles_at_once() { other.unwrap_or(panels.end) } else { first + 1 }
    }

    /// Elements that the sums of tiles take.
    pub(super) fn tile_sums<T: Real>(&self, panels: &PanelGroup<'_, T>) -> usize {
        if self.stores_tiles_at_once() { panels.len_of_one().max(matrix::WAITING_SUMS) } else { panels.len() }
    }
}
