//! Computing and storing the tiles of a task.

use std::ops::Range;

use outstride_kernels::{Kernels, PixelTap, PixelTile, Real};

use super::super::axis::{Span, meeting};
use super::super::gather::Planes;
use super::super::problem::Problem;
use super::blocks::{Block, ColumnId, Line, Store, WeightsAt};

/// How many vectors the next tile of a stretch takes.
pub(super) fn vectors_for<T: Real>(kernels: &Kernels<T>, columns: usize, left: usize) -> usize {
    let fitting = kernels.pixel_shapes().find(|&(have, vectors)| vectors <= left && columns <= have);
    fitting.map_or(1, |(_, vectors)| vectors)
}

/// The buffers with which a task computes its tiles.
pub(super) struct Worker<'a, T: Real> {
    problem: &'a Problem<'a, T>,
    group: usize,
    planes: Planes<'a, T>,
    /// The taps of the current row that meet the input on every axis but the last, line by line.
    row_taps: Vec<Vec<RowTaps<T>>>,
    taps: Vec<PixelTap<T>>,
    /// Of each of `taps`, its number among the line's taps.
    numbers: Vec<usize>,
    /// Per line, `[column][position]`, one behind the other.
    tiles: Vec<T>,
    /// Where each line's columns begin, counted in columns.
    starts: Vec<usize>,
    /// The bias of every column, line by line.
    bias: Vec<T>,
    /// The positions of each of the current block's lines.
    lines: Vec<Span>,
    /// Where the values of each column go, line by line, known for the first column of every phase.
    strips: Vec<Strip>,
}

/// Taps that meet the input on every axis but the last, where they are still open.
struct RowTaps<T> {
    /// The number of the first of them; one follows the other by their deltas along the last axis.
    first_number: usize,
    /// Channel 0 at index 0 of the last axis.
    input: *const T,
}

/// The part of a column's tile that lies inside the output.
#[derive(Clone, Copy)]
struct Strip {
    /// Lanes `from..to` of the column's values.
    from: usize,
    to: usize,
    /// Where lane 0 would be stored.
    target: isize,
}

impl<'a, T: Real> Worker<'a, T> {
    pub(super) fn new(problem: &'a Problem<'a, T>, group: usize, planes: Planes<'a, T>) -> Self {
        Worker {
            problem,
            group,
            planes,
            row_taps: Vec::new(),
            taps: Vec::new(),
            numbers: Vec::new(),
            tiles: Vec::new(),
            starts: Vec::new(),
            bias: Vec::new(),
            lines: Vec::new(),
            strips: Vec::new(),
        }
    }

