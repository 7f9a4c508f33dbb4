//! The panel path: tiles of positions × (output channels, phases). Inputs are broadcast, weights fill vectors.

mod woven;

use std::ops::Range;

use outstride_kernels::{MAX_ROWS, PanelTap, PanelTile, Real};

use super::Strides;
use super::axis::{EngineAxis, Span, meeting};
use super::boxes::Boxes;
use super::gather::{self, Rows, input_positions};
use super::pack::{Form, PackedFilter, Panel, Panels};
use super::problem::Problem;
use woven::Bundle;

/// Weights of one panel group: what stays in the second-level cache while the positions of a box pass by.
const WEIGHT_BYTES: usize = 1 << 19;

/// Input of one box where all weights stay in the second-level cache anyway.
const INPUT_BYTES: usize = 1 << 19;

/// From this share of zeros on, rows are arranged so that whole taps fall on them.
const WORTHWHILE_BORDER_SHARE: f64 = 0.1;

/// Panels that read the same inputs at the same positions: their row pointers are computed once.
#[derive(Debug)]
struct Class {
    panels: Range<usize>,
    /// Per axis, the batch included.
    spans: Vec<Span>,
    deltas: Vec<Vec<usize>>,
}

/// How the panel path cuts a problem into tasks.
#[derive(Debug)]
pub(crate) struct PanelPlan {
    classes: Vec<Class>,
    boxes: Boxes,
    /// Into how many parts the panels are dealt, where there are too few boxes for the threads.
    splits: usize,
    /// Per axis, the largest delta.
    reach: Vec<usize>,
    /// Whether input channels are side by side, so that nothing is copied.
    in_place: bool,
    /// Where output channels are planes: the phases that are stored together. Boxes then count the positions of the last
    /// axis from the start of each phase.
    bundles: Option<Vec<Bundle>>,
    /// Whether neighbouring rows are the same position of different batch elements: on small maps their borders
    /// coincide, and whole taps can be skipped.
    batch_innermost: bool,
}

/// One (lane range → memory) run of a panel's columns: an arithmetic progression on both sides.
#[derive(Clone, Copy)]
struct Run {
    column: usize,
    len: usize,
    offset: isize,
    stride: isize,
}

fn panels_of<T: Real>(filter: &PackedFilter<T>) -> &Panels {
    match &filter.form {
        Form::Panels(panels) => panels,
        Form::Depthwise => unreachable!("the planner sends depthwise filters elsewhere"),
    }
}

