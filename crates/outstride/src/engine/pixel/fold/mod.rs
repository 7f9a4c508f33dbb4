//! Few output channels: every input is multiplied with the whole kernel, and the products that meet in an output are added up.
//!
//! A task computes the products of a box of inputs, `[column][input]`: a column is a kernel element of an output channel, and
//! weights and inputs are read side by side, without zeros around the input and whatever the stride. Then rows of outputs are
//! [folded](outstride_kernels::FoldedRows): what a row of a phase is made of are rows of products, as far from each other as its taps.

mod blocks;
mod exact;
mod folder;
mod met;
mod products;
mod weights;

use outstride_kernels::{Isa, Real};

use super::super::Strides;
use super::super::axis::{EngineAxis, Span};
use super::super::boxes::{Boxes, Workers};
use super::super::cost::CACHED_BYTES;
use super::super::pack::PackedFilter;
use super::super::problem::Problem;
use super::store::Targets;
use super::{Chunk, SUM_BYTES};
pub(crate) use blocks::{Block, of_filter as blocks_of};
use folder::Folder;
use products::Places;
pub(crate) use weights::FoldWeights;

/// Products of a box, unless its neighbours would need more than half of them again.
const PRODUCT_BYTES: usize = 1 << 18;

/// Boxes of less than so many times what they reach are not halved for that.
const SHORT: usize = 4;

/// What it takes, measured over generated layers of both layouts and several types and instruction sets: to copy a vector of inputs, to
/// keep a vector of products and to add it up, a row of outputs of a phase of a channel, a task, and to fetch weights.
const CYCLES_OF_A_COPY: f64 = 8.0;
const CYCLES_OF_A_PRODUCT: f64 = 18.0;
const CYCLES_OF_A_ROW: f64 = 80.0;
const CYCLES_OF_A_TASK: f64 = 5000.0;
const CYCLES_OF_A_WEIGHT_BYTE: f64 = 0.25;

/// What multiply-adds take, in terms of two a cycle: as for panels, less by the loops of AVX-512, and more by portable kernels.
const CYCLES_OF_A_PAIR: f64 = 1.07;
const CYCLES_OF_A_PAIR_BY_AVX512: f64 = 0.93;
const CYCLES_OF_A_PAIR_PORTABLE: f64 = 2.5;

/// How a problem is cut into tasks.
#[derive(Debug)]
pub(crate) struct FoldPlan {
    boxes: Boxes,
    /// Output channels of a task: whole units.
    channels: usize,
    /// Positions of a box along the batch and along the next axis at which outputs are computed at a time.
    step: [usize; 2],
    /// Inputs of the first spatial axis of which there is room for products.
    ring: usize,
    /// From column to column among the products.
    pitch: usize,
    /// Per axis, the largest delta.
    reach: Vec<usize>,
}

/// The shape, of those that kernels have, of the tiles that products are computed by.
pub(crate) fn tile<T: Real>(filter: &PackedFilter<T>) -> (usize, usize) {
    let width = filter.fold.as_ref().map_or(1, FoldWeights::width);
    filter.kernels.pixel_shapes().find(|&(columns, _)| width <= columns).unwrap_or((1, 1))
}

impl FoldPlan {
    /// Cuts a problem for one thread.
    pub(crate) fn new<T: Real>(
        axes: &[EngineAxis<'_>],
        filter: &PackedFilter<T>,
        strides: &Strides,
    ) -> Result<Self, &'static str> {
        let space: Vec<Span> = axes.iter().map(EngineAxis::positions).collect();
        let reach: Vec<usize> = axes.iter().map(EngineAxis::reach).collect();
        let mut granules = vec![1; axes.len()];
        granules[1] = if moves(axes) { space[1].count.max(1) } else { 1 };
        let moving = |counts: &[usize]| [&[1, counts[1].min(reach[1].max(1))], &counts[2..]].concat();
        let is_short = |counts: &[usize], axis: usize| {
            counts[axis] <= granules[axis] || counts[axis] < SHORT.saturating_mul(reach[axis])
        };
        let fits = |counts: &[usize]| {
            let whole = product_bytes(axes, filter, strides, counts);
            let needed = match moves(axes) {
                true => whole.min(product_bytes(axes, filter, strides, &moving(counts))),
                false => whole,
            };
            let repeats = (0..counts.len()).all(|axis| is_short(counts, axis));
            needed <= if repeats { CACHED_BYTES } else { PRODUCT_BYTES }
        };
        let boxes = Boxes::cut(space, &granules, &reach, fits);
        if !boxes.largest().is_none_or(|counts| fits(&counts)) {
            return Err("the products that an output needs do not stay near");
        }
        let plan = FoldPlan { boxes, channels: filter.out_channels, step: [1, 1], ring: 1, pitch: 1, reach };
        Ok(plan.for_workers(axes, filter, strides, Workers::ALONE))
    }

