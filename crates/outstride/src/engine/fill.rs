//! The outputs that no tap reaches: they hold the activated bias.

use outstride_kernels::{Output, Real};

use super::axis::EngineAxis;
use crate::parallel::Executor;

/// Fewer elements than that are written sooner than threads are asked to.
const WORTHWHILE_ELEMENTS: usize = 1 << 16;

/// Elements of the bias of channels side by side that are written at once, if they follow each other.
const ROW: usize = 1 << 11;

/// Outputs with all their channels that are written at once, if others lie between them.
const OUTPUTS_AT_ONCE: usize = 64;

/// Residues of a row without a phase that are rather written as one run for every position than as one for each of them.
const LONG_GAP: i64 = 16;

/// What is written where no tap reaches.
pub(crate) struct Fill<'a, T: 'static> {
    y: &'a Output<'a, T>,
    channel_stride: isize,
    bias: &'a [T],
}

/// Visits some outputs of all axes, given where the first one lies: where a run of them begins, how far they are apart, and how many
/// there are.
type VisitRuns = fn(&[EngineAxis<'_>], isize, &dyn Fn(isize, isize, usize));

impl<'a, T: Real> Fill<'a, T> {
    pub(crate) fn new(y: &'a Output<'a, T>, channel_stride: isize, bias: &'a [T]) -> Self {
        Fill { y, channel_stride, bias }
    }

    /// Writes the bias to every output whose residue along some axis has no phase, given where channel 0 of all axes' first outputs
    /// lies.
    ///
    /// # Safety
    ///
    /// Nobody else may write these elements at the same time.
    pub(crate) unsafe fn uncovered(&self, axes: &[EngineAxis<'_>], offset: usize, executor: &dyn Executor) {
        if !axes.iter().all(EngineAxis::is_covered) {
            // SAFETY: handed on from the caller.
            unsafe { self.in_parts(axes, offset as isize, visit_uncovered, executor) };
        }
    }

    /// Writes the bias to every output, for inputs without elements.
    ///
    /// # Safety
    ///
    /// As [`uncovered`](Self::uncovered).
    pub(crate) unsafe fn everything(&self, axes: &[EngineAxis<'_>], offset: usize, executor: &dyn Executor) {
        // SAFETY: handed on from the caller.
        unsafe { self.in_parts(axes, offset as isize, visit_all, executor) };
    }

    /// Has every thread fill some of the outputs of the longest axis.
    ///
    /// # Safety
    ///
    /// As [`uncovered`](Self::uncovered).
    unsafe fn in_parts(
        &self,
        axes: &[EngineAxis<'_>],
        offset: isize,
        visit_runs: VisitRuns,
        executor: &dyn Executor,
    ) {
        let elements = axes.iter().fold(self.bias.len(), |product, axis| product.saturating_mul(axis.output));
        let along = (0..axes.len()).max_by_key(|&axis| axes[axis].output).unwrap_or(0);
        let all = axes[along].output;
        let tasks = if elements < WORTHWHILE_ELEMENTS { 1 } else { executor.threads().clamp(1, all.max(1)) };
        let are_side_by_side = self.channel_stride == 1 && self.bias.len() > 1;
        let positions = if are_side_by_side { (ROW / self.bias.len()).max(1) } else { 0 };
        // Of channels side by side, the bias of as many positions as a row has room for; otherwise nothing.
        let row = self.bias.repeat(positions);
        let begin = |task: usize| (all as u128 * task as u128 / tasks as u128) as usize;
        let task = |task: usize| {
            let (first, end) = (begin(task), begin(task + 1));
            let mut own = axes.to_vec();
            // The same outputs, counted from another one.
            own[along].output = end - first;
            own[along].pad_begin += first as i64;
            let offset = offset + first as isize * own[along].y_stride;
            // SAFETY: each task has outputs of its own; the rest is handed on from the caller.
            unsafe { self.fill(&own, offset, visit_runs, &row) };
        };
        if tasks == 1 { task(0) } else { executor.run(tasks, &task) }
    }

    /// Fills outputs on this thread, given the bias of some positions, if channels are side by side.
    ///
    /// # Safety
    ///
    /// As [`uncovered`](Self::uncovered).
    unsafe fn fill(&self, axes: &[EngineAxis<'_>], offset: isize, visit_runs: VisitRuns, row: &[T]) {
        if !row.is_empty() {
            // SAFETY: handed on from the caller.
            let fill = |first, stride, count| unsafe { self.fill_channels(first, stride, count, row) };
            visit_runs(axes, offset, &fill);
            return;
        }
        for (channel, &value) in self.bias.iter().enumerate() {
            let offset = offset + channel as isize * self.channel_stride;
            // SAFETY: handed on from the caller.
            let fill = |first, stride, count| unsafe { self.y.fill(first, stride, count, value) };
            visit_runs(axes, offset, &fill);
        }
    }

    /// Fills all channels of so many outputs from one on, `stride` elements apart, given the bias of some positions.
    ///
    /// # Safety
    ///
    /// As [`uncovered`](Self::uncovered).
    unsafe fn fill_channels(&self, first: isize, stride: isize, count: usize, row: &[T]) {
        let channels = self.bias.len();
        if stride != channels as isize {
            for begin in (0..count).step_by(OUTPUTS_AT_ONCE) {
                let distances: [isize; OUTPUTS_AT_ONCE] =
                    std::array::from_fn(|output| ((begin + output) as isize).wrapping_mul(stride));
                let distances = &distances[..OUTPUTS_AT_ONCE.min(count - begin)];
                // SAFETY: handed on from the caller.
                unsafe { self.y.write_rows(first, distances, self.bias, (0, channels), false) };
            }
            return;
        }
        let mut done = 0;
        while done < count * channels {
            let len = row.len().min(count * channels - done);
            // SAFETY: handed on from the caller.
            unsafe { self.y.write(first + done as isize, 1, &row[..len]) };
            done += len;
        }
    }
}

/// Visits the outputs whose residue along some axis has no phase.
fn visit_uncovered(axes: &[EngineAxis<'_>], base: isize, visit: &dyn Fn(isize, isize, usize)) {
    let [axis, inner @ ..] = axes else { return };
    let inner_covered = inner.iter().all(EngineAxis::is_covered);
    let mut phases = axis.phases.iter().peekable();
    // Outputs by rising residue of `o + pad_begin`: the gaps between phases are runs of uncovered residues.
    let mut residue = 0i64;
    while residue < axis.stride {
        match phases.peek() {
            Some(phase) if phase.residue as i64 == residue => {
                if !inner_covered {
                    let span = axis.span(phase.residue);
                    for q in span.first..span.end() {
                        let at = base + axis.output_at(q, phase.residue) as isize * axis.y_stride;
                        visit_uncovered(inner, at, visit);
                    }
                }
                phases.next();
                residue += 1;
            }
            next => {
                let gap_end = next.map_or(axis.stride, |phase| phase.residue as i64);
                visit_residues(axis, residue, gap_end, inner, base, visit);
                residue = gap_end;
            }
        }
    }
}

/// Visits every output of an axis whose residue lies in `from..to`, with all that lies inside it.
fn visit_residues(
    axis: &EngineAxis<'_>,
    from: i64,
    to: i64,
    inner: &[EngineAxis<'_>],
    base: isize,
    visit: &dyn Fn(isize, isize, usize),
) {
    let runs = axis.output as i64 / axis.stride;
    let most = if axis.y_stride == 1 { LONG_GAP.min(runs / 2) } else { 2 };
    if inner.is_empty() && to - from < most {
        for residue in from as usize..to as usize {
            let span = axis.span(residue);
            if span.count > 0 {
                // An axis of one output may have any stride at all.
                let stride = (axis.stride as isize).wrapping_mul(axis.y_stride);
                let first = base + axis.output_at(span.first, residue) as isize * axis.y_stride;
                visit(first, stride, span.count);
            }
        }
        return;
    }
    let first_q = (axis.pad_begin - axis.stride).div_euclid(axis.stride);
    let last_q = (axis.pad_begin + axis.output as i64).div_euclid(axis.stride);
    for q in first_q..=last_q {
        let start = (q * axis.stride + from - axis.pad_begin).max(0);
        let end = (q * axis.stride + to - axis.pad_begin).min(axis.output as i64);
        visit_range(start, end, axis.y_stride, inner, base, visit);
    }
}

/// Visits every output.
fn visit_all(axes: &[EngineAxis<'_>], base: isize, visit: &dyn Fn(isize, isize, usize)) {
    if let [axis, inner @ ..] = axes {
        visit_range(0, axis.output as i64, axis.y_stride, inner, base, visit);
    }
}

/// Visits the outputs `start..end` of an axis and everything inside them.
fn visit_range(
    start: i64,
    end: i64,
    stride: isize,
    inner: &[EngineAxis<'_>],
    base: isize,
    visit: &dyn Fn(isize, isize, usize),
) {
    if start >= end {
        return;
    }
    if inner.is_empty() {
        visit(base + start as isize * stride, stride, (end - start) as usize);
        return;
    }
    for output in start..end {
        visit_all(inner, base + output as isize * stride, visit);
    }
}
