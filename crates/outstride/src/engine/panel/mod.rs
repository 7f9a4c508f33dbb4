//! The panel path: tiles of positions × (output channels, phases). Inputs are broadcast, weights fill vectors.
//!
//! A task takes a box of positions and some of the panels. It copies the input of the box (unless channels are side by
//! side already), computes the sums of a few panels at all its positions, and stores them.

mod bundle;
mod exact;
mod matrix;
mod planes;
mod rows;
mod run;
mod shared_planes;
mod store;
mod sums;
mod taps;
mod winograd;

use std::ops::Range;
use std::sync::Arc;

use outstride_kernels::{PART_ROW, Real, TILE_ROWS};

use super::Strides;
use super::axis::{EngineAxis, Span};
use super::boxes::Boxes;
use super::channels::{self, ChannelBlocks};
use super::pack::{Form, PackedFilter, Panels};
use bundle::{Bundle, Member};
use matrix::parts_len;
pub(crate) use matrix::{Grain, MatrixWeights};
use rows::Strips;
pub(crate) use winograd::WinogradWeights;
use winograd::{Scheme, product_rows, transforms};

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

/// Input of a whole box, transformed into points.
const POINT_BYTES: usize = 1 << 20;

/// Sums that wait to be stored.
const SUM_BYTES: usize = 3 << 17;

/// Where all weights take more than this, threads share them out rather than each passing over all of them.
const SHARED_WEIGHT_BYTES: usize = 1 << 20;

/// From this share of zeros on, rows are arranged so that whole taps fall on them.
const WORTHWHILE_BORDER_SHARE: f64 = 0.1;

/// How the panel path cuts a problem into tasks.
#[derive(Clone, Debug)]
pub(crate) struct PanelPlan {
    bundles: Arc<[Bundle]>,
    /// Boxes of positions, counted from the first one of each phase.
    boxes: Boxes,
    /// Into how many parts the panels are dealt, where there are too few boxes for the threads.
    splits: usize,
    blocks: ChannelBlocks,
    /// Per axis, the largest delta, and the first positions of the phases from the least to the greatest.
    reach: Vec<usize>,
    starts: Vec<(i64, i64)>,
    /// Whether input channels are side by side, so that nothing is copied.
    in_place: bool,
    stores: Stores,
    /// The axes, slowest first, in which positions become rows of tiles. With the batch fastest, the rows of small maps
    /// have their borders in common, and whole taps can be left out.
    order: Vec<usize>,
    arithmetic: Arithmetic,
}

/// How sums are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stores {
    /// Position by position.
    Positions,
    /// As runs of positions per channel: each member has one phase, each bundle all phases of the last axis.
    Planes,
    /// As runs of positions per channel, of one panel with all phases.
    SharedPlanes,
}

/// What computes the sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arithmetic {
    /// Multiply-adds of vectors.
    Vectors,
    /// Matrix tiles.
    Tiles,
    /// Multiply-adds of vectors, after Winograd's transforms.
    Winograd,
}

fn panels_of<T: Real>(filter: &PackedFilter<T>) -> &Panels {
    match &filter.form {
        Form::Panels(panels) => panels,
        Form::Depthwise => unreachable!("the planner sends depthwise filters elsewhere"),
    }
}

