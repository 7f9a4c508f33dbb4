//! The pixel path: tiles of output channels × neighbouring positions. Weights are broadcast, inputs fill vectors, so
//! channels-first tensors are written as runs.
//!
//! A task copies a box of the input with zeros around it. Rows lie one behind the other, so that positions of several rows
//! are one run, and a tap reads the same distance before every one of them. Output channels and phases are gathered in
//! *blocks*, whose outputs are stored together: all phases of the last axis, so that whole cache lines are written. The columns
//! of a block are computed line by line, chunk by chunk of positions.
//!
//! The [fold] path stores its outputs likewise, but multiplies in another order.

mod blocks;
mod chunk;
mod exact;
mod fold;
mod outputs;
mod planes;
mod store;

use outstride_kernels::Real;

use super::axis::{EngineAxis, Span};
use super::boxes::{Boxes, Workers};
use super::pack::PackedFilter;
use super::problem::Problem;
pub(crate) use blocks::{Block, of_filter as blocks_of};
use chunk::{Worker, vectors_for};
pub(crate) use fold::{
    Block as FoldBlock, FoldPlan, FoldWeights, blocks_of as fold_blocks_of, tile as fold_tile,
};
use planes::Planes;

/// Input of one box, where all weights stay in the second-level cache anyway.
const INPUT_BYTES: usize = 1 << 19;

/// Input of one box where they do not, and every box means another pass over them.
const INPUT_BYTES_PER_PASS: usize = 5 << 18;

/// Input of one task that has several groups.
const GROUP_BYTES: usize = 1 << 18;

/// Sums of a chunk, unless there are many columns.
const SUM_BYTES: usize = 1 << 14;

/// The fewest vectors of positions that a chunk has, if there are so many.
const FEWEST_VECTORS: usize = 16;

/// What a chunk costs beside its vectors.
const ROW_CYCLES: usize = 400;

/// Of vectors, at best.
const MULTIPLY_ADDS_PER_CYCLE: usize = 2;

/// The shape, of those that kernels have, of the largest tiles that a filter is computed by.
pub(crate) fn tile<T: Real>(filter: &PackedFilter<T>) -> (usize, usize) {
    let lines = filter.blocks().iter().flat_map(|block| &block.lines);
    let columns = lines.map(|line| line.columns.len()).max().unwrap_or(1);
    filter.kernels.pixel_shapes().find(|&(have, _)| columns <= have).unwrap_or((1, 1))
}

/// How the pixel path cuts a problem into tasks.
#[derive(Debug)]
pub(crate) struct PixelPlan {
    boxes: Boxes,
    /// Groups of a task.
    groups: usize,
    /// Into how many parts the blocks are dealt, where there are too few boxes and groups for the threads.
    splits: usize,
    /// Per axis, the largest delta.
    reach: Vec<usize>,
    chunk: Chunk,
}

/// How many positions are computed before they are stored.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    /// Rows, neighbours along the last axis but one.
    rows: usize,
    /// Positions along the last axis.
    len: usize,
}

impl Chunk {
    /// For boxes with so many positions per row, to which so many are added around the input.
    fn new<T: Real>(filter: &PackedFilter<T>, along: usize, around: usize) -> Self {
        let lanes = filter.kernels.lanes();
        let columns = filter.blocks().iter().map(|block| block.outputs.columns).max().unwrap_or(1);
        let positions = (SUM_BYTES / (columns * size_of::<T>()).max(1)).max(FEWEST_VECTORS * lanes);
        if along >= positions {
            return Chunk { rows: 1, len: positions / (8 * lanes) * (8 * lanes) };
        }
        // What lies between rows is computed for nothing, as is what fills the last vector of one.
        let vector_cycles = filter.blocks().iter().map(Block::multiply_adds).max().unwrap_or(0)
            * filter.in_channels
            / MULTIPLY_ADDS_PER_CYCLE;
        let together = (along + around).saturating_mul(vector_cycles) / lanes;
        let alone = along.div_ceil(lanes).saturating_mul(vector_cycles).saturating_add(ROW_CYCLES);
        let rows = if together <= alone { (positions / (along + around).max(1)).max(1) } else { 1 };
        Chunk { rows, len: along.max(1) }
    }

    /// The same or, as boxes are whole chunks, a smaller one whose input `fits` where taps reach far.
    fn fitting(mut self, lanes: usize, fits: impl Fn(&Chunk) -> bool) -> Self {
        let least = 8 * lanes;
        while !fits(&self) {
            if self.rows > 1 {
                self.rows = self.rows.div_ceil(2);
            } else if self.len > least {
                self.len = (self.len / 2).next_multiple_of(least);
            } else {
                break;
            }
        }
        self
    }

