//! The lane path: depthwise layers with channels side by side. Every vector lane is a channel with its own weights.

use outstride_kernels::{Kernels, LaneTap, LaneTile, Real};
use outstride_spec::Phase;

use super::Strides;
use super::axis::{EngineAxis, Span, all_meet, meeting};
use super::boxes::{Boxes, Workers};
use super::channels::{self, ChannelBlocks, Input};
use super::pack::PackedFilter;
use super::problem::Problem;
use super::scratch::BoxOfCall;

/// Input of one box.
const INPUT_BYTES: usize = 1 << 18;

/// Outputs that are computed before they are stored: they stay in the first-level cache.
const OUTPUT_BYTES: usize = 1 << 13;

/// How the lane path cuts a problem into tasks.
#[derive(Debug)]
pub(crate) struct LanePlan {
    boxes: Boxes,
    /// Per axis, the largest delta.
    reach: Vec<usize>,
    in_place: bool,
}

impl LanePlan {
    pub(crate) fn new<T: Real>(
        axes: &[EngineAxis<'_>],
        filter: &PackedFilter<T>,
        strides: &Strides,
        workers: Workers,
    ) -> Self {
        let space: Vec<Span> = axes.iter().map(EngineAxis::positions).collect();
        let reach: Vec<usize> = axes.iter().map(EngineAxis::reach).collect();
        let granules = vec![1; axes.len()];
        let positions = |chunk: &[usize]| chunk.iter().product::<usize>();
        let fits = |chunk: &[usize]| {
            let input = input_positions(axes, chunk, &reach);
            input.saturating_mul(filter.groups * size_of::<T>()) <= INPUT_BYTES || positions(chunk) <= 4
        };
        let worthwhile = |chunk: &[usize]| positions(chunk) >= 8;
        let boxes = Boxes::cut(space, &granules, &reach, fits).spread(&granules, workers, 1, worthwhile);
        LanePlan { boxes, reach, in_place: strides.x_channel == 1 && strides.x_readable }
    }

    pub(crate) fn tasks(&self) -> usize {
        self.boxes.len()
    }

    /// An upper bound of the scratch bytes of one thread.
    pub(crate) fn workspace<T: Real>(&self, axes: &[EngineAxis<'_>], filter: &PackedFilter<T>) -> usize {
        match self.boxes.largest() {
            Some(counts) if !self.in_place => {
                input_positions(axes, &counts, &self.reach) * filter.groups * size_of::<T>()
            }
            _ => 0,
        }
    }

    /// Runs one task.
    pub(crate) fn run<T: Real>(&self, problem: &Problem<'_, T>, task: usize) {
        let spans = self.boxes.get(task);
        let filter = problem.filter;
        let channels = ChannelBlocks::whole(filter.groups);
        problem.scratch.with(|scratch| {
            let input = if self.in_place {
                Input::in_place(problem, 0, channels)
            } else {
                // Only taps that meet the input are ever read.
                let needed = channels::needed(&problem.axes, &spans, &self.reach, false);
                let whose = BoxOfCall { call: problem.call, number: task };
                Input::copied(problem, 0, channels, needed, (&mut scratch.input, whose))
            };
            let positions_at_once = (OUTPUT_BYTES / (filter.groups * size_of::<T>())).max(1);
            let mut worker = Worker {
                problem,
                row: Vec::new(),
                taps: Vec::new(),
                distances: Vec::new(),
                out: vec![T::default(); positions_at_once * filter.groups],
            };
            let phases: usize = filter.phases.iter().map(Vec::len).product();
            for phase in 0..phases {
                let mut parts = vec![&problem.axes[0].phases[0]];
                parts.extend(filter.phase(phase));
                worker.phase(&parts, &spans, &input);
            }
        });
    }
}

/// How many input positions a box of `chunk` positions reads at most.
fn input_positions(axes: &[EngineAxis<'_>], chunk: &[usize], reach: &[usize]) -> usize {
    let of_axis =
        |((axis, &count), &reach): ((&EngineAxis<'_>, &usize), &usize)| (count + reach).min(axis.input);
    axes.iter().zip(chunk).zip(reach).map(of_axis).product()
}

/// The buffers with which a task computes its positions.
struct Worker<'a, T: Real> {
    problem: &'a Problem<'a, T>,
    row: Vec<RowTaps<T>>,
    taps: Vec<LaneTap<T>>,
    /// From the output of a row's first position to those of others.
    distances: Vec<isize>,
    /// `[position][channel]`, as many positions as are computed at once.
    out: Vec<T>,
}

/// Taps that meet the input on every axis but the last, where they are still open.
#[derive(Clone, Copy)]
struct RowTaps<T> {
    /// The input at index 0 of the last axis.
    input: *const T,
    /// The kernel element of index 0 along the last axis.
    element: usize,
}

impl<T: Real> Worker<'_, T> {
    /// Computes all positions of one phase within a box.
    fn phase(&mut self, parts: &[&Phase], spans: &[Span], input: &Input<'_, T>) {
        let axes = &self.problem.axes;
        let last = axes.len() - 1;
        let spans: Vec<Span> = (0..axes.len())
            .map(|axis| axes[axis].span(parts[axis].residue).intersect(&spans[axis]))
            .collect();
        if spans.iter().any(|span| span.count == 0) {
            return;
        }
        let mut q: Vec<i64> = spans[..last].iter().map(|span| span.first).collect();
        loop {
            self.row(parts, &q, &spans[last], input);
            let Some(axis) = (0..last).rev().find(|&axis| q[axis] + 1 < spans[axis].end()) else { return };
            q[axis] += 1;
            for axis in axis + 1..last {
                q[axis] = spans[axis].first;
            }
        }
    }

    /// Computes the positions `span` of the last axis, those together that have the same taps.
    fn row(&mut self, parts: &[&Phase], q: &[i64], span: &Span, input: &Input<'_, T>) {
        let problem = self.problem;
        let (last, residue) = (&problem.axes[q.len()], parts[q.len()].residue);
        self.row.clear();
        self.collect_taps(parts, q, input.origin(0), 0, input);
        let outer = problem.axes.iter().zip(q.iter().zip(parts));
        let base: isize = outer
            .map(|(axis, (&q, phase))| axis.output_at(q, phase.residue) as isize * axis.y_stride)
            .sum::<isize>()
            + problem.y_channel(0, 0);
        let taps = &parts[q.len()].taps;
        let deltas: Vec<usize> = taps.iter().map(|tap| tap.delta).collect();
        let inside = last.whole_input();
        let whole = all_meet(&deltas, inside).intersect(span);
        let step = input.strides[q.len()];
        let at_once = self.out.len() / problem.filter.groups;
        let mut q = span.first;
        while q < span.end() {
            let has_all = whole.contains(&Span { first: q, count: 1 });
            let together = if has_all { at_once.min((whole.end() - q) as usize) } else { 1 };
            self.taps.clear();
            let window = meeting(&deltas, Span { first: q, count: 1 }, inside);
            for row in &self.row {
                for tap in &taps[window.clone()] {
                    let index = (q - tap.delta as i64) as isize;
                    let input = row.input.wrapping_offset(index * step);
                    let weights = problem.filter.depthwise_weights(row.element + tap.kernel).as_ptr();
                    self.taps.push(LaneTap { input, weights });
                }
            }
            self.compute(together, step);
            let output_step = last.stride as isize * last.y_stride;
            self.store(base + last.output_at(q, residue) as isize * last.y_stride, together, output_step);
            q += together as i64;
        }
    }

    /// Computes positions whose inputs are a step apart, with the taps collected.
    fn compute(&mut self, positions: usize, step: isize) {
        let Problem { filter, finish, .. } = self.problem;
        let out = &mut self.out[..positions * filter.groups];
        let tile = LaneTile { taps: &self.taps, bias: &filter.bias, positions, step };
        // SAFETY: at every position, every tap's input is a position inside the tensor (or its copy) with `groups` channels side
        // by side, and its weights are a run of `groups`; the bias has as many values.
        let finite = unsafe { filter.kernels.lane(&tile, out) };
        if !finite {
            // SAFETY: as for the kernel.
            unsafe { rescue(filter.kernels, &tile, out) };
        }
        let scales = finish.scaling.map(|scaling| scaling.channels(0..filter.groups));
        finish.apply(filter.kernels, out, scales);
    }

    /// Stores positions whose outputs are a step apart.
    fn store(&mut self, first: isize, positions: usize, step: isize) {
        let &Problem { filter, y, y_channel_stride, stream, .. } = self.problem;
        let channels = filter.groups;
        let out = &self.out[..positions * channels];
        self.distances.clear();
        self.distances.extend((0..positions as isize).map(|position| position * step));
        if y_channel_stride == 1 {
            // SAFETY: each output belongs to one position of one phase, and each task has its own positions.
            unsafe { y.write_rows(first, &self.distances, out, (channels, channels), stream) };
            return;
        }
        for (&distance, values) in self.distances.iter().zip(out.chunks_exact(channels)) {
            // SAFETY: as above.
            unsafe { y.write(first + distance, y_channel_stride, values) };
        }
    }

    /// Collects the taps that meet the input on the outer axes, axis by axis.
    fn collect_taps(
        &mut self,
        parts: &[&Phase],
        q: &[i64],
        at: *const T,
        element: usize,
        input: &Input<'_, T>,
    ) {
        let problem = self.problem;
        let axis = problem.axes.len() - parts.len();
        let size = if axis == 0 { 1 } else { problem.filter.kernel[axis - 1] };
        let Some(&position) = q.get(axis) else {
            self.row.push(RowTaps { input: at, element: element * size });
            return;
        };
        let deltas: Vec<usize> = parts[0].taps.iter().map(|tap| tap.delta).collect();
        let inside = problem.axes[axis].whole_input();
        for tap in &parts[0].taps[meeting(&deltas, Span { first: position, count: 1 }, inside)] {
            let index = (position - tap.delta as i64) as isize;
            let at = at.wrapping_offset(index * input.strides[axis]);
            self.collect_taps(&parts[1..], q, at, element * size + tap.kernel, input);
        }
    }
}

/// Sums again what is not finite: only the sum's beginning may have been too large.
///
/// # Safety
///
/// As for the lane kernel.
#[cold]
unsafe fn rescue<T: Real>(kernels: &Kernels<T>, tile: &LaneTile<'_, T>, out: &mut [T]) {
    let channels = tile.bias.len();
    for (number, value) in out.iter_mut().enumerate().filter(|(_, value)| !value.is_finite()) {
        let (position, channel) = (number / channels, number % channels);
        let product = |tap: &LaneTap<T>| {
            let input = tap.input.wrapping_offset(position as isize * tile.step);
            // SAFETY: the caller vouches for every channel of the taps at every position.
            unsafe { (input.add(channel).read(), tap.weights.add(channel).read()) }
        };
        *value = kernels.sum(tile.taps.iter().map(product), tile.bias[channel]);
    }
}
