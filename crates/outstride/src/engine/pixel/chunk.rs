//! Computing the blocks of a task, chunk by chunk.

use std::ops::Range;

use outstride_kernels::{Kernels, LinesAhead, MAX_COLUMNS, PixelTap, PixelTiles, Real};

use super::super::axis::{Span, meeting};
use super::super::problem::Problem;
use super::Chunk;
use super::blocks::{Block, Line};
use super::exact::Site;
use super::planes::Planes;
use super::store::Targets;
use crate::aligned::Aligned;

/// Inputs up to this size stay in the first-level cache.
const NEAR_BYTES: usize = 1 << 15;

/// How many vectors the next tile of a stretch takes.
pub(super) fn vectors_for<T: Real>(kernels: &Kernels<T>, columns: usize, left: usize) -> usize {
    let fitting = kernels.pixel_shapes().find(|&(have, vectors)| vectors <= left && columns <= have);
    fitting.map_or(1, |(_, vectors)| vectors)
}

/// How many elements behind the last position kernels may read: they compute whole vectors.
pub(super) fn beyond<T: Real>(kernels: &Kernels<T>) -> usize {
    kernels.lanes()
}

/// The most bytes of the lists that a block is computed and stored by, of which a chunk has so many rows. They grow while they are
/// made.
pub(super) fn most_bytes_of_lists(block: &Block, rows: usize) -> usize {
    let taps: usize = block.lines.iter().map(|line| line.taps.len()).sum();
    let windows: usize = block.lines.iter().map(|line| line.deltas.len()).sum();
    2 * (taps * (size_of::<PixelTap>() + size_of::<usize>())
        + windows * size_of::<Range<usize>>()
        + Targets::bytes(&block.outputs, rows))
}

/// Computes and stores the blocks of a task.
pub(super) struct Worker<'a, T: Real> {
    problem: &'a Problem<'a, T>,
    groups: Range<usize>,
    planes: &'a Planes,
    /// The planes of all channels of all groups.
    input: &'a [T],
    /// `[column][position]`, columns at a distance of `pitch`.
    sums: &'a mut Aligned<T>,
    pitch: usize,
    /// The taps of all lines that meet the input, each with its number in its line.
    taps: Vec<PixelTap>,
    numbers: Vec<usize>,
    /// Per line, its part of these; none if they are to be collected.
    of_lines: Vec<Range<usize>>,
    /// Per line and axis, the deltas that these have. Most chunks have those of the one before.
    windows: Vec<Range<usize>>,
    targets: Targets,
}

