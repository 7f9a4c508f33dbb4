//! The panel path: tiles of positions × (output channels, phases). Inputs are broadcast, weights fill vectors.
//!
//! A task takes a box of positions and some of the panels. It copies the input of the box (unless channels are side by
//! side already), computes the sums of a few panels at all its positions, and stores them.

mod borders;
mod bundle;
mod cut;
mod estimate;
mod exact;
mod matrix;
mod planes;
mod reads;
mod rows;
mod run;
mod store;
mod sums;
mod taps;
mod turns;
mod winograd;
mod workspace;

use std::ops::Range;
use std::sync::Arc;

use outstride_kernels::Real;
use outstride_spec::DType;

use super::Strides;
use super::axis::{EngineAxis, Span, follows};
use super::boxes::{Boxes, Workers};
use super::channels::ChannelBlocks;
use super::cost::SHARING_BYTES;
use super::pack::PackedFilter;
use super::panels::{Form, MOST_PHASES_OF_ROWS, Panels};
use borders::Borders;
use bundle::Bundle;
pub(crate) use estimate::Transformed;
pub(crate) use matrix::{Grain, MatrixWeights};
pub(crate) use rows::KeptPositions;
use winograd::Tiling;
pub(crate) use winograd::WinogradWeights;

/// Of rows of positions up to this length, most tiles reach beyond the input somewhere.
const MOSTLY_BORDER: usize = 64;

/// Rows of channels-first outputs that take so little, times the phases that have to be computed together for longer ones, are too short
/// to be stored well.
const SHORT_ROW_BYTES: usize = 384;

/// How the panel path cuts a problem into tasks.
#[derive(Clone, Debug)]
pub(crate) struct PanelPlan {
    bundles: Arc<[Bundle]>,
    /// Boxes of positions, counted from the first one of each phase.
    boxes: Boxes,
    /// Into how many parts the panels are dealt, where there are too few boxes for the threads.
    splits: usize,
    /// Whether these are whole bundles each, rather than some panels of every bundle.
    splits_bundles: bool,
    /// Panels that are not dealt to different tasks, for their outputs share lines.
    panels_of_lines: usize,
    blocks: ChannelBlocks,
    /// Per axis, which positions are computed together, wherever boxes begin, so that boxes do not change results.
    tilings: Vec<Tiling>,
    /// Points of these positions together; none without transforms.
    points: usize,
    /// Per axis, the largest delta, and the first positions of the phases from the least to the greatest.
    reach: Vec<usize>,
    starts: Vec<(i64, i64)>,
    /// Whether input channels are side by side, so that nothing is copied.
    in_place: bool,
    stores: Stores,
    borders: Borders,
    /// The most rows that are computed at once.
    rows_at_once: usize,
    /// Taps of the last axis that tiles multiply as one.
    abreast: usize,
    arithmetic: Arithmetic,
    /// Whether vectors are multiplied with weights that were widened before.
    widened: bool,
}