    /// Cuts on for more threads.
    pub(crate) fn for_workers<T: Real>(
        mut self,
        axes: &[EngineAxis<'_>],
        filter: &PackedFilter<T>,
        strides: &Strides,
        workers: Workers,
    ) -> Self {
        let Some(counts) = self.boxes.largest() else { return self };
        let unit = filter.folded().unit;
        let units = filter.out_channels.div_ceil(unit);
        let whole = product_bytes(axes, filter, strides, &counts).max(1);
        let parts = if whole <= PRODUCT_BYTES { units.div_ceil(PRODUCT_BYTES / whole) } else { units };
        self.channels = units.div_ceil(parts) * unit;
        self.boxes = self.boxes.spread(&vec![1; axes.len()], workers, filter.groups * parts, |_| true);
        let Some(counts) = self.boxes.largest() else { return self };
        let mut inside = most_inside(axes, &counts, &self.reach);
        self.step = [counts[0], counts[1]];
        if moves(axes) && product_bytes(axes, filter, strides, &counts) > PRODUCT_BYTES {
            let of_one = product_bytes(axes, filter, strides, &[&[1], &counts[1..]].concat());
            let rows = PRODUCT_BYTES / (of_one / inside[1].max(1)).max(1);
            let (reach, all) = (self.reach[1], counts[1]);
            self.step = [1, rows.saturating_sub(reach).clamp(reach.clamp(1, all), all)];
            // Kernels write whole vectors, which must not reach what is needed again.
            let beyond = filter.kernels.lanes().div_ceil(inside[2..].iter().product::<usize>().max(1));
            inside[0] = 1;
            inside[1] = (self.step[1] + reach + beyond).min(inside[1]);
        }
        self.ring = inside[1].max(1);
        self.pitch = pitch(axes, filter, strides, &counts, &inside);
        self
    }

    /// How many tasks share out the output channels of a group.
    fn parts<T: Real>(&self, filter: &PackedFilter<T>) -> usize {
        filter.out_channels.div_ceil(self.channels)
    }

    pub(crate) fn tasks<T: Real>(&self, filter: &PackedFilter<T>) -> usize {
        filter.groups * self.parts(filter) * self.boxes.len()
    }

    /// Cycles that the products need, and the adding up.
    pub(crate) fn cycles<T: Real>(&self, axes: &[EngineAxis<'_>], filter: &PackedFilter<T>) -> f64 {
        let weights = filter.folded();
        let Some(counts) = self.boxes.largest() else { return 0.0 };
        let (last, outer) = axes.split_last().expect("there is a batch axis");
        let of_box: f64 = most_inside(axes, &counts, &self.reach).iter().map(|&count| count as f64).product();
        let vectors = of_box * (self.boxes.len() * filter.groups) as f64 / filter.kernels.lanes() as f64;
        let columns = (weights.elements * filter.out_channels) as f64;
        let copied = vectors * (filter.in_channels * self.parts(filter)) as f64;
        let products = vectors * columns;
        let of_a_pair = match filter.kernels.vector_isa() {
            Isa::Portable => CYCLES_OF_A_PAIR_PORTABLE,
            Isa::Avx2 => CYCLES_OF_A_PAIR,
            _ => CYCLES_OF_A_PAIR_BY_AVX512,
        };
        let outer: f64 = outer.iter().map(|axis| axis.output as f64).product();
        let rows = outer * (last.phases.len() * filter.groups * filter.out_channels) as f64;
        CYCLES_OF_A_COPY * copied
            + products * (filter.in_channels as f64 / 2.0 * of_a_pair + CYCLES_OF_A_PRODUCT)
            + CYCLES_OF_A_ROW * rows
            + CYCLES_OF_A_TASK * self.tasks(filter) as f64
            + CYCLES_OF_A_WEIGHT_BYTE * weights.bytes() as f64
    }

    /// An upper bound of the scratch bytes of one thread.
    pub(crate) fn workspace<T: Real>(&self, axes: &[EngineAxis<'_>], filter: &PackedFilter<T>) -> usize {
        let weights = filter.folded();
        let Some(counts) = self.boxes.largest() else { return 0 };
        let kernels = filter.kernels;
        let products = self.channels * weights.elements * self.pitch;
        let along = if axes.len() > 2 { counts[counts.len() - 1] } else { self.step[1] };
        let of_block = |block: &Block| {
            let chunk = chunk_of::<T>(block, along, kernels.lanes());
            (block.outputs.columns * chunk.rows * row_pitch(chunk.len, kernels.lanes())) * size_of::<T>()
                + 2 * Targets::bytes(&block.outputs, chunk.rows)
        };
        let sums = filter.fold_blocks().iter().map(of_block).max().unwrap_or(0);
        (tile_len(filter, weights) + products) * size_of::<T>() + sums
    }

    /// Runs one task.
    pub(crate) fn run<T: Real>(&self, problem: &Problem<'_, T>, task: usize) {
        let filter = problem.filter;
        let weights = filter.folded();
        let spans = self.boxes.get(task % self.boxes.len());
        let (group, part) =
            (task / self.boxes.len() / self.parts(filter), task / self.boxes.len() % self.parts(filter));
        let channels = part * self.channels..filter.out_channels.min((part + 1) * self.channels);
        let counts: Vec<usize> = spans.iter().map(|span| span.count).collect();
        problem.scratch.with(|scratch| {
            let tile = scratch.input.any(tile_len(filter, weights));
            let products = scratch.products.at_least(channels.len() * weights.elements * self.pitch);
            let mut folder = Folder::new(problem, self, (group, channels), tile, products, &mut scratch.sums);
            let mut at = spans.clone();
            for first in (0..counts[0]).step_by(self.step[0].max(1)) {
                at[0] = part_of(spans[0], first, self.step[0]);
                let mut held = None;
                for first in (0..counts[1]).step_by(self.step[1].max(1)) {
                    at[1] = part_of(spans[1], first, self.step[1]);
                    held = Some(folder.fold(&at, held));
                }
            }
        });
    }
}

/// So many positions from a number on.
fn part_of(span: Span, first: usize, count: usize) -> Span {
    Span { first: span.first + first as i64, count }.intersect(&span)
}

/// Elements of the inputs that are multiplied at a time.
fn tile_len<T: Real>(filter: &PackedFilter<T>, weights: &FoldWeights<T>) -> usize {
    debug_assert!(tile(filter).0 >= weights.width());
    filter.in_channels * tile(filter).1 * filter.kernels.lanes()
}

/// The inputs that a box of so many positions meets at most, per axis; just those that one meets which has all positions of an axis.
fn most_inside(axes: &[EngineAxis<'_>], counts: &[usize], reach: &[usize]) -> Vec<usize> {
    let of_axis = |((axis, &count), &reach): ((&EngineAxis<'_>, &usize), &usize)| {
        let all = axis.positions();
        let met = Span { first: all.first - reach as i64, count: all.count.saturating_add(reach) };
        let met = met.intersect(&axis.whole_input());
        if count < all.count { count.saturating_add(reach).min(met.count) } else { met.count }
    };
    axes.iter().zip(counts).zip(reach).map(of_axis).collect()
}

/// Whether a task can move on along the first spatial axis and keep those products that are needed again: unless rows lie along it.
fn moves(axes: &[EngineAxis<'_>]) -> bool {
    axes.len() > 2
}

/// From column to column among the products of a box of so many positions, with so many inputs at a time.
fn pitch<T: Real>(
    axes: &[EngineAxis<'_>],
    filter: &PackedFilter<T>,
    strides: &Strides,
    counts: &[usize],
    inside: &[usize],
) -> usize {
    let are_whole: Vec<bool> =
        counts.iter().zip(axes).map(|(&count, axis)| count >= axis.positions().count).collect();
    Places::most_pitch(axes, inside, &are_whole, strides.x_channel, filter.kernels.lanes())
}

/// Bytes of the products of such a box with the weights of a unit.
fn product_bytes<T: Real>(
    axes: &[EngineAxis<'_>],
    filter: &PackedFilter<T>,
    strides: &Strides,
    counts: &[usize],
) -> usize {
    let weights = filter.folded();
    let reach: Vec<usize> = axes.iter().map(EngineAxis::reach).collect();
    let pitch = pitch(axes, filter, strides, counts, &most_inside(axes, counts, &reach));
    pitch.saturating_mul(weights.unit * weights.elements).saturating_mul(size_of::<T>())
}

/// From row to row among sums.
fn row_pitch(len: usize, lanes: usize) -> usize {
    len.next_multiple_of(lanes)
}

/// How many positions of a box are folded before they are stored, given how many its rows have.
fn chunk_of<T: Real>(block: &Block, along: usize, lanes: usize) -> Chunk {
    let row_bytes = block.outputs.columns * row_pitch(along, lanes) * size_of::<T>();
    Chunk { rows: (SUM_BYTES / row_bytes.max(1)).max(1), len: along.max(1) }
}
