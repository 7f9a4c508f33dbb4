//! The pixel path: tiles of output channels × neighbouring positions of a row. Weights are broadcast, inputs fill
//! vectors, so channels-first tensors are read and written where they lie.
//!
//! The phases of the last axis are computed one after the other for the same stretch of a row and stored together,
//! so that whole cache lines are written.

use outstride_kernels::{MAX_COLUMNS, PixelTap, PixelTile, Real};
use outstride_spec::Phase;

use super::axis::{EngineAxis, Span};
use super::boxes::Boxes;
use super::pack::{Form, PackedFilter};
use super::problem::Problem;

/// Input of one box.
const INPUT_BYTES: usize = 1 << 18;

/// Phases of the last axis that are held in a tile before it is stored.
const PHASES_AT_ONCE: usize = 8;

/// Output channels of one phase of the outer axes, with the phases of the last axis that are stored together.
struct Block {
    /// The phases of the batch and of all axes but the last.
    outer: Vec<Phase>,
    first_channel: usize,
    columns: usize,
    inner: Vec<InnerPhase>,
}

/// One phase of the last axis within a block.
struct InnerPhase {
    residue: usize,
    taps: Vec<BlockTap>,
    weight_stride: usize,
}

/// A tap of a block.
struct BlockTap {
    /// Per axis.
    deltas: Vec<usize>,
    weights: WeightsAt,
}

/// Where a tap's weights begin.
enum WeightsAt {
    /// In a panel's weights, at this element.
    Panel { panel: usize, element: usize },
    /// In a depthwise filter, at this kernel element.
    Depthwise { element: usize },
}

/// How the pixel path cuts a problem into tasks.
pub(crate) struct PixelPlan {
    blocks: Vec<Block>,
    /// Over all axes; along the last one in steps of a row's own positions, which begin at 0 for every phase.
    boxes: Boxes,
    splits: usize,
}

impl PixelPlan {
    pub(crate) fn new<T: Real>(axes: &[EngineAxis<'_>], filter: &PackedFilter<T>, threads: usize) -> Self {
        let last = axes.len() - 1;
        let mut space: Vec<Span> = axes
            .iter()
            .map(|axis| {
                let spans = axis.phases.iter().map(|phase| axis.span(phase.residue));
                spans.fold(Span { first: 0, count: 0 }, |hull, span| hull.hull(&span))
            })
            .collect();
        let longest = axes[last].phases.iter().map(|phase| axes[last].span(phase.residue).count).max();
        space[last] = Span { first: 0, count: longest.unwrap_or(0) };
        let lanes = filter.kernels.lanes();
        let mut granules = vec![1; axes.len()];
        granules[last] = 8 * lanes;
        let wanted = 4 * threads;
        let reach = |axis: &EngineAxis<'_>| {
            axis.phases.iter().filter_map(|phase| phase.taps.last()).map(|tap| tap.delta).max().unwrap_or(0)
        };
        let reaches: Vec<usize> = axes.iter().map(reach).collect();
        let boxes = Boxes::cut(space, &granules, |chunk, boxes| {
            let input: usize = chunk.iter().zip(&reaches).map(|(&count, &reach)| count + reach).product();
            let fits = input.saturating_mul(filter.in_channels * size_of::<T>()) <= INPUT_BYTES;
            fits && (threads == 1 || boxes * filter.groups >= wanted)
        });
        let blocks = blocks(axes, filter);
        let work_items = (boxes.len() * filter.groups).max(1);
        let splits = if threads == 1 || work_items >= 2 * threads {
            1
        } else {
            wanted.div_ceil(work_items).min(blocks.len()).max(1)
        };
        PixelPlan { blocks, boxes, splits }
    }

    pub(crate) fn tasks<T: Real>(&self, filter: &PackedFilter<T>) -> usize {
        filter.groups * self.boxes.len() * self.splits
    }

    /// Runs one task.
    pub(crate) fn run<T: Real>(&self, problem: &Problem<'_, T>, task: usize) {
        let split = task % self.splits;
        let index = task / self.splits % self.boxes.len();
        let group = task / self.splits / self.boxes.len();
        let spans = self.boxes.get(index);
        let share = |part: usize| self.blocks.len() * part / self.splits;
        let mut worker = Worker::new(problem, group);
        for block in &self.blocks[share(split)..share(split + 1)] {
            worker.block(block, &spans);
        }
    }
}