    /// Per axis, the positions of a chunk of a box with so many.
    fn counts(&self, of_box: impl ExactSizeIterator<Item = usize>) -> Vec<usize> {
        let axes = of_box.len();
        let of_axis = |(axis, count): (usize, usize)| match axes - axis {
            1 => self.len.min(count),
            2 => self.rows.min(count),
            _ => 1,
        };
        of_box.enumerate().map(of_axis).collect()
    }

    /// Calls with the chunks of a box, one after the other, the last axis fastest.
    fn each(&self, spans: &[Span], mut visit: impl FnMut(&[Span])) {
        if spans.iter().any(|span| span.count == 0) {
            return;
        }
        let sizes = self.counts(spans.iter().map(|span| span.count));
        let from = |axis: usize, first: i64| {
            let left = (spans[axis].end() - first) as usize;
            Span { first, count: sizes[axis].min(left) }
        };
        let mut at: Vec<Span> = (0..spans.len()).map(|axis| from(axis, spans[axis].first)).collect();
        loop {
            visit(&at);
            let next = (0..at.len()).rev().find(|&axis| at[axis].end() < spans[axis].end());
            let Some(axis) = next else { return };
            at[axis] = from(axis, at[axis].end());
            for inner in axis + 1..at.len() {
                at[inner] = from(inner, spans[inner].first);
            }
        }
    }