/// How sums are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stores {
    /// Position by position.
    Positions,
    /// As runs of positions per channel, all phases of the innermost axes in turns, which each bundle has.
    Planes,
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
        let row_axes = row_axes(axes, panels, strides);
        let (stores, bundles) = match row_axes {
            0 => (Stores::Positions, bundle::reading_the_same(axes, filter, panels)),
            _ => (Stores::Planes, bundle::of_rows(axes, filter, panels, row_axes)),
        };
        let blocks = ChannelBlocks::new(filter.in_channels);
        let borders = Borders::new(axes, filter, blocks.size);
        let mut plan = PanelPlan {
            boxes: Boxes::whole(longest(&bundles, axes.len())),
            starts: (0..axes.len()).map(|axis| starts(&bundles, axis)).collect(),
            bundles: bundles.into(),
            splits: 1,
            splits_bundles: false,
            panels_of_lines: 1,
            blocks,
            tilings: vec![Tiling::NONE; axes.len()],
            points: 0,
            reach: axes.iter().map(EngineAxis::reach).collect(),
            in_place: strides.x_readable
                && (strides.x_channel == 1 || filter.in_channels == 1)
                && !share_sets::<T>(axes, &borders.order)
                // A copy has zeros around it that need not be told from inputs.
                && !(borders.multiplies_zeros && last.input <= MOSTLY_BORDER),
            stores,
            borders,
            rows_at_once: filter.kernels.panel_rows(),
            abreast: 1,
            arithmetic: Arithmetic::Vectors,
            widened: false,
        };
        plan.cut(axes, filter, Workers::ALONE);
        plan
    }

    /// The same by matrix tiles, for one thread.
    pub(crate) fn by_tiles<T: Real>(&self, axes: &[EngineAxis<'_>], filter: &PackedFilter<T>) -> Self {
        let panels = panels_of(filter);
        let narrowest = panels.panels.iter().map(|panel| panel.vectors).min().unwrap_or(1);
        let mut plan = PanelPlan {
            bundles: match self.stores {
                Stores::Positions => bundle::of_same_counts(axes, filter, panels).into(),
                Stores::Planes => self.bundles.clone(),
            },
            in_place: false,
            rows_at_once: matrix::rows_at_once(narrowest),
            abreast: filter.matrix.as_ref().map_or(1, |weights| weights.abreast),
            arithmetic: Arithmetic::Tiles,
            ..self.clone()
        };
        plan.cut(axes, filter, Workers::ALONE);
        plan
    }

    /// The same by Winograd's filtering, for one thread.
    pub(crate) fn by_winograd<T: Real>(
        &self,
        axes: &[EngineAxis<'_>],
        filter: &PackedFilter<T>,
        weights: &WinogradWeights<T>,
    ) -> Self {
        // Phases of the same positions share the points of their inputs.
        let bundles = match self.stores {
            Stores::Positions => bundle::of_same_positions(axes, filter, panels_of(filter)).into(),
            Stores::Planes => self.bundles.clone(),
        };
        let mut plan = PanelPlan {
            bundles,
            in_place: false,
            tilings: weights.scheme().tilings().to_vec(),
            points: weights.scheme().points(),
            reach: weights.scheme().reach(),
            blocks: ChannelBlocks::whole(filter.in_channels),
            arithmetic: Arithmetic::Winograd,
            ..self.clone()
        };
        plan.cut(axes, filter, Workers::ALONE);
        plan
    }

    /// The same for other workers.
    pub(crate) fn for_workers<T: Real>(
        mut self,
        axes: &[EngineAxis<'_>],
        filter: &PackedFilter<T>,
        workers: Workers,
    ) -> Self {
        self.cut(axes, filter, workers);
        self
    }

    /// Whether narrow weights are better read as they are, because hardly more than a tile of positions has products with any of
    /// them, and so each is widened as often as it would be read.
    pub(crate) fn is_for_narrow<T: Real>(&self, axes: &[EngineAxis<'_>], filter: &PackedFilter<T>) -> bool {
        let inputs = axes.iter().fold(1, |inputs: usize, axis| inputs.saturating_mul(axis.input));
        filter.is_narrow() && self.positions_of_box().min(inputs) <= filter.panel_rows()
    }

    /// The same with weights that are not [better](Self::is_for_narrow) narrow widened beforehand.
    pub(crate) fn with_weights_widened<T: Real>(
        mut self,
        axes: &[EngineAxis<'_>],
        filter: &PackedFilter<T>,
    ) -> Self {
        // Without memory for that, they can still be read as they are.
        self.widened = filter.is_narrow() && !self.is_for_narrow(axes, filter) && filter.widen().is_ok();
        self
    }

    /// The type of the weights that vectors are multiplied with.
    pub(crate) fn weight_type<T: Real>(&self, filter: &PackedFilter<T>) -> DType {
        if self.widened { T::DTYPE } else { filter.weight_type() }
    }

    /// The most rows of tiles of vectors.
    pub(crate) fn tile_rows<T: Real>(&self, filter: &PackedFilter<T>) -> usize {
        if self.widened { filter.kernels.panel_rows() } else { filter.panel_rows() }
    }

    /// How often the weights are passed over.
    pub(crate) fn passes(&self) -> usize {
        self.boxes.len()
    }

    /// Phases, or sets of phases, that have panels of their own. At least one.
    pub(crate) fn members(&self) -> usize {
        self.bundles.iter().map(|bundle| bundle.members.len()).sum::<usize>().max(1)
    }

    /// Positions, of every phase, that a task computes one phase after the other.
    pub(crate) fn positions_of_box(&self) -> usize {
        self.boxes.largest().map_or(0, |counts| counts.iter().product())
    }

    pub(crate) fn tasks<T: Real>(&self, filter: &PackedFilter<T>) -> usize {
        filter.groups * self.boxes.len() * self.splits
    }

    /// Whether the rows of a tile are samples of a position, as far as there are so many.
    fn batch_is_fastest(&self) -> bool {
        self.borders.order.last() == Some(&0)
    }

    /// Whether channels-first outputs are stored as runs.
    pub(crate) fn stores_planes(&self) -> bool {
        self.stores != Stores::Positions
    }

    /// The innermost axes along which these runs hold all outputs, those that no tap reaches among them.
    pub(crate) fn row_axes(&self) -> usize {
        self.bundles.first().map_or(0, |bundle| bundle.row_axes)
    }

    /// Whether these runs are made of panels that each have all phases of the innermost axes.
    pub(crate) fn turns_phases_together<T: Real>(&self, filter: &PackedFilter<T>) -> bool {
        self.stores_planes() && panels_of(filter).share_phases()
    }

    /// Whether the phases of a channel are stored as a run, position by position.
    pub(crate) fn stores_runs<T: Real>(&self, filter: &PackedFilter<T>) -> bool {
        self.stores == Stores::Positions && panels_of(filter).hold_runs()
    }

    /// Positions of the last axis whose channels tiles multiply as those of one.
    pub(crate) fn positions_abreast(&self) -> usize {
        self.abreast
    }

    pub(crate) fn is_in_place(&self) -> bool {
        self.in_place
    }

    /// The bundles that a split has panels of, and which.
    fn share(&self, split: usize) -> impl Iterator<Item = (&Bundle, Range<usize>)> {
        let part = move |units: usize| units * split / self.splits..units * (split + 1) / self.splits;
        let bundles = if self.splits_bundles { part(self.bundles.len()) } else { 0..self.bundles.len() };
        let with_panels = move |bundle: &Bundle| {
            let panels = bundle.panels();
            if self.splits_bundles {
                return 0..panels;
            }
            let lines = part(panels.div_ceil(self.panels_of_lines));
            let end = |line: usize| (line * self.panels_of_lines).min(panels);
            end(lines.start)..end(lines.end)
        };
        let shares = self.bundles[bundles].iter().map(move |bundle| (bundle, with_panels(bundle)));
        shares.filter(|(_, panels)| !panels.is_empty())
    }
}

/// How many of the innermost axes have outputs that are stored as rows, with all phases of these axes and what lies between them: the
/// last one, and those before it as long as rows are short. None where outputs are not rows.
fn row_axes(axes: &[EngineAxis<'_>], panels: &Panels, strides: &Strides) -> usize {
    let residues = |inner: &[EngineAxis<'_>]| {
        inner.iter().fold(1, |residues: usize, axis| residues.saturating_mul(axis.residues().len()))
    };
    let are_rows = |inner: &[EngineAxis<'_>]| {
        let follow = |pair: &[EngineAxis<'_>]| follows(pair[0].y_stride, pair[1].y_stride, pair[1].output);
        let phases = inner.iter().map(|axis| axis.phases.len()).product();
        residues(inner) <= MOST_PHASES_OF_ROWS
            && inner.windows(2).all(follow)
            && (!panels.share_phases() || !panels.hold_runs() && panels.hold_rows(phases))
    };
    let are_worthwhile = |inner: &[EngineAxis<'_>]| {
        let row = inner[1..].iter().fold(strides.y_size, |bytes, axis| bytes.saturating_mul(axis.output));
        // Phases that are computed together have as many positions as the longest.
        let counts = || inner[0].residues().map(|residue| inner[0].span(residue).count);
        let computed = counts().max().unwrap_or(0) as f64 * inner[0].residues().len() as f64;
        let are_even = computed <= 1.1 * counts().map(|count| count as f64).sum::<f64>();
        inner.len() == 1 || row.saturating_mul(residues(inner)) <= SHORT_ROW_BYTES && are_even
    };
    let last = axes.len() - 1;
    if strides.y_channel == 1 || axes[last].y_stride != 1 || panels.panels.is_empty() {
        return 0;
    }
    // The batch is never part of a row: the channels are in between.
    let inner = (1..=last).rev().map(|first| &axes[first..]);
    inner.take_while(|inner| are_rows(inner) && are_worthwhile(inner)).last().map_or(0, <[_]>::len)
}

/// Whether neighbouring rows of tiles fall into the same few sets of the caches, which do not hold many of them then.
fn share_sets<T: Real>(axes: &[EngineAxis<'_>], order: &[usize]) -> bool {
    let along = &axes[order[order.len() - 1]];
    // Strides of an axis of one index may be anything; wrapping keeps what matters here, the low bits.
    along.x_stride.unsigned_abs().wrapping_mul(size_of::<T>()).is_multiple_of(SHARING_BYTES)
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