    /// Computes a block at the positions `spans`.
    pub(super) fn block(&mut self, block: &Block, spans: &[Span]) {
        let last = spans.len() - 1;
        let outer: Vec<Span> =
            block.outer(&self.problem.axes).iter().zip(spans).map(|(a, b)| a.intersect(b)).collect();
        if outer.iter().any(|span| span.count == 0) {
            return;
        }
        self.begin(block);
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

    /// Collects what all rows of a block have in common.
    fn begin(&mut self, block: &Block) {
        let problem = self.problem;
        let last = &problem.axes[problem.axes.len() - 1];
        self.lines.clear();
        self.starts.clear();
        self.bias.clear();
        for line in &block.lines {
            self.lines.push(line.span(last));
            self.starts.push(self.bias.len());
            let first = self.group * problem.filter.out_channels;
            self.bias.extend(line.columns.iter().map(|column| problem.filter.bias[first + column.channel]));
        }
        self.row_taps.resize_with(block.lines.len(), Vec::new);
    }

    /// Computes one row of a block, stretch by stretch.
    fn row(&mut self, block: &Block, q: &[i64], stretch: &Span) {
        let kernels = self.problem.filter.kernels;
        for (index, line) in block.lines.iter().enumerate() {
            self.collect_row_taps(index, line, q);
        }
        let longest = self.lines.iter().map(|span| span.count).max().unwrap_or(0);
        let columns = block.lines.iter().map(|line| line.columns.len()).max().unwrap_or(0);
        let end = (stretch.end() as usize).min(longest);
        let mut first = stretch.first as usize;
        while first < end {
            let vectors = vectors_for(kernels, columns, (end - first).div_ceil(kernels.lanes()));
            let width = vectors * kernels.lanes();
            let used = self.bias.len() * width;
            if self.tiles.len() < used {
                self.tiles.resize(used, T::default());
            }
            for (index, line) in block.lines.iter().enumerate() {
                self.tile(index, line, first, vectors);
            }
            self.finish(block, width);
            self.store(block, q, first, width);
            first += width;
        }
    }

    /// Finishes the sums of all lines.
    fn finish(&mut self, block: &Block, width: usize) {
        let Problem { filter, finish, .. } = self.problem;
        let Some(scaling) = finish.scaling else {
            finish.apply(filter.kernels, &mut self.tiles[..self.bias.len() * width], None);
            return;
        };
        let first = self.group * filter.out_channels;
        let columns = block.lines.iter().flat_map(|line| &line.columns);
        for (column, sums) in columns.zip(self.tiles.chunks_exact_mut(width)) {
            let channel = first + column.channel;
            finish.apply(filter.kernels, sums, Some(scaling.channels(channel..channel + 1)));
        }
    }

    /// Computes one line for a stretch of a row.
    fn tile(&mut self, index: usize, line: &Line, first: usize, vectors: usize) {
        let filter = self.problem.filter;
        let width = vectors * filter.kernels.lanes();
        self.collect_taps(index, line, first, width);
        let columns = line.columns.len();
        let start = self.starts[index];
        let tile = PixelTile {
            taps: &self.taps,
            channels: filter.in_channels,
            channel_stride: self.planes.channel_stride(),
            weight_stride: line.weight_stride,
            bias: &self.bias[start..start + columns],
        };
        let out = &mut self.tiles[start * width..(start + columns) * width];
        // SAFETY: positions are next to each other on the last axis (the planner's condition, or the copy's layout),
        // and `from..to` are those whose input index lies inside what `planes` holds, at every channel of the group;
        // the weights of the line's columns lie next to each other at every channel.
        let finite = unsafe { filter.kernels.pixel(columns, vectors, &tile, out) };
        if !finite {
            // SAFETY: as for the kernel.
            unsafe { rescue(filter.kernels, &tile, line, &self.numbers, width, out) };
        }
    }

    /// The taps of a line that meet the input on every axis but the last.
    fn collect_row_taps(&mut self, index: usize, line: &Line, q: &[i64]) {
        let windows: Vec<Range<usize>> = q
            .iter()
            .enumerate()
            .map(|(axis, &q)| {
                meeting(&line.deltas[axis], Span { first: q, count: 1 }, self.planes.span(axis))
            })
            .collect();
        let taps = &mut self.row_taps[index];
        taps.clear();
        let combinations: usize = windows.iter().map(Range::len).product();
        for combination in 0..combinations {
            let mut rest = combination;
            let mut stride = line.deltas[q.len()].len();
            let (mut first_number, mut offset) = (0, 0isize);
            for (axis, window) in windows.iter().enumerate().rev() {
                let which = window.start + rest % window.len();
                rest /= window.len();
                first_number += which * stride;
                stride *= line.deltas[axis].len();
                let index = q[axis] - line.deltas[axis][which] as i64;
                offset += index as isize * self.planes.stride(axis);
            }
            taps.push(RowTaps { first_number, input: self.planes.origin().wrapping_offset(offset) });
        }
    }

    /// The taps of a line that meet the input in the stretch from position `first` on.
    fn collect_taps(&mut self, index: usize, line: &Line, first: usize, width: usize) {
        let filter = self.problem.filter;
        self.taps.clear();
        self.numbers.clear();
        let last = self.problem.axes.len() - 1;
        let read = Span { first: self.lines[index].first + first as i64, count: width };
        let inside = self.planes.span(last);
        let deltas = &line.deltas[last];
        let window = meeting(deltas, read, inside);
        for taps in &self.row_taps[index] {
            for which in window.clone() {
                let index = read.first - deltas[which] as i64;
                let lane = |position: i64| (position - index).clamp(0, width as i64) as usize;
                let (from, to) = (lane(inside.first), lane(inside.end()));
                if from >= to {
                    continue;
                }
                let number = taps.first_number + which;
                let weights = match line.taps[number].weights {
                    WeightsAt::Panel { panel, element } => {
                        &filter.panel_weights(self.group, filter.panel(panel))[element..]
                    }
                    WeightsAt::Depthwise { element } => &filter.depthwise_weights(element)[self.group..],
                };
                let input = taps.input.wrapping_offset(index as isize);
                self.taps.push(PixelTap { input, weights: weights.as_ptr(), from, to });
                self.numbers.push(number);
            }
        }
    }

    fn store(&mut self, block: &Block, q: &[i64], first: usize, width: usize) {
        self.collect_strips(block, q, first, width);
        let y = &self.problem.y;
        let last = &self.problem.axes[q.len()];
        let step = last.stride as isize * last.y_stride;
        for store in &block.stores {
            match *store {
                Store::Alone(column) => {
                    let strip = self.strip(block, column);
                    let values = self.values(column, width);
                    let target = strip.target + strip.from as isize * step;
                    // SAFETY: each output belongs to one position of one phase, and each task has its own positions
                    // and blocks.
                    unsafe { y.write(target, step, &values[strip.from..strip.to]) };
                }
                Store::Interleaved(a, b) => {
                    let mut even = (self.strip(block, a), self.values(a, width));
                    let mut odd = (self.strip(block, b), self.values(b, width));
                    if odd.0.target < even.0.target {
                        std::mem::swap(&mut even, &mut odd);
                    }
                    let ((low, even), (high, odd)) = (even, odd);
                    let in_turns = last.y_stride == 1 && high.target - low.target == 1;
                    let from = low.from.max(high.from);
                    let to = if in_turns { low.to.min(high.to).max(from) } else { from };
                    if from < to {
                        let target = low.target + from as isize * step;
                        // SAFETY: as above.
                        unsafe { y.write_interleaved(target, &even[from..to], &odd[from..to]) };
                    }
                    for (strip, values) in [(low, even), (high, odd)] {
                        for lane in (strip.from..from.min(strip.to)).chain(to.max(strip.from)..strip.to) {
                            let target = strip.target + lane as isize * step;
                            // SAFETY: as above.
                            unsafe { y.write(target, step, &values[lane..lane + 1]) };
                        }
                    }
                }
            }
        }
    }

    /// A column's values of the current stretch.
    fn values(&self, (line, column): ColumnId, width: usize) -> &[T] {
        &self.tiles[(self.starts[line] + column) * width..][..width]
    }

    /// Where a column's values of the current stretch go.
    #[inline]
    fn strip(&self, block: &Block, (line, column): ColumnId) -> Strip {
        let of_line = &block.lines[line];
        let strip = self.strips[self.starts[line] + of_line.same_phase[column]];
        let channel = self.problem.y_channel(self.group, of_line.columns[column].channel);
        Strip { target: strip.target + channel, ..strip }
    }

    /// Finds where the values of each line's phases go. A strip is empty if the row has no outputs in its phase.
    fn collect_strips(&mut self, block: &Block, q: &[i64], first: usize, width: usize) {
        self.strips.clear();
        for (line, span) in block.lines.iter().zip(&self.lines) {
            for (number, column) in line.columns.iter().enumerate() {
                let strip = if line.same_phase[number] == number {
                    self.strip_of_phase(&column.residues, q, span.first + first as i64, width)
                } else {
                    Strip { from: 0, to: 0, target: 0 }
                };
                self.strips.push(strip);
            }
        }
    }

    /// Where the values of channel 0 in a phase go, from position `q_last` of a row on.
    fn strip_of_phase(&self, residues: &[usize], q: &[i64], q_last: i64, width: usize) -> Strip {
        let mut target = 0;
        for (axis, &q) in q.iter().enumerate() {
            let of_axis = &self.problem.axes[axis];
            let output = of_axis.output_at(q, residues[axis]);
            if output < 0 || output >= of_axis.output as i64 {
                return Strip { from: 0, to: 0, target };
            }
            target += output as isize * of_axis.y_stride;
        }
        let last = &self.problem.axes[q.len()];
        let residue = residues[q.len()];
        let inside = last.span(residue);
        target += last.output_at(q_last, residue) as isize * last.y_stride;
        let lane = |position: i64| (position - q_last).clamp(0, width as i64) as usize;
        let (from, to) = (lane(inside.first), lane(inside.end()));
        Strip { from, to: to.max(from), target }
    }
}

/// Sums again, product by product and in the same order, what is not finite, leaving out what is only padding: positions
/// outside the input, and weights that stand in for taps a phase does not have. Those multiply to NaN where a real value
/// is infinite or NaN.
///
/// # Safety
///
/// As for the pixel kernel.
#[cold]
unsafe fn rescue<T: Real>(
    kernels: &Kernels<T>,
    tile: &PixelTile<'_, T>,
    line: &Line,
    numbers: &[usize],
    width: usize,
    out: &mut [T],
) {
    for column in 0..line.columns.len() {
        for position in 0..width {
            // What is finite stays: its bits must not depend on what shares its tile.
            if out[column * width + position].is_finite() {
                continue;
            }
            let is_real = |&(tap, number): &(&PixelTap<T>, &usize)| {
                let feeds = line.taps[*number].feeds.get(column).copied().unwrap_or(true);
                feeds && (tap.from..tap.to).contains(&position)
            };
            let product = |tap: &PixelTap<T>, channel: usize| {
                let x =
                    tap.input.wrapping_add(position).wrapping_offset(channel as isize * tile.channel_stride);
                let w = tap.weights.wrapping_add(channel * tile.weight_stride + column);
                // SAFETY: the caller vouches for every channel at positions `from..to` and for the weights.
                unsafe { (x.read(), w.read()) }
            };
            let products = tile
                .taps
                .iter()
                .zip(numbers)
                .filter(is_real)
                .flat_map(|(tap, _)| (0..tile.channels).map(move |channel| product(tap, channel)));
            out[column * width + position] = kernels.sum(products, tile.bias[column]);
        }
    }
}