impl PanelPlan {
    /// By vectors, for one thread.
    pub(crate) fn new<T: Real>(axes: &[EngineAxis<'_>], filter: &PackedFilter<T>, strides: &Strides) -> Self {
        let panels = panels_of(filter);
        let last = &axes[axes.len() - 1];
        let planes = strides.y_channel != 1 && last.y_stride == 1 && last.is_covered();
        let rows_of_phases = if planes { bundle::rows_of_phases(axes, filter, panels) } else { None };
        let stores = match &rows_of_phases {
            Some(_) => Stores::Planes,
            // The phases of a single channel are runs as they are.
            None if planes && panels.panels.len() == 1 && filter.out_channels > 1 => Stores::SharedPlanes,
            None => Stores::Positions,
        };
        let bundles = rows_of_phases.unwrap_or_else(|| bundle::single(axes, filter, panels));
        let mut order: Vec<usize> = (0..axes.len()).collect();
        if axes[0].output > 1 && border_share(axes) >= WORTHWHILE_BORDER_SHARE {
            order.rotate_left(1);
        }
        let mut plan = PanelPlan {
            boxes: Boxes::whole(longest(&bundles, axes.len())),
            starts: (0..axes.len()).map(|axis| starts(&bundles, axis)).collect(),
            bundles: bundles.into(),
            splits: 1,
            blocks: ChannelBlocks::new(filter.in_channels),
            reach: axes.iter().map(EngineAxis::reach).collect(),
            in_place: strides.x_readable && (strides.x_channel == 1 || filter.in_channels == 1),
            stores,
            order,
            arithmetic: Arithmetic::Vectors,
        };
        plan.cut(axes, filter, 1);
        plan
    }

    /// The same by matrix tiles, for one thread.
    pub(crate) fn by_tiles<T: Real>(&self, axes: &[EngineAxis<'_>], filter: &PackedFilter<T>) -> Self {
        let mut plan = PanelPlan { in_place: false, arithmetic: Arithmetic::Tiles, ..self.clone() };
        plan.cut(axes, filter, 1);
        plan
    }

    /// The same by Winograd's filtering, for one thread.
    pub(crate) fn by_winograd<T: Real>(&self, axes: &[EngineAxis<'_>], filter: &PackedFilter<T>) -> Self {
        let mut plan = PanelPlan {
            in_place: false,
            blocks: ChannelBlocks::whole(filter.in_channels),
            arithmetic: Arithmetic::Winograd,
            ..self.clone()
        };
        plan.cut(axes, filter, 1);
        plan
    }

    /// The same for so many threads.
    pub(crate) fn for_threads<T: Real>(
        mut self,
        axes: &[EngineAxis<'_>],
        filter: &PackedFilter<T>,
        threads: usize,
    ) -> Self {
        self.cut(axes, filter, threads);
        self
    }

    /// Cuts the positions into boxes, and the panels into parts where there are too few boxes.
    fn cut<T: Real>(&mut self, axes: &[EngineAxis<'_>], filter: &PackedFilter<T>, threads: usize) {
        let members = self.bundles.iter().map(|bundle| bundle.members.len()).max().unwrap_or(1);
        let panels = self.bundles.iter().map(Bundle::panels).max().unwrap_or(1);
        let rows = filter.kernels.panel_rows();
        let sums = members * 2 * filter.kernels.lanes() * size_of::<T>();
        let wanted = if threads == 1 { 1 } else { 4 * threads };
        let weights = filter.bytes() / filter.groups.max(1);
        let by_panels = weights > SHARED_WEIGHT_BYTES && panels >= wanted;
        // Outputs of a tile are computed together, wherever boxes begin, so that boxes do not change them.
        let granules = self.scheme(filter).map_or_else(|| vec![1; axes.len()], Scheme::outputs);
        let per_row: usize = granules.iter().product();
        let accept = |chunk: &[usize], boxes: usize| {
            let positions: usize = chunk.iter().product();
            let spans: Vec<Span> = chunk.iter().map(|&count| Span { first: 0, count }).collect();
            let input = self.input_positions(axes, filter, &spans);
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
                    let points = self.points_of_box(filter, chunk);
                    points.saturating_mul(filter.in_channels * size_of::<T>()) <= POINT_BYTES
                }
            } && positions.saturating_mul(sums) <= SUM_BYTES;
            let rows_there = positions / per_row;
            (fits || rows_there <= rows)
                && (by_panels || boxes * filter.groups >= wanted || rows_there <= 4 * rows)
        };
        let space = longest(&self.bundles, axes.len());
        self.boxes = Boxes::cut(space, &granules, accept);
        let items = (self.boxes.len() * filter.groups).max(1);
        self.splits = if items < wanted { wanted.div_ceil(items).min(panels).max(1) } else { 1 };
    }

    /// How often the weights are passed over.
    pub(crate) fn passes(&self) -> usize {
        self.boxes.len()
    }

    pub(crate) fn tasks<T: Real>(&self, filter: &PackedFilter<T>) -> usize {
        filter.groups * self.boxes.len() * self.splits
    }

    /// An upper bound of the scratch bytes of one thread.
    pub(crate) fn workspace<T: Real>(&self, axes: &[EngineAxis<'_>], filter: &PackedFilter<T>) -> usize {
        if self.boxes.len() == 0 {
            return 0;
        }
        let spans = self.boxes.get(0);
        let rows = filter.kernels.panel_rows();
        let positions: usize = spans.iter().map(|span| span.count).product();
        let chunk: Vec<usize> = spans.iter().map(|span| span.count).collect();
        let tiles = self.tiles_of_box(filter, &chunk);
        let sums = |bundle: &Bundle| {
            let rows =
                positions.div_ceil(rows) * rows * bundle.members.len() + self.product_rows(filter, tiles);
            self.panels_at_once(filter, bundle, rows) * rows * 2 * filter.kernels.lanes()
        };
        let sums = self.bundles.iter().map(sums).max().unwrap_or(0);
        let input = self.input_positions(axes, filter, &spans);
        let input = match self.arithmetic {
            Arithmetic::Vectors if self.in_place => 0,
            Arithmetic::Vectors => input * self.blocks.size * self.blocks.iter().len() * size_of::<T>(),
            Arithmetic::Tiles => {
                parts_len(input, filter) * size_of::<u16>() + input * PART_ROW * size_of::<T>()
            }
            Arithmetic::Winograd => {
                (input + self.points_of_box(filter, &chunk)) * filter.in_channels * size_of::<T>()
            }
        };
        sums * size_of::<T>() + input
    }

    /// The most tiles of transformed inputs of a box with so many positions per axis.
    fn tiles_of_box<T: Real>(&self, filter: &PackedFilter<T>, chunk: &[usize]) -> usize {
        let Some(scheme) = self.scheme(filter) else { return 0 };
        chunk.iter().zip(scheme.outputs()).map(|(count, outputs)| count.div_ceil(outputs)).product()
    }

    /// The most points that are kept of such a box.
    fn points_of_box<T: Real>(&self, filter: &PackedFilter<T>, chunk: &[usize]) -> usize {
        let points = self.scheme(filter).map_or(0, Scheme::points);
        let transforms = self.bundles.iter().map(transforms).max().unwrap_or(1);
        self.tiles_of_box(filter, chunk).saturating_mul(points * transforms)
    }

    /// Rows of products of a panel with so many tiles.
    fn product_rows<T: Real>(&self, filter: &PackedFilter<T>, tiles: usize) -> usize {
        self.scheme(filter).map_or(0, |scheme| scheme.points() * product_rows(tiles))
    }

    /// Elements of the points that all tiles of all members have, and of their products.
    pub(crate) fn transformed<T: Real>(&self, filter: &PackedFilter<T>) -> (f64, f64) {
        let Some(scheme) = self.scheme(filter) else { return (0.0, 0.0) };
        let (mut points, mut products) = (0.0, 0.0);
        for bundle in self.bundles.iter() {
            let tiles = (self.tiles_of_box(filter, &bundle.counts) * scheme.points() * filter.groups) as f64;
            points += tiles * (transforms(bundle) * filter.in_channels) as f64;
            let columns: usize = bundle.members.iter().map(|member| self.columns_of(filter, member)).sum();
            products += tiles * columns as f64;
        }
        (points, products)
    }

    /// Columns of all panels of a member.
    fn columns_of<T: Real>(&self, filter: &PackedFilter<T>, member: &Member) -> usize {
        let panels = &panels_of(filter).panels[member.panels.clone()];
        panels.iter().map(|panel| panel.vectors * filter.kernels.lanes()).sum()
    }

    /// Multiply-adds executed, those with padded columns, unused rows and zero borders included.
    pub(crate) fn executed<T: Real>(&self, axes: &[EngineAxis<'_>], filter: &PackedFilter<T>) -> f64 {
        let of_member = |member: &Member| {
            let counts: Vec<usize> = member.spans.iter().map(|span| span.count).collect();
            let rows = match &filter.winograd {
                Ok(weights) if self.arithmetic == Arithmetic::Winograd => {
                    (self.tiles_of_box(filter, &counts) * weights.points(member.panels.start).len()) as f64
                }
                _ => counts.iter().map(|&count| count as f64).product::<f64>() * member.taps() as f64,
            };
            rows * self.columns_of(filter, member) as f64
        };
        let executed: f64 = self.bundles.iter().flat_map(|bundle| &bundle.members).map(of_member).sum();
        let (channels, rows) = match self.arithmetic {
            Arithmetic::Vectors | Arithmetic::Winograd => (filter.in_channels, 1.0),
            Arithmetic::Tiles => {
                let row = filter.grain().row_channels();
                (filter.in_channels.next_multiple_of(row), self.rows_of_tiles(axes, filter))
            }
        };
        executed * rows * (channels * filter.groups) as f64
    }

    /// Of the tiles of a box, the rows per position.
    fn rows_of_tiles<T: Real>(&self, axes: &[EngineAxis<'_>], filter: &PackedFilter<T>) -> f64 {
        if self.boxes.len() == 0 {
            return 1.0;
        }
        let spans = self.boxes.get(0);
        let (strides, _) = channels::position_strides(&self.needed(axes, filter, &spans), &self.order);
        let strides: Vec<isize> = strides.into_iter().map(|stride| stride as isize).collect();
        let tiles = Strips::tiles(&spans, &self.order, &strides, TILE_ROWS);
        let positions: usize = spans.iter().map(|span| span.count).product();
        (tiles.next_multiple_of(2) * TILE_ROWS) as f64 / positions.max(1) as f64
    }

    /// Cycles spent on pointing taps and on calling kernels.
    pub(crate) fn overhead<T: Real>(&self, filter: &PackedFilter<T>) -> f64 {
        let of_member = |member: &Member| {
            let positions: f64 = member.spans.iter().map(|span| span.count as f64).product();
            let per_tile = 100.0 + 25.0 * member.taps() as f64 + 80.0 * member.panels.len() as f64;
            positions / filter.kernels.panel_rows() as f64 * per_tile
        };
        let members = self.bundles.iter().flat_map(|bundle| &bundle.members);
        members.map(of_member).sum::<f64>() * (self.blocks.iter().len() * filter.groups) as f64
    }

    /// Whether channels-first outputs are stored as runs.
    pub(crate) fn stores_planes(&self) -> bool {
        self.stores != Stores::Positions
    }

    pub(crate) fn is_in_place(&self) -> bool {
        self.in_place
    }

    /// How many panels of every member of a bundle are computed before they are stored, at so many rows of all members
    /// together.
    fn panels_at_once<T: Real>(&self, filter: &PackedFilter<T>, bundle: &Bundle, rows: usize) -> usize {
        let row_bytes = 2 * filter.kernels.lanes() * size_of::<T>();
        let taps = match self.arithmetic {
            Arithmetic::Winograd => 1,
            _ => bundle.members.iter().map(Member::taps).max().unwrap_or(1),
        };
        let by_weights = WEIGHT_BYTES / (taps * self.blocks.size * row_bytes).max(1);
        let by_sums = SUM_BYTES / (rows * row_bytes).max(1);
        by_weights.min(by_sums).clamp(1, bundle.panels())
    }

    /// The indices of the input that a box reads.
    fn needed<T: Real>(
        &self,
        axes: &[EngineAxis<'_>],
        filter: &PackedFilter<T>,
        spans: &[Span],
    ) -> Vec<Span> {
        let between_starts = |span: &Span, &(least, greatest): &(i64, i64)| Span {
            first: span.first + least,
            count: span.count + (greatest - least) as usize,
        };
        if let Some(scheme) = self.scheme(filter) {
            // Every input of every tile, whether or not it exists.
            let (outputs, reach) = (scheme.outputs(), scheme.reach());
            let of_axis = |axis: usize| {
                let whole = Span { count: spans[axis].count.next_multiple_of(outputs[axis]), ..spans[axis] };
                let read = between_starts(&whole, &self.starts[axis]);
                Span { first: read.first - reach[axis] as i64, count: read.count + reach[axis] }
            };
            return (0..axes.len()).map(of_axis).collect();
        }
        let positions: Vec<Span> =
            spans.iter().zip(&self.starts).map(|(span, starts)| between_starts(span, starts)).collect();
        channels::needed(axes, &positions, &self.reach, self.are_apart(spans[0].count))
    }

    /// Which axes are transformed, if any are.
    fn scheme<'f, T: Real>(&self, filter: &'f PackedFilter<T>) -> Option<&'f Scheme> {
        let winograd = filter.winograd.as_ref().ok().filter(|_| self.arithmetic == Arithmetic::Winograd);
        winograd.map(WinogradWeights::scheme)
    }

    /// Whether positions that differ by more than their batch, of which there are so many in a box, are computed together.
    fn are_apart(&self, batch: usize) -> bool {
        let batch_is_fastest = self.order.last() == Some(&0);
        match self.arithmetic {
            // Rows of a tile that miss the input read zeros elsewhere.
            Arithmetic::Vectors | Arithmetic::Winograd => !batch_is_fastest,
            Arithmetic::Tiles => !(batch_is_fastest && batch.is_multiple_of(matrix::MOST_ROWS)),
        }
    }

    /// How many positions of the input a box reads.
    fn input_positions<T: Real>(
        &self,
        axes: &[EngineAxis<'_>],
        filter: &PackedFilter<T>,
        spans: &[Span],
    ) -> usize {
        let needed = self.needed(axes, filter, spans);
        needed.iter().fold(1usize, |product, span| product.saturating_mul(span.count))
    }

    /// The part of `panels` panels that belongs to a split.
    fn share(&self, panels: usize, split: usize) -> Range<usize> {
        panels * split / self.splits..panels * (split + 1) / self.splits
    }
}

/// Per axis, the positions of the longest bundle.
fn longest(bundles: &[Bundle], axes: usize) -> Vec<Span> {
    let of_axis = |axis: usize| bundles.iter().map(|bundle| bundle.counts[axis]).max().unwrap_or(0);
    (0..axes).map(|axis| Span { first: 0, count: of_axis(axis) }).collect()
}

/// The first positions of all members along an axis, from the least to the greatest.
fn starts(bundles: &[Bundle], axis: usize) -> (i64, i64) {
    let starts = bundles.iter().flat_map(|bundle| &bundle.members).map(|member| member.spans[axis].first);
    (starts.clone().min().unwrap_or(0), starts.max().unwrap_or(0))
}

/// The share of multiplications by zeros around the input, if every tap of every position is computed.
fn border_share(axes: &[EngineAxis<'_>]) -> f64 {
    let real = |axis: &EngineAxis<'_>| {
        let (mut inside, mut all) = (0.0, 0.0);
        for phase in axis.phases {
            let span = axis.span(phase.residue);
            for tap in &phase.taps {
                let read = Span { first: span.first - tap.delta as i64, count: span.count };
                inside += read.intersect(&Span { first: 0, count: axis.input }).count as f64;
                all += span.count as f64;
            }
        }
        if all > 0.0 { inside / all } else { 1.0 }
    };
    1.0 - axes.iter().map(real).product::<f64>()
}