/// The blocks of a filter: every phase of the outer axes × runs of output channels that fit a kernel.
fn blocks<T: Real>(axes: &[EngineAxis<'_>], filter: &PackedFilter<T>) -> Vec<Block> {
    let last = axes.len() - 1;
    let inner_count = axes[last].phases.len();
    let outer_count: usize = axes[..last].iter().map(|axis| axis.phases.len()).product();
    let pieces = Pieces::new(filter);
    let mut blocks = Vec::new();
    for outer_index in 0..outer_count {
        for inner_first in (0..inner_count).step_by(PHASES_AT_ONCE) {
            let inner_end = inner_count.min(inner_first + PHASES_AT_ONCE);
            let phases = outer_index * inner_count + inner_first..outer_index * inner_count + inner_end;
            for (first_channel, columns) in pieces.cuts(phases.clone(), widest_block(filter)) {
                let inner =
                    phases.clone().map(|phase| pieces.inner_phase(filter, phase, first_channel)).collect();
                let outer = std::iter::once(axes[0].phases[0].clone())
                    .chain(filter.phase(outer_index * inner_count + inner_first).into_iter().cloned())
                    .take(last)
                    .collect();
                blocks.push(Block { outer, first_channel, columns, inner });
            }
        }
    }
    blocks
}

fn widest_block<T: Real>(filter: &PackedFilter<T>) -> usize {
    filter.kernels.pixel_shapes().map(|(columns, _)| columns).max().unwrap_or(1).min(MAX_COLUMNS)
}

/// Where the weights of each phase's output channels lie: runs of channels within panels.
struct Pieces {
    /// Per phase, by rising channel. Empty for depthwise filters.
    by_phase: Vec<Vec<Piece>>,
}

#[derive(Clone, Copy)]
struct Piece {
    first_channel: usize,
    channels: usize,
    panel: usize,
    column: usize,
}

impl Pieces {
    fn new<T: Real>(filter: &PackedFilter<T>) -> Self {
        let count = filter.phases.iter().map(Vec::len).product();
        let mut by_phase = vec![Vec::new(); count];
        if let Form::Panels(panels) = &filter.form {
            for (index, panel) in panels.panels.iter().enumerate() {
                for segment in panels.segments(panel) {
                    by_phase[segment.phase].push(Piece {
                        first_channel: segment.first_channel,
                        channels: segment.channels,
                        panel: index,
                        column: segment.column,
                    });
                }
            }
        }
        Pieces { by_phase }
    }

    /// Runs of channels that lie in one panel for each of the phases, none wider than `widest`.
    fn cuts(&self, phases: std::ops::Range<usize>, widest: usize) -> Vec<(usize, usize)> {
        let mut edges: Vec<usize> = phases
            .flat_map(|phase| &self.by_phase[phase])
            .flat_map(|piece| [piece.first_channel, piece.first_channel + piece.channels])
            .collect();
        edges.sort_unstable();
        edges.dedup();
        if edges.is_empty() {
            return vec![(0, 1)];
        }
        let mut cuts = Vec::new();
        for pair in edges.windows(2) {
            let length = pair[1] - pair[0];
            let parts = length.div_ceil(widest);
            let at = |part: usize| pair[0] + length * part / parts;
            cuts.extend((0..parts).map(|part| (at(part), at(part + 1) - at(part))));
        }
        cuts
    }

    fn inner_phase<T: Real>(&self, filter: &PackedFilter<T>, phase: usize, channel: usize) -> InnerPhase {
        let parts = filter.phase(phase);
        let residue = parts.last().map_or(0, |phase| phase.residue);
        let piece = self.by_phase[phase]
            .iter()
            .find(|piece| (piece.first_channel..piece.first_channel + piece.channels).contains(&channel));
        let (Form::Panels(panels), Some(piece)) = (&filter.form, piece) else {
            let taps = product(&parts, |tap_indices| {
                let element = tap_indices
                    .iter()
                    .zip(&parts)
                    .zip(&filter.kernel)
                    .fold(0, |element, ((&index, phase), &size)| element * size + phase.taps[index].kernel);
                WeightsAt::Depthwise { element }
            });
            return InnerPhase { residue, taps, weight_stride: 0 };
        };
        let panel = &panels.panels[piece.panel];
        let width = panel.vectors * filter.kernels.lanes();
        let taps = product(&parts, |tap_indices| {
            let number = tap_indices.iter().zip(&parts).zip(&panel.deltas).fold(
                0,
                |number, ((&index, phase), deltas)| {
                    let delta = phase.taps[index].delta;
                    let at = deltas.iter().position(|&other| other == delta).unwrap_or(0);
                    number * deltas.len() + at
                },
            );
            let element =
                number * filter.in_channels * width + piece.column + (channel - piece.first_channel);
            WeightsAt::Panel { panel: piece.panel, element }
        });
        InnerPhase { residue, taps, weight_stride: width }
    }
}

/// Every combination of one tap per axis, the last axis fastest, with a delta for the batch in front.
fn product(parts: &[&Phase], weights: impl Fn(&[usize]) -> WeightsAt) -> Vec<BlockTap> {
    let count: usize = parts.iter().map(|phase| phase.taps.len()).product();
    (0..count)
        .map(|mut number| {
            let mut indices = vec![0; parts.len()];
            for (axis, phase) in parts.iter().enumerate().rev() {
                indices[axis] = number % phase.taps.len();
                number /= phase.taps.len();
            }
            let deltas = parts.iter().zip(&indices).map(|(phase, &index)| phase.taps[index].delta);
            BlockTap { deltas: std::iter::once(0).chain(deltas).collect(), weights: weights(&indices) }
        })
        .collect()
}

/// The buffers with which a task computes its tiles.
struct Worker<'a, T: Real> {
    problem: &'a Problem<'a, T>,
    group: usize,
    taps: Vec<PixelTap<T>>,
    /// `[phase of the last axis][column][position]`
    tiles: Vec<T>,
}