    /// The input, with zeros around it, that a box of so many positions needs at most, wherever it lies.
    fn most_needed(&self, axes: &[EngineAxis<'_>], counts: &[usize], reach: &[usize]) -> Vec<Span> {
        let sizes = self.counts(counts.iter().copied());
        let of_axis = |axis: usize| {
            let near = axes[axis].input + 2 * (sizes[axis] - 1);
            Span { first: 0, count: counts[axis].saturating_add(reach[axis]).min(near) }
        };
        (0..axes.len()).map(of_axis).collect()
    }
}

impl PixelPlan {
    pub(crate) fn new<T: Real>(axes: &[EngineAxis<'_>], filter: &PackedFilter<T>, workers: Workers) -> Self {
        let blocks = filter.blocks();
        let space: Vec<Span> = axes.iter().map(EngineAxis::positions).collect();
        let reach: Vec<usize> = axes.iter().map(EngineAxis::reach).collect();
        let last = axes.len() - 1;
        let around = reach[last].min(axes[last].input);
        let wanted = workers.tasks();
        let cached = filter.stays_near();
        let input_bytes = if cached { INPUT_BYTES } else { INPUT_BYTES_PER_PASS };
        let bytes_of = |chunk: &Chunk, counts: &[usize]| {
            let spans = chunk.most_needed(axes, counts, &reach);
            let positions = spans.iter().fold(1usize, |product, span| product.saturating_mul(span.count));
            positions.saturating_mul(filter.in_channels * size_of::<T>())
        };
        let chunk = Chunk::new(filter, space[last].count, around);
        let chunk = chunk.fitting(filter.kernels.lanes(), |chunk| {
            bytes_of(chunk, &chunk.counts(space.iter().map(|span| span.count.max(1)))) <= input_bytes
        });
        let bytes = |counts: &[usize]| bytes_of(&chunk, counts);
        let mut granules = vec![1; axes.len()];
        granules[last - 1] = chunk.rows;
        granules[last] = chunk.len;
        // Where weights dominate, threads share them out rather than each passing over all of them.
        let by_blocks = !cached && blocks.len() >= wanted;
        let mut boxes = Boxes::cut(space, &granules, &reach, |counts| bytes(counts) <= input_bytes);
        if !by_blocks {
            boxes = boxes.spread(&granules, workers, filter.groups, |_| true);
        }
        let fitting = GROUP_BYTES / boxes.largest().map_or(1, |counts| bytes(&counts)).max(1);
        let enough = wanted.div_ceil(boxes.len().max(1));
        let groups = fitting.min(filter.groups / enough).clamp(1, filter.groups.max(1));
        let items = (boxes.len() * filter.groups.div_ceil(groups)).max(1);
        let splits = workers.parts(items, blocks.len(), 1);
        PixelPlan { boxes, groups, splits, reach, chunk }
    }

    /// How often the weights are passed over.
    pub(crate) fn passes(&self) -> usize {
        self.boxes.len()
    }

    pub(crate) fn tasks<T: Real>(&self, filter: &PackedFilter<T>) -> usize {
        filter.groups.div_ceil(self.groups) * self.boxes.len() * self.splits
    }

    /// Cycles that the lines of all blocks need, by the shape of their tiles.
    pub(crate) fn cycles<T: Real>(&self, axes: &[EngineAxis<'_>], filter: &PackedFilter<T>) -> f64 {
        let kernels = filter.kernels;
        let last = axes.len() - 1;
        let mut cycles = 0.0;
        for block in filter.blocks() {
            let spans = block.outputs.positions(axes);
            let rows: f64 = spans[..last].iter().map(|span| span.count as f64).product();
            let around = self.reach[last].min(axes[last].input);
            let vectors = if self.chunk.rows > 1 {
                rows * (spans[last].count + around) as f64 / kernels.lanes() as f64
            } else {
                rows * spans[last].count.div_ceil(kernels.lanes()) as f64
            };
            for line in &block.lines {
                let columns = line.columns.len();
                let shape = vectors_for(kernels, columns, (vectors as usize).max(1)) as f64;
                let arithmetic = line.multiply_adds() as f64 / MULTIPLY_ADDS_PER_CYCLE as f64 * shape;
                // Positions are seldom aligned, so that most loads touch two lines.
                let loads = line.taps.len() as f64 * (columns as f64 / 2.0 + 0.8 * shape);
                let per_channel = arithmetic.max(loads).max(4.0 * line.taps.len() as f64) / 0.55;
                cycles += vectors / shape * (per_channel * filter.in_channels as f64 + 20.0)
                    + 2.0 * vectors * columns as f64;
            }
        }
        cycles * filter.groups as f64
    }

    /// An upper bound of the scratch bytes of one thread.
    pub(crate) fn workspace<T: Real>(&self, axes: &[EngineAxis<'_>], filter: &PackedFilter<T>) -> usize {
        let Some(counts) = self.boxes.largest() else { return 0 };
        let planes = Planes::new(self.chunk.most_needed(axes, &counts, &self.reach));
        let input = planes.len(filter.in_channels * self.groups, chunk::beyond(filter.kernels));
        let columns = filter.blocks().iter().map(|block| block.outputs.columns).max().unwrap_or(0);
        let rows = self.chunk.rows.min(counts[counts.len() - 2]);
        let lists = filter.blocks().iter().map(|block| chunk::most_bytes_of_lists(block, rows)).max();
        (input + columns * self.pitch_of_sums(filter, &planes)) * size_of::<T>()
            + planes.bytes_of_lists()
            + lists.unwrap_or(0)
    }

    /// Runs one task.
    pub(crate) fn run<T: Real>(&self, problem: &Problem<'_, T>, task: usize) {
        let filter = problem.filter;
        let split = task % self.splits;
        let index = task / self.splits % self.boxes.len();
        let first = task / self.splits / self.boxes.len() * self.groups;
        let groups = first..filter.groups.min(first + self.groups);
        let spans = self.boxes.get(index);
        let planes = self.planes(&problem.axes, &spans);
        problem.scratch.with(|scratch| {
            let channels = filter.in_channels * groups.len();
            let input = scratch.input.any(planes.len(channels, chunk::beyond(filter.kernels)));
            planes.copy(problem, problem.x_group(groups.start), channels, input);
            let blocks = filter.blocks();
            let share = |part: usize| blocks.len() * part / self.splits;
            let pitch = self.pitch_of_sums(filter, &planes);
            let mut worker = Worker::new(problem, groups, (&planes, input), (&mut scratch.sums, pitch));
            for block in &blocks[share(split)..share(split + 1)] {
                worker.block(block, &spans, self.chunk);
            }
        });
    }

    /// The input that a box needs, with the zeros around it that its chunks read where they meet the input by a part only.
    fn planes(&self, axes: &[EngineAxis<'_>], spans: &[Span]) -> Planes {
        let sizes = self.chunk.counts(spans.iter().map(|span| span.count));
        let of_axis = |axis: usize| {
            let (span, beside) = (&spans[axis], sizes[axis] as i64 - 1);
            let read =
                Span { first: span.first - self.reach[axis] as i64, count: span.count + self.reach[axis] };
            let near = Span { first: -beside, count: axes[axis].input + 2 * beside.max(0) as usize };
            read.intersect(&near)
        };
        Planes::new((0..axes.len()).map(of_axis).collect())
    }

    /// From column to column among the sums of a chunk.
    fn pitch_of_sums<T: Real>(&self, filter: &PackedFilter<T>, planes: &Planes) -> usize {
        let positions = (self.chunk.rows - 1) * planes.pitch() + self.chunk.len;
        positions.next_multiple_of(filter.kernels.lanes())
    }
}
