//! The lane path: depthwise layers with channels side by side. Every vector lane is a channel with its own weights.

use outstride_kernels::{LaneTap, LaneTile, Real};
use outstride_spec::Phase;

use super::axis::{EngineAxis, Span};
use super::boxes::Boxes;
use super::gather::{self, Rows};
use super::pack::PackedFilter;
use super::problem::Problem;

/// Input of one box.
const INPUT_BYTES: usize = 1 << 18;

/// How the lane path cuts a problem into tasks.
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
        x_channel_stride: isize,
        threads: usize,
    ) -> Self {
        let space = axes.iter().map(|axis| {
            let spans = axis.phases.iter().map(|phase| axis.span(phase.residue));
            spans.fold(Span { first: 0, count: 0 }, |hull, span| hull.hull(&span))
        });
        let reach: Vec<usize> = axes
            .iter()
            .map(|axis| {
                axis.phases.iter().flat_map(|phase| &phase.taps).map(|tap| tap.delta).max().unwrap_or(0)
            })
            .collect();
        let boxes = Boxes::cut(space.collect(), &vec![1; axes.len()], |chunk, boxes| {
            let input: usize = chunk.iter().zip(&reach).map(|(&count, &reach)| count + reach).product();
            let positions: usize = chunk.iter().product();
            let fits = input.saturating_mul(filter.groups * size_of::<T>()) <= INPUT_BYTES || positions <= 4;
            fits && (threads == 1 || boxes >= 4 * threads || positions <= 16)
        });
        LanePlan { boxes, reach, in_place: x_channel_stride == 1 }
    }

    pub(crate) fn tasks(&self) -> usize {
        self.boxes.len()
    }

    /// An upper bound of the scratch bytes of one thread.
    pub(crate) fn workspace<T: Real>(&self, filter: &PackedFilter<T>) -> usize {
        if self.in_place {
            return 0;
        }
        let first = self.boxes.get(0);
        let positions: usize =
            first.iter().zip(&self.reach).map(|(span, &reach)| span.count + reach).product();
        positions * filter.groups * size_of::<T>()
    }

    /// Runs one task.
    pub(crate) fn run<T: Real>(&self, problem: &Problem<'_, T>, task: usize) {
        let spans = self.boxes.get(task);
        let filter = problem.filter;
        let mut scratch = Vec::new();
        let rows = if self.in_place {
            gather::in_place(problem.x, problem.x_offset, &problem.axes)
        } else {
            gather::copied(
                problem.x,
                problem.x_offset,
                &problem.axes,
                &gather::needed(&problem.axes, &spans, &self.reach),
                filter.groups,
                problem.x_channel_stride,
                &mut scratch,
            )
        };
        let mut worker = Worker { problem, taps: Vec::new(), out: vec![T::default(); filter.groups] };
        let phases: usize = filter.phases.iter().map(Vec::len).product();
        for phase in 0..phases {
            let mut parts = vec![&problem.axes[0].phases[0]];
            parts.extend(filter.phase(phase));
            worker.phase(&parts, &spans, &rows);
        }
    }
}

struct Worker<'a, T: Real> {
    problem: &'a Problem<'a, T>,
    taps: Vec<LaneTap<T>>,
    out: Vec<T>,
}

impl<T: Real> Worker<'_, T> {
    /// Computes all positions of one phase within a box.
    fn phase(&mut self, parts: &[&Phase], spans: &[Span], rows: &Rows<'_, T>) {
        let axes = &self.problem.axes;
        let spans: Vec<Span> = (0..axes.len())
            .map(|axis| axes[axis].span(parts[axis].residue).intersect(&spans[axis]))
            .collect();
        if spans.iter().any(|span| span.count == 0) {
            return;
        }
        let mut q: Vec<i64> = spans.iter().map(|span| span.first).collect();
        loop {
            self.position(parts, &q, rows);
            let Some(axis) = (0..q.len()).rev().find(|&axis| q[axis] + 1 < spans[axis].end()) else { return };
            q[axis] += 1;
            for axis in axis + 1..q.len() {
                q[axis] = spans[axis].first;
            }
        }
    }

    fn position(&mut self, parts: &[&Phase], q: &[i64], rows: &Rows<'_, T>) {
        let problem = self.problem;
        let filter = problem.filter;
        self.taps.clear();
        self.collect_taps(parts, q, rows, 0, 0);
        let tile = LaneTile { taps: &self.taps, bias: &filter.bias };
        // SAFETY: every tap's input is a position inside the tensor (or its copy) with `groups` channels side by side,
        // and its weights are a run of `groups`; the bias has as many values.
        unsafe { filter.kernels.lane(&tile, &mut self.out) };
        filter.kernels.activate(&mut self.out, &problem.activation);
        let base: isize = problem
            .axes
            .iter()
            .zip(q.iter().zip(parts))
            .map(|(axis, (&q, phase))| axis.output_at(q, phase.residue) as isize * axis.y_stride)
            .sum();
        // SAFETY: each output belongs to one position of one phase, and each task has its own positions.
        unsafe { problem.y.write(base + problem.y_channel(0, 0), problem.y_channel_stride, &self.out) };
    }

    /// Collects the taps that meet the input, axis by axis.
    fn collect_taps(
        &mut self,
        parts: &[&Phase],
        q: &[i64],
        rows: &Rows<'_, T>,
        offset: isize,
        element: usize,
    ) {
        let problem = self.problem;
        let axis = q.len() - parts.len();
        let [phase, rest @ ..] = parts else {
            let weights = problem.filter.depthwise_weights(element).as_ptr();
            self.taps.push(LaneTap { input: rows.origin().wrapping_offset(offset), weights });
            return;
        };
        for tap in &phase.taps {
            let index = q[axis] - tap.delta as i64;
            if 0 <= index && index < problem.axes[axis].input as i64 {
                let size = if axis == 0 { 1 } else { problem.filter.kernel[axis - 1] };
                let element = element * size + tap.kernel;
                self.collect_taps(rest, q, rows, offset + index as isize * rows.stride(axis), element);
            }
        }
    }
}