impl<'a, T: Real> Worker<'a, T> {
    fn new(problem: &'a Problem<'a, T>, group: usize) -> Self {
        let shapes = problem.filter.kernels.pixel_shapes();
        let largest = shapes.map(|(columns, vectors)| columns * vectors).max().unwrap_or(1);
        let tile = largest * problem.filter.kernels.lanes();
        Worker { problem, group, taps: Vec::new(), tiles: vec![T::default(); PHASES_AT_ONCE * tile] }
    }

    /// Computes a block at the positions `spans`.
    fn block(&mut self, block: &Block, spans: &[Span]) {
        let problem = self.problem;
        let last = spans.len() - 1;
        let outer: Vec<Span> = (0..last)
            .map(|axis| problem.axes[axis].span(block.outer[axis].residue).intersect(&spans[axis]))
            .collect();
        if outer.iter().any(|span| span.count == 0) {
            return;
        }
        let mut q: Vec<i64> = outer.iter().map(|span| span.first).collect();
        loop {
            self.row(block, &q, &spans[last]);
            let Some(axis) = (0..last).rev().find(|&axis| q[axis] + 1 < outer[axis].end()) else { return };
            q[axis] += 1;
            for axis in axis + 1..last {
                q[axis] = outer[axis].first;
            }
        }
    }

    /// Computes one row of a block, stretch by stretch.
    fn row(&mut self, block: &Block, q: &[i64], stretch: &Span) {
        let lanes = self.problem.filter.kernels.lanes();
        let axis = &self.problem.axes[q.len()];
        let counts = block.inner.iter().map(|phase| axis.span(phase.residue).count);
        let end = stretch.end().min(counts.max().unwrap_or(0) as i64) as usize;
        let mut first = stretch.first as usize;
        while first < end {
            let vectors = (end - first).div_ceil(lanes);
            let mut shapes = self.problem.filter.kernels.pixel_shapes();
            let fitting = shapes.find(|&(columns, have)| have <= vectors && block.columns <= columns);
            let vectors = fitting.map_or(1, |(_, vectors)| vectors);
            let width = vectors * lanes;
            for (index, phase) in block.inner.iter().enumerate() {
                self.tile(block, phase, q, first, vectors, index * block.columns * width);
            }
            let used = block.inner.len() * block.columns * width;
            self.problem.filter.kernels.activate(&mut self.tiles[..used], &self.problem.activation);
            self.store(block, q, first, width);
            first += width;
        }
    }