impl PanelPlan {
    pub(crate) fn new<T: Real>(
        axes: &[EngineAxis<'_>],
        filter: &PackedFilter<T>,
        strides: &Strides,
        threads: usize,
    ) -> Self {
        let panels = panels_of(filter);
        let mut classes: Vec<Class> = Vec::new();
        for (index, panel) in panels.panels.iter().enumerate() {
            let spans = panel_spans(axes, filter, panels, panel);
            let deltas: Vec<Vec<usize>> =
                std::iter::once(vec![0]).chain(panel.deltas.iter().cloned()).collect();
            match classes.last_mut() {
                Some(class) if class.spans == spans && class.deltas == deltas => class.panels.end = index + 1,
                _ => classes.push(Class { panels: index..index + 1, spans, deltas }),
            }
        }
        let mut space: Vec<Span> = (0..axes.len())
            .map(|axis| {
                let empty = Span { first: 0, count: 0 };
                classes.iter().fold(empty, |hull, class| hull.hull(&class.spans[axis]))
            })
            .collect();
        let reach: Vec<usize> = axes.iter().map(EngineAxis::reach).collect();
        let batch_innermost = axes[0].output > 1 && border_share(axes) >= WORTHWHILE_BORDER_SHARE;
        let last = &axes[axes.len() - 1];
        let planes = strides.y_channel != 1 && last.y_stride == 1 && !batch_innermost;
        let bundles = if planes { woven::bundles(axes, filter, panels) } else { None };
        if let (Some(bundles), Some(last)) = (&bundles, space.last_mut()) {
            *last = Span { first: 0, count: bundles.iter().map(Bundle::longest).max().unwrap_or(0) };
        }
        let in_place = strides.x_channel == 1 || filter.in_channels == 1;
        let row_bytes = filter.in_channels * size_of::<T>();
        let weights = filter.bytes() / filter.groups;
        let input_bytes = if weights > 2 * WEIGHT_BYTES { gather::INPUT_BYTES_PER_PASS } else { INPUT_BYTES };
        let rows = filter.kernels.panel_rows();
        let wanted = 4 * threads;
        let boxes = Boxes::cut(space.clone(), &vec![1; axes.len()], |chunk, boxes| {
            let input = input_positions(axes, chunk, &reach);
            let positions: usize = chunk.iter().product();
            let fits = input.saturating_mul(row_bytes) <= input_bytes || positions <= rows;
            // Where weights dominate, threads share them out rather than each passing over all of them.
            let by_panels = weights > 2 * WEIGHT_BYTES && panels.panels.len() >= wanted;
            fits && (threads == 1 || by_panels || boxes >= wanted || positions <= 4 * rows)
        });
        let items = (boxes.len() * filter.groups).max(1);
        let splits = if threads == 1 || items >= wanted {
            1
        } else {
            wanted.div_ceil(items).min(panels.panels.len()).max(1)
        };
        PanelPlan { classes, boxes, splits, reach, in_place, bundles, batch_innermost }
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
        if self.in_place || self.boxes.len() == 0 {
            return 0;
        }
        gather::positions_of_first(axes, &self.boxes, &self.reach) * filter.in_channels * size_of::<T>()
    }

    /// Multiply-adds executed, those with padded columns and zero borders included.
    pub(crate) fn executed<T: Real>(&self, filter: &PackedFilter<T>) -> u128 {
        let panels = panels_of(filter);
        let of_class = |class: &Class| {
            let positions: u128 = class.spans.iter().map(|span| span.count as u128).product();
            let columns: u128 = panels.panels[class.panels.clone()]
                .iter()
                .map(|panel| (panel.taps() * panel.vectors * filter.kernels.lanes()) as u128)
                .sum();
            positions * columns
        };
        let executed: u128 = self.classes.iter().map(of_class).sum();
        executed * (filter.in_channels * filter.groups) as u128
    }

    /// Whether outputs of several phases, or of a row, are stored as runs.
    pub(crate) fn stores_runs(&self) -> bool {
        self.bundles.is_some()
    }

    pub(crate) fn is_in_place(&self) -> bool {
        self.in_place
    }

    /// Runs one task.
    pub(crate) fn run<T: Real>(&self, problem: &Problem<'_, T>, task: usize) {
        let split = task % self.splits;
        let index = task / self.splits % self.boxes.len();
        let group = task / self.splits / self.boxes.len();
        let spans = self.boxes.get(index);
        let filter = problem.filter;
        let mut scratch = Vec::new();
        let rows = if self.in_place {
            gather::in_place(problem.x, problem.x_group(group), &problem.axes)
        } else {
            gather::copied(
                problem.x,
                problem.x_group(group),
                &problem.axes,
                &self.needed(&problem.axes, &spans),
                filter.in_channels,
                problem.x_channel_stride,
                &mut scratch,
            )
        };
        let mut worker = Worker::new(problem, group);
        let panels = &panels_of(filter).panels;
        if let Some(bundles) = &self.bundles {
            for bundle in bundles {
                let share = self.share(&(0..bundle.panels()), split);
                worker.run_bundle(bundle, &spans, share, &rows);
            }
            return;
        }
        for class in &self.classes {
            let spans: Vec<Span> = spans.iter().zip(&class.spans).map(|(a, b)| a.intersect(b)).collect();
            if spans.iter().any(|span| span.count == 0) {
                continue;
            }
            let share = self.share(&class.panels, split);
            let mut first = share.start;
            while first < share.end {
                let mut bytes = 0;
                let mut end = first;
                while end < share.end && (end == first || bytes < WEIGHT_BYTES) {
                    bytes += size_of_val(filter.panel_weights(group, &panels[end]));
                    end += 1;
                }
                worker.run(class, &spans, first..end, &rows, self.batch_innermost);
                first = end;
            }
        }
    }

    /// The input positions that a box reads.
    fn needed(&self, axes: &[EngineAxis<'_>], spans: &[Span]) -> Vec<Span> {
        let mut positions = spans.to_vec();
        if let (Some(bundles), Some(last)) = (&self.bundles, positions.last_mut()) {
            let (least, greatest) = woven::starts(bundles);
            *last = Span { first: last.first + least, count: last.count + (greatest - least) as usize };
        }
        gather::needed(axes, &positions, &self.reach)
    }

    /// The part of a class's panels that belongs to a split.
    fn share(&self, panels: &Range<usize>, split: usize) -> Range<usize> {
        let at = |part: usize| panels.start + panels.len() * part / self.splits;
        at(split)..at(split + 1)
    }
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

/// Per axis, the positions at which any of the panel's phases has outputs.
fn panel_spans<T: Real>(
    axes: &[EngineAxis<'_>],
    filter: &PackedFilter<T>,
    panels: &Panels,
    panel: &Panel,
) -> Vec<Span> {
    let mut spans = vec![Span { first: 0, count: 0 }; axes.len()];
    spans[0] = axes[0].span(0);
    for segment in panels.segments(panel) {
        for (axis, phase) in filter.phase(segment.phase).into_iter().enumerate() {
            let span = axes[axis + 1].span(phase.residue);
            spans[axis + 1] = spans[axis + 1].hull(&span);
        }
    }
    spans
}

/// The buffers with which a task computes its tiles.
struct Worker<'a, T: Real> {
    problem: &'a Problem<'a, T>,
    group: usize,
    taps: Vec<PanelTap<T>>,
    /// Of each of `taps`, its number among the panel's taps.
    numbers: Vec<usize>,
    tile: Vec<T>,
    zeros: Vec<T>,
    rows: Vec<Row>,
    /// Of each of `rows`, its index along every axis.
    indices: Vec<usize>,
    /// The offsets of one row's taps while they are summed axis by axis.
    offsets: Vec<isize>,
    /// Per axis, the taps that the current rows can meet the input with.
    windows: Vec<Range<usize>>,
}

/// A row of the current tile.
#[derive(Clone, Copy)]
struct Row {
    /// Where the output of residue 0 and channel 0 lies.
    y: isize,
    /// Whether the outputs of all residues are inside.
    interior: bool,
}

/// What every position along one axis contributes to a row.
struct AxisTable {
    /// The first position.
    first: i64,
    input: usize,
    deltas: Vec<usize>,
    /// Distance between positions of the input.
    stride: isize,
    /// Per position: the output of residue 0, and whether those of all residues are inside.
    y: Vec<(isize, bool)>,
}

/// What storing a panel's tiles needs, computed once for many tiles.
struct Prepared<'a, T> {
    panel: &'a Panel,
    weights: &'a [T],
    /// One value per column.
    bias: Vec<T>,
    runs: Vec<Run>,
}

impl<'a, T: Real> Worker<'a, T> {
    fn new(problem: &'a Problem<'a, T>, group: usize) -> Self {
        let lanes = problem.filter.kernels.lanes();
        Worker {
            problem,
            group,
            taps: Vec::new(),
            numbers: Vec::new(),
            tile: vec![T::default(); MAX_ROWS * 2 * lanes],
            zeros: vec![T::default(); problem.filter.in_channels],
            rows: Vec::new(),
            indices: Vec::new(),
            offsets: Vec::new(),
            windows: Vec::new(),
        }
    }

    /// Computes the panels `range` of a class at the positions `spans`.
    fn run(
        &mut self,
        class: &Class,
        spans: &[Span],
        range: Range<usize>,
        rows: &Rows<'_, T>,
        batch_innermost: bool,
    ) {
        let filter = self.problem.filter;
        let tables: Vec<AxisTable> = (0..spans.len())
            .map(|axis| {
                AxisTable::new(&self.problem.axes[axis], &spans[axis], &class.deltas[axis], rows.stride(axis))
            })
            .collect();
        let positions: usize = spans.iter().map(|span| span.count).product();
        let tiles = positions.div_ceil(filter.kernels.panel_rows());
        let per_tile = positions.div_ceil(tiles);
        let mut order: Vec<usize> = (0..spans.len()).collect();
        if batch_innermost {
            order.rotate_left(1);
        }
        let panels: Vec<Prepared<'_, T>> =
            panels_of(filter).panels[range].iter().map(|panel| self.prepare(panel)).collect();
        let mut index = vec![0usize; spans.len()];
        let mut done = 0;
        while done < positions {
            let count = per_tile.min(positions - done);
            self.collect_rows(&tables, spans, &order, &mut index, count, rows.origin());
            done += count;
            for panel in &panels {
                self.tile(panel, spans);
            }
        }
    }

    /// Points every tap at the next `count` rows, leaving out the taps that meet no input at all.
    fn collect_rows(
        &mut self,
        tables: &[AxisTable],
        spans: &[Span],
        order: &[usize],
        index: &mut [usize],
        count: usize,
        origin: *const T,
    ) {
        self.open_windows(tables, spans, order, index, count);
        let taps: usize = self.windows.iter().map(Range::len).product();
        let zeros = self.zeros.as_ptr();
        self.taps.clear();
        self.taps.resize(taps, PanelTap { rows: [zeros; MAX_ROWS], weights: zeros });
        self.numbers.clear();
        self.rows.clear();
        self.indices.clear();
        let fastest = order[order.len() - 1];
        while self.rows.len() < count {
            let left = count - self.rows.len();
            let run = left.min(spans[fastest].count - index[fastest]);
            self.collect_run(tables, fastest, index, run, origin);
            index[fastest] += run - 1;
            advance(index, spans, order);
        }
        let mut kept = 0;
        for number in 0..taps {
            if self.taps[number].rows[..count].iter().any(|&row| row != zeros) {
                self.taps.swap(kept, number);
                self.numbers.push(self.number_in_panel(tables, number));
                kept += 1;
            }
        }
        self.taps.truncate(kept);
    }

    /// Finds, per axis, the taps that any of the next `count` rows can meet the input with.
    fn open_windows(
        &mut self,
        tables: &[AxisTable],
        spans: &[Span],
        order: &[usize],
        index: &[usize],
        count: usize,
    ) {
        self.windows.clear();
        let fastest = order[order.len() - 1];
        let one_run = count <= spans[fastest].count - index[fastest];
        for (axis, table) in tables.iter().enumerate() {
            // Rows of one run stand still on all axes but one; others may be anywhere.
            let (from, len) = match (axis == fastest, one_run) {
                (true, true) => (index[axis], count),
                (false, true) => (index[axis], 1),
                _ => (0, spans[axis].count),
            };
            let read = Span { first: table.first + from as i64, count: len };
            self.windows.push(meeting(&table.deltas, read, Span { first: 0, count: table.input }));
        }
    }

    /// The number among the panel's taps of a tap given by its number within the windows.
    fn number_in_panel(&self, tables: &[AxisTable], number: usize) -> usize {
        let (mut rest, mut stride, mut result) = (number, 1, 0);
        for (table, window) in tables.iter().zip(&self.windows).rev() {
            result += (window.start + rest % window.len()) * stride;
            rest /= window.len();
            stride *= table.deltas.len();
        }
        result
    }

    /// Appends `count` rows that differ along one axis only: what the others contribute is computed once.
    fn collect_run(
        &mut self,
        tables: &[AxisTable],
        fastest: usize,
        index: &[usize],
        count: usize,
        origin: *const T,
    ) {
        let mut common = Row { y: self.problem.y_channel(self.group, 0), interior: true };
        self.offsets.clear();
        self.offsets.push(0);
        for (axis, (table, &index)) in tables.iter().zip(index).enumerate() {
            if axis == fastest {
                repeat_each(&mut self.offsets, self.windows[axis].len());
            } else {
                let (y, interior) = table.y[index];
                common.y += y;
                common.interior &= interior;
                table.extend_offsets(index, &self.windows[axis], &mut self.offsets);
            }
        }
        let table = &tables[fastest];
        // Taps that differ along later axes only lie next to each other.
        let together: usize = self.windows[fastest + 1..].iter().map(Range::len).product();
        for position in index[fastest]..index[fastest] + count {
            let number = self.rows.len();
            let own = self.windows[fastest].clone().map(|tap| table.offset(position, tap));
            let parts = own.cycle().flat_map(|part| std::iter::repeat_n(part, together));
            for ((tap, &offset), part) in self.taps.iter_mut().zip(&self.offsets).zip(parts) {
                if offset.min(part) > OUTSIDE / 2 {
                    tap.rows[number] = origin.wrapping_offset(offset + part);
                }
            }
            let (y, interior) = table.y[position];
            self.rows.push(Row { y: common.y + y, interior: common.interior & interior });
            for (axis, &index) in index.iter().enumerate() {
                self.indices.push(if axis == fastest { position } else { index });
            }
        }
    }

    fn prepare(&self, panel: &'a Panel) -> Prepared<'a, T> {
        let filter = self.problem.filter;
        let mut bias = vec![T::default(); panel.vectors * filter.kernels.lanes()];
        for segment in panels_of(filter).segments(panel) {
            let first = self.group * filter.out_channels + segment.first_channel;
            let values = &filter.bias[first..first + segment.channels];
            bias[segment.column..segment.column + segment.channels].copy_from_slice(values);
        }
        Prepared { panel, weights: filter.panel_weights(self.group, panel), bias, runs: self.runs(panel) }
    }

    /// Computes, activates and stores one tile.
    fn tile(&mut self, prepared: &Prepared<'_, T>, spans: &[Span]) {
        let mut tile = std::mem::take(&mut self.tile);
        self.compute(prepared, &mut tile);
        self.tile = tile;
        self.store(prepared, spans);
    }

    /// Computes and activates the tile of the current rows, `[row][column]`.
    fn compute(&mut self, prepared: &Prepared<'_, T>, out: &mut [T]) {
        let rows = self.rows.len();
        let filter = self.problem.filter;
        let width = prepared.bias.len();
        let tap_len = filter.in_channels * width;
        for (tap, &number) in self.taps.iter_mut().zip(&self.numbers) {
            tap.weights = prepared.weights[number * tap_len..].as_ptr();
        }
        let tile = PanelTile { taps: &self.taps, channels: filter.in_channels, bias: &prepared.bias };
        let kernel_rows = filter.kernels.panel_rows_for(rows);
        // SAFETY: every row pointer is either the run of zeros or an input position inside the tensor (or its copy),
        // which has `in_channels` neighbours; the weights of each tap are `in_channels × width` long.
        let finite = unsafe { filter.kernels.panel(kernel_rows, prepared.panel.vectors, &tile, out) };
        if !finite {
            self.rescue(prepared, rows, out);
        }
        filter.kernels.activate(&mut out[..rows * width], &self.problem.activation);
    }

    /// Sums a tile again, product by product, leaving out what is only padding: zero rows and weights that stand in
    /// for taps a phase does not have. Those multiply to NaN where a real value is infinite or NaN.
    fn rescue(&self, prepared: &Prepared<'_, T>, rows: usize, out: &mut [T]) {
        let Prepared { panel, weights, bias, .. } = prepared;
        let filter = self.problem.filter;
        let width = bias.len();
        let zeros = self.zeros.as_ptr();
        for segment in panels_of(filter).segments(panel) {
            let phase = filter.phase(segment.phase);
            for row in 0..rows {
                for column in segment.column..segment.column + segment.channels {
                    let mut sum = T::default();
                    for (tap, &number) in self.taps.iter().zip(&self.numbers) {
                        if tap.rows[row] == zeros || !panel.tap_feeds(number, &phase) {
                            continue;
                        }
                        for channel in 0..filter.in_channels {
                            // SAFETY: as for the kernel: a row has `in_channels` readable elements.
                            let value = unsafe { tap.rows[row].add(channel).read() };
                            let at = (number * filter.in_channels + channel) * width + column;
                            sum = sum.plus_product(value, weights[at]);
                        }
                    }
                    out[row * width + column] = sum.plus(bias[column]);
                }
            }
        }
    }

    fn store(&self, prepared: &Prepared<'_, T>, spans: &[Span]) {
        let width = prepared.bias.len();
        let row_distance = match self.rows.as_slice() {
            [first, second, ..] => second.y - first.y,
            _ => isize::MAX,
        };
        let by_columns = |run: &&Run| row_distance.unsigned_abs() < run.stride.unsigned_abs();
        for run in prepared.runs.iter().filter(by_columns) {
            self.store_by_columns(run, width);
        }
        for (number, row) in self.rows.iter().enumerate() {
            let values = &self.tile[number * width..(number + 1) * width];
            if row.interior {
                for run in prepared.runs.iter().filter(|run| !by_columns(run)) {
                    let values = &values[run.column..run.column + run.len];
                    // SAFETY: each output belongs to one position of one phase, and each task has its own positions
                    // and panels.
                    unsafe { self.problem.y.write(row.y + run.offset, run.stride, values) };
                }
            } else {
                let index = &self.indices[number * spans.len()..(number + 1) * spans.len()];
                self.store_border_row(prepared.panel, values, row.y, spans, index);
            }
        }
    }

    /// Stores a run whose elements are farther apart than rows are, column by column: otherwise the columns of one row
    /// tend to fall into the same set of a cache.
    fn store_by_columns(&self, run: &Run, width: usize) {
        for column in 0..run.len {
            let offset = run.offset + column as isize * run.stride;
            for (number, row) in self.rows.iter().enumerate().filter(|(_, row)| row.interior) {
                let value = self.tile[number * width + run.column + column];
                // SAFETY: as in `store`.
                unsafe { self.problem.y.set(row.y + offset, value) };
            }
        }
    }

    /// Stores a row where some of the panel's phases may lie outside the output.
    fn store_border_row(&self, panel: &Panel, values: &[T], base: isize, spans: &[Span], index: &[usize]) {
        let problem = self.problem;
        for segment in panels_of(problem.filter).segments(panel) {
            let mut offset = segment.first_channel as isize * problem.y_channel_stride;
            let mut inside = true;
            for (axis, phase) in problem.filter.phase(segment.phase).into_iter().enumerate() {
                let (span, index) = (&spans[axis + 1], index[axis + 1]);
                let axis = &problem.axes[axis + 1];
                let output = axis.output_at(span.first + index as i64, phase.residue);
                inside &= 0 <= output && output < axis.output as i64;
                offset += phase.residue as isize * axis.y_stride;
            }
            if inside {
                let values = &values[segment.column..segment.column + segment.channels];
                // SAFETY: as in `store`.
                unsafe { problem.y.write(base + offset, problem.y_channel_stride, values) };
            }
        }
    }

    /// Where the panel's columns go, relative to residue 0 and channel 0, as few arithmetic progressions.
    fn runs(&self, panel: &Panel) -> Vec<Run> {
        let problem = self.problem;
        let mut runs: Vec<Run> = Vec::new();
        for segment in panels_of(problem.filter).segments(panel) {
            let phase = problem.filter.phase(segment.phase);
            let residues = phase.iter().zip(&problem.axes[1..]);
            let offset = segment.first_channel as isize * problem.y_channel_stride
                + residues.map(|(phase, axis)| phase.residue as isize * axis.y_stride).sum::<isize>();
            let stride = problem.y_channel_stride;
            let run = Run { column: segment.column, len: segment.channels, offset, stride };
            match runs.last().and_then(|last| last.joined(&run)) {
                Some(joined) => {
                    runs.pop();
                    runs.push(joined);
                }
                None => runs.push(run),
            }
        }
        runs
    }
}

impl Run {
    /// Both as one progression, if they are.
    fn joined(&self, next: &Run) -> Option<Run> {
        let gap = next.offset - (self.offset + (self.len as isize - 1) * self.stride);
        let own = self.len == 1 || self.stride == gap;
        let theirs = next.len == 1 || next.stride == gap;
        (own && theirs).then_some(Run { len: self.len + next.len, stride: gap, ..*self })
    }
}

/// Marks a row that a tap finds outside the input: so far below any real offset that it stays there when the other
/// axes' offsets are added.
const OUTSIDE: isize = isize::MIN / 4;

impl AxisTable {
    fn new(axis: &EngineAxis<'_>, span: &Span, deltas: &[usize], stride: isize) -> Self {
        let outputs = (span.first..span.end()).map(|q| {
            let first = axis.output_at(q, 0);
            let interior = first >= 0 && first + axis.stride <= axis.output as i64;
            (first as isize * axis.y_stride, interior)
        });
        let y = outputs.collect();
        AxisTable { first: span.first, input: axis.input, deltas: deltas.to_vec(), stride, y }
    }

    /// How far the input of a tap lies from the origin at one position, or [`OUTSIDE`].
    #[inline]
    fn offset(&self, index: usize, tap: usize) -> isize {
        let position = self.first + index as i64 - self.deltas[tap] as i64;
        if 0 <= position && position < self.input as i64 { position as isize * self.stride } else { OUTSIDE }
    }

    /// Combines the offsets of the axes before with those of this axis, this axis fastest.
    fn extend_offsets(&self, index: usize, window: &Range<usize>, offsets: &mut Vec<isize>) {
        let before = offsets.len();
        offsets.resize(before * window.len(), 0);
        if offsets.is_empty() {
            return;
        }
        // From the back, so that what is still to be read is not overwritten. Several axes may be outside: the sum must
        // not run out of range.
        for outer in (0..before).rev() {
            let offset = offsets[outer];
            for (slot, tap) in offsets[outer * window.len()..].iter_mut().zip(window.clone()) {
                *slot = (offset + self.offset(index, tap)).max(OUTSIDE);
            }
        }
    }
}

/// Repeats every offset `times` times.
fn repeat_each(offsets: &mut Vec<isize>, times: usize) {
    let before = offsets.len();
    offsets.resize(before * times, 0);
    if offsets.is_empty() {
        return;
    }
    for index in (0..before).rev() {
        let offset = offsets[index];
        offsets[index * times..(index + 1) * times].fill(offset);
    }
}

/// Steps to the next position, the last axis of `order` fastest.
fn advance(index: &mut [usize], spans: &[Span], order: &[usize]) {
    for &axis in order.iter().rev() {
        index[axis] += 1;
        if index[axis] < spans[axis].count {
            return;
        }
        index[axis] = 0;
    }
}