impl<'a, T: Real> Worker<'a, T> {
    pub(super) fn new(
        problem: &'a Problem<'a, T>,
        groups: Range<usize>,
        (planes, input): (&'a Planes, &'a [T]),
        (sums, pitch): (&'a mut Aligned<T>, usize),
    ) -> Self {
        Worker {
            problem,
            groups,
            planes,
            input,
            sums,
            pitch,
            taps: Vec::new(),
            numbers: Vec::new(),
            of_lines: Vec::new(),
            windows: Vec::new(),
            targets: Targets::default(),
        }
    }

    /// Computes a block at the positions `spans`.
    pub(super) fn block(&mut self, block: &Block, spans: &[Span], chunk: Chunk) {
        let positions = block.outputs.positions(&self.problem.axes);
        let spans: Vec<Span> = positions.iter().zip(spans).map(|(a, b)| a.intersect(b)).collect();
        self.windows.clear();
        self.of_lines.clear();
        chunk.each(&spans, |at| self.chunk(block, at));
    }

    /// Computes and stores the outputs of a block at the positions of a chunk, for all groups.
    fn chunk(&mut self, block: &Block, spans: &[Span]) {
        self.find_windows(block, spans);
        if self.of_lines.is_empty() {
            self.taps.clear();
            self.numbers.clear();
            for (number, line) in block.lines.iter().enumerate() {
                let first = self.taps.len();
                self.collect_taps(line, number * spans.len()..(number + 1) * spans.len());
                self.of_lines.push(first..self.taps.len());
            }
        }
        self.targets.find(self.problem, &block.outputs, spans);
        let rows = spans[spans.len() - 2].count;
        let positions = (rows - 1) * self.planes.pitch() + spans[spans.len() - 1].count;
        for group in self.groups.clone() {
            let mut column = 0;
            for index in 0..block.lines.len() {
                self.line(block, index, (group, column), spans, positions);
                column += block.lines[index].columns.len();
            }
            self.finish(block, group, positions);
            let sums = self.sums.at_least(block.outputs.columns * self.pitch);
            self.targets.store(self.problem, &block.outputs, group, sums, (self.pitch, self.planes.pitch()));
        }
    }

    /// Finds which taps of each line meet the input at any position of a chunk, and forgets those that are collected if they were others.
    fn find_windows(&mut self, block: &Block, spans: &[Span]) {
        let axes = &self.problem.axes;
        let of_axes = block.lines.iter().flat_map(|line| line.deltas.iter().zip(spans).zip(axes));
        for (index, ((deltas, span), axis)) in of_axes.enumerate() {
            let window = meeting(deltas, *span, axis.whole_input());
            if self.windows.get(index) != Some(&window) {
                self.of_lines.clear();
                self.windows.truncate(index);
                self.windows.push(window);
            }
        }
    }

    /// Collects the taps of a line that meet the input, given which windows are its own.
    fn collect_taps(&mut self, line: &Line, windows: Range<usize>) {
        let windows = &self.windows[windows];
        let combinations: usize = windows.iter().map(Range::len).product();
        let mut deltas = vec![0; windows.len()];
        let first = self.taps.len();
        let is_far = size_of_val(self.input) > NEAR_BYTES;
        for combination in 0..combinations {
            let (mut rest, mut number, mut stride) = (combination, 0, 1);
            for (axis, window) in windows.iter().enumerate().rev() {
                let which = window.start + rest % window.len();
                rest /= window.len();
                number += which * stride;
                stride *= line.deltas[axis].len();
                deltas[axis] = line.deltas[axis][which];
            }
            let tap = line.taps[number];
            if tap.feeds != 0 {
                let input = self.planes.distance(deltas.iter().copied());
                let near = self.problem.filter.kernels.lanes();
                let leads =
                    is_far && self.taps[first..].iter().all(|other| other.input.abs_diff(input) >= near);
                self.taps.push(PixelTap { input, weights: tap.weights, feeds: tap.feeds, leads });
                self.numbers.push(number);
            }
        }
    }

    /// Computes one line of a block in a group, whose first column is given, too.
    fn line(
        &mut self,
        block: &Block,
        index: usize,
        (group, first_column): (usize, usize),
        spans: &[Span],
        positions: usize,
    ) {
        let filter = self.problem.filter;
        let line = &block.lines[index];
        let taps = self.of_lines[index].clone();
        let columns = line.columns.len();
        let first_channel = group * filter.out_channels;
        let mut bias = [T::default(); MAX_COLUMNS];
        for (bias, column) in bias.iter_mut().zip(&line.columns) {
            *bias = filter.bias[first_channel + column.channel];
        }
        let plane = (group - self.groups.start) * filter.in_channels * self.planes.stride;
        let place = plane as isize + self.planes.place(spans.iter().map(|span| span.first));
        let input = self.input.as_ptr().wrapping_offset(place);
        let out = &mut self.sums.at_least(block.outputs.columns * self.pitch)[first_column * self.pitch..];
        let mut finite = true;
        let (mut first, mut left) = (0, positions.div_ceil(filter.kernels.lanes()));
        while left > 0 {
            let vectors = vectors_for(filter.kernels, columns, left);
            let tiles = PixelTiles {
                taps: &self.taps[taps.clone()],
                input: input.wrapping_add(first),
                weights: filter.group_weights(group).as_ptr(),
                channels: filter.in_channels,
                channel_stride: self.planes.stride,
                weight_stride: line.weight_stride,
                bias: &bias,
                count: left / vectors,
                pitch: self.pitch,
                ahead: LinesAhead::NONE,
                copy: std::ptr::null_mut(),
            };
            // SAFETY: a tap that meets the input at some position of the chunk reads inside the planes at all of them, and
            // so between rows; there is a vector's room behind the last one. The weights of the line's columns lie next to
            // each other at every channel.
            finite &= unsafe { filter.kernels.pixel(columns, vectors, &tiles, &mut out[first..]) };
            first += tiles.count * vectors * filter.kernels.lanes();
            left -= tiles.count * vectors;
        }
        if !finite {
            let site = Site {
                problem: self.problem,
                group,
                line,
                spans,
                taps: &self.taps[taps.clone()],
                numbers: &self.numbers[taps],
                planes: self.planes,
                input: &self.input[plane..],
            };
            site.sum_again(out, self.pitch);
        }
    }

    /// Finishes the sums of all columns.
    fn finish(&mut self, block: &Block, group: usize, positions: usize) {
        let first = group * self.problem.filter.out_channels;
        let sums = self.sums.at_least(block.outputs.columns * self.pitch).chunks_exact_mut(self.pitch);
        for (column, sums) in block.lines.iter().flat_map(|line| &line.columns).zip(sums) {
            self.problem.finish_channel(first + column.channel, &mut sums[..positions]);
        }
    }
}
