//! The pixel path: tiles of output channels × neighbouring positions of a row. Weights are broadcast, inputs fill
//! vectors, so channels-first tensors are read and written as they lie.
//!
//! Output channels and phases are gathered in *blocks*. Where a panel holds one phase, a block has one *line* per phase
//! of the last axis, each with its own taps; where a panel holds several phases, they share one line, so that an input
//! is loaded once for all of them. The lines of a block are stored together: whole cache lines are written.

mod blocks;
mod worker;

use outstride_kernels::Real;

use super::Strides;
use super::axis::{EngineAxis, Span};
use super::boxes::Boxes;
use super::channels::needed;
use super::gather::{self, Planes};
use super::pack::PackedFilter;
use super::problem::Problem;
pub(crate) use blocks::{Block, of_filter as blocks_of};
use worker::Worker;

/// Input of one box, and of its copy, where all weights stay in the second-level cache anyway.
const INPUT_BYTES: usize = 1 << 18;

/// Weights beyond this do not stay there.
const CACHED_WEIGHT_BYTES: usize = 1 << 20;

/// From this many channels on, their distance in a channels-first tensor may make them compete for the same places of
/// a cache; a compact copy of the box does not.
const CHANNELS_TO_COPY: usize = 8;

/// How the pixel path cuts a problem into tasks.
#[derive(Debug)]
pub(crate) struct PixelPlan {
    /// Over all axes; along the last one in steps of a line's own positions, which begin at 0.
    boxes: Boxes,
    /// Into how many parts the blocks are dealt, where there are too few boxes for the threads.
    splits: usize,
    /// Per axis, the largest delta.
    reach: Vec<usize>,
    /// The first positions of the blocks' lines, from the least to the greatest.
    line_starts: (i64, i64),
    /// Whether each task copies its box of the input.
    copies: bool,
}

impl PixelPlan {
    pub(crate) fn new<T: Real>(
        axes: &[EngineAxis<'_>],
        filter: &PackedFilter<T>,
        strides: &Strides,
        threads: usize,
    ) -> Self {
        let blocks = filter.blocks();
        let last = &axes[axes.len() - 1];
        let spans = |axis: &EngineAxis<'_>| -> Vec<Span> {
            axis.phases.iter().map(|phase| axis.span(phase.residue)).collect()
        };
        let hull =
            |spans: &[Span]| spans.iter().fold(Span { first: 0, count: 0 }, |hull, span| hull.hull(span));
        let mut space: Vec<Span> = axes[..axes.len() - 1].iter().map(|axis| hull(&spans(axis))).collect();
        let lines: Vec<Span> =
            blocks.iter().flat_map(|block| &block.lines).map(|line| line.span(last)).collect();
        space.push(Span { first: 0, count: lines.iter().map(|span| span.count).max().unwrap_or(0) });
        let starts = lines.iter().map(|span| span.first);
        let line_starts = (starts.clone().min().unwrap_or(0), starts.max().unwrap_or(0));
        let reach: Vec<usize> = axes.iter().map(EngineAxis::reach).collect();
        let passes: usize = blocks.iter().flat_map(|block| &block.lines).map(|line| line.taps.len()).sum();
        let worthwhile = filter.in_channels >= CHANNELS_TO_COPY && passes >= 2 * CHANNELS_TO_COPY;
        let copies = worthwhile || !strides.x_readable;

        let mut granules = vec![1; axes.len()];
        granules[axes.len() - 1] = 8 * filter.kernels.lanes();
        let wanted = 4 * threads;
        let cached = filter.bytes() / filter.groups <= CACHED_WEIGHT_BYTES;
        let input_bytes = if cached { INPUT_BYTES } else { gather::INPUT_BYTES_PER_PASS };
        let boxes = Boxes::cut(space, &granules, |chunk, boxes| {
            let input = gather::input_positions(axes, chunk, &reach);
            let fits = input.saturating_mul(filter.in_channels * size_of::<T>()) <= input_bytes;
            // Where weights dominate, threads share them out rather than each passing over all of them.
            let by_blocks = !cached && blocks.len() >= wanted;
            fits && (threads == 1 || by_blocks || boxes * filter.groups >= wanted)
        });
        let items = (boxes.len() * filter.groups).max(1);
        let splits =
            if threads == 1 || items >= wanted { 1 } else { wanted.div_ceil(items).min(blocks.len()).max(1) };
        PixelPlan { boxes, splits, reach, line_starts, copies }
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
        if !self.copies || self.boxes.len() == 0 {
            return 0;
        }
        let needed = self.needed(axes, &self.boxes.get(0));
        gather::planes_len(&needed, filter.in_channels) * size_of::<T>()
    }

    /// Runs one task.
    pub(crate) fn run<T: Real>(&self, problem: &Problem<'_, T>, task: usize) {
        let split = task % self.splits;
        let index = task / self.splits % self.boxes.len();
        let group = task / self.splits / self.boxes.len();
        let spans = self.boxes.get(index);
        let mut scratch = Vec::new();
        let planes = if self.copies {
            gather::copied_planes(
                &problem.x,
                problem.x_group(group),
                &problem.axes,
                &self.needed(&problem.axes, &spans),
                problem.filter.in_channels,
                problem.x_channel_stride,
                &mut scratch,
            )
        } else {
            let x = problem.x.as_computed().expect("planned to read the input where it lies");
            Planes::in_place(x, problem.x_group(group), &problem.axes, problem.x_channel_stride)
        };
        let blocks = problem.filter.blocks();
        let share = |part: usize| blocks.len() * part / self.splits;
        let mut worker = Worker::new(problem, group, planes);
        for block in &blocks[share(split)..share(split + 1)] {
            worker.block(block, &spans);
        }
    }

    /// The input positions that a box reads.
    fn needed(&self, axes: &[EngineAxis<'_>], spans: &[Span]) -> Vec<Span> {
        let mut positions = spans.to_vec();
        if let Some(last) = positions.last_mut() {
            // Along the last axis a box counts from the start of each line.
            let (least, greatest) = self.line_starts;
            *last = Span { first: last.first + least, count: last.count + (greatest - least) as usize };
        }
        needed(axes, &positions, &self.reach, false)
    }
}

/// Cycles that the lines of all blocks need, by the shape of their tiles.
pub(crate) fn cycles<T: Real>(axes: &[EngineAxis<'_>], filter: &PackedFilter<T>) -> f64 {
    let kernels = filter.kernels;
    let mut cycles = 0.0;
    let last = &axes[axes.len() - 1];
    for block in filter.blocks() {
        let rows: f64 = block.outer(axes).iter().map(|span| span.count as f64).product();
        for line in &block.lines {
            let columns = line.columns.len();
            let mut left = line.span(last).count.div_ceil(kernels.lanes());
            while left > 0 {
                let vectors = worker::vectors_for(kernels, columns, left);
                // A long row is many tiles of the same shape.
                let tiles = left / vectors.min(left);
                let arithmetic = (columns * vectors) as f64 / 2.0;
                let loads = (columns + vectors) as f64 / 2.0;
                // What it reads does not stay in the first-level cache.
                let per_channel = arithmetic.max(loads).max(4.0) / 0.55;
                let work = per_channel * (line.taps.len() * filter.in_channels) as f64;
                cycles += rows * tiles as f64 * (work + 60.0 + 12.0 * columns as f64);
                left -= tiles * vectors.min(left);
            }
        }
    }
    cycles * filter.groups as f64
}