    /// Computes one phase of the last axis for a stretch of a row.
    fn tile(
        &mut self,
        block: &Block,
        phase: &InnerPhase,
        q: &[i64],
        first: usize,
        vectors: usize,
        at: usize,
    ) {
        let problem = self.problem;
        let filter = problem.filter;
        let width = vectors * filter.kernels.lanes();
        let last = &problem.axes[q.len()];
        let q_last = last.span(phase.residue).first + first as i64;
        self.taps.clear();
        let input = problem.x.as_ptr().wrapping_add(problem.x_group(self.group));
        'taps: for tap in &phase.taps {
            let mut offset = 0isize;
            for (axis, &q) in q.iter().enumerate() {
                let index = q - tap.deltas[axis] as i64;
                if index < 0 || index >= problem.axes[axis].input as i64 {
                    continue 'taps;
                }
                offset += index as isize * problem.axes[axis].x_stride;
            }
            let index = q_last - tap.deltas[q.len()] as i64;
            let from = (-index).clamp(0, width as i64) as usize;
            let to = (last.input as i64 - index).clamp(0, width as i64) as usize;
            if from < to {
                let weights = match tap.weights {
                    WeightsAt::Panel { panel, element } => {
                        &filter.panel_weights(self.group, filter.panel(panel))[element..]
                    }
                    WeightsAt::Depthwise { element } => &filter.depthwise_weights(element)[self.group..],
                };
                let input = input.wrapping_offset(offset + index as isize);
                self.taps.push(PixelTap { input, weights: weights.as_ptr(), from, to });
            }
        }
        let first_bias = self.group * filter.out_channels + block.first_channel;
        let tile = PixelTile {
            taps: &self.taps,
            channels: filter.in_channels,
            channel_stride: problem.x_channel_stride,
            weight_stride: phase.weight_stride,
            bias: &filter.bias[first_bias..first_bias + block.columns],
        };
        let out = &mut self.tiles[at..at + block.columns * width];
        // SAFETY: the last axis has stride 1 (the planner's condition), and `from..to` are the positions whose input
        // index is inside it, so each is an element of the tensor at every channel of the group; the weights of the
        // block's columns lie next to each other at every channel.
        let finite = unsafe { filter.kernels.pixel(block.columns, vectors, &tile, out) };
        if !finite {
            // SAFETY: as for the kernel.
            unsafe { rescue(&tile, block.columns, width, out) };
        }
    }

    fn store(&self, block: &Block, q: &[i64], first: usize, width: usize) {
        let problem = self.problem;
        let last = &problem.axes[q.len()];
        let outer: isize = q
            .iter()
            .enumerate()
            .map(|(axis, &q)| {
                let axis_of = &problem.axes[axis];
                axis_of.output_at(q, block.outer[axis].residue) as isize * axis_of.y_stride
            })
            .sum();
        let stretch = |phase: &InnerPhase| {
            let span = last.span(phase.residue);
            let first_output = last.output_at(span.first + first as i64, phase.residue) as isize;
            (first_output * last.y_stride, span.count.saturating_sub(first).min(width))
        };
        for column in 0..block.columns {
            let base = problem.y_channel(self.group, block.first_channel + column) + outer;
            let values =
                |phase: usize, count: usize| &self.tiles[(phase * block.columns + column) * width..][..count];
            if let ([a, b], 2, 1) = (block.inner.as_slice(), last.stride, last.y_stride) {
                let ((a_first, a_count), (b_first, b_count)) = (stretch(a), stretch(b));
                if a_count == b_count && a_count > 0 {
                    let (even, odd) = if a_first < b_first { (0, 1) } else { (1, 0) };
                    let target = base + a_first.min(b_first);
                    // SAFETY: each output belongs to one position of one phase, and each task has its own positions
                    // and blocks.
                    unsafe {
                        problem.y.write_interleaved(target, values(even, a_count), values(odd, a_count))
                    };
                    continue;
                }
            }
            for (index, phase) in block.inner.iter().enumerate() {
                let (offset, count) = stretch(phase);
                if count > 0 {
                    let stride = last.stride as isize * last.y_stride;
                    // SAFETY: as above.
                    unsafe { problem.y.write(base + offset, stride, values(index, count)) };
                }
            }
        }
    }
}

/// Sums a tile again, product by product, leaving out positions outside the input: the zeros that stand in for them
/// multiply to NaN where a weight is infinite or NaN.
///
/// # Safety
///
/// As for the pixel kernel.
unsafe fn rescue<T: Real>(tile: &PixelTile<'_, T>, columns: usize, width: usize, out: &mut [T]) {
    for column in 0..columns {
        for position in 0..width {
            let mut sum = T::default();
            for tap in tile.taps.iter().filter(|tap| (tap.from..tap.to).contains(&position)) {
                for channel in 0..tile.channels {
                    let x = tap
                        .input
                        .wrapping_add(position)
                        .wrapping_offset(channel as isize * tile.channel_stride);
                    let w = tap.weights.wrapping_add(channel * tile.weight_stride + column);
                    // SAFETY: the caller vouches for every channel at positions `from..to` and for the weights.
                    sum = unsafe { sum.plus_product(x.read(), w.read()) };
                }
            }
            out[column * width + position] = sum.plus(tile.bias[column]);
        }
    }
}
