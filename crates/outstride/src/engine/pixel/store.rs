//! Where the sums of a chunk go.

use outstride_kernels::Real;

use super::super::axis::{EngineAxis, Span};
use super::super::problem::Problem;
use super::outputs::{Outputs, Run};

/// The outputs at the positions of a chunk, as far as they are the same for all groups.
#[derive(Default)]
pub(super) struct Targets {
    /// Rows of positions.
    rows: usize,
    /// Per row of outputs and row of positions, where outputs of channel 0 begin; none outside the output.
    of_rows: Vec<Option<isize>>,
    /// Per run, how many outputs its phases have in turns, from the first of each on.
    turns: Vec<usize>,
    /// Of every phase of every run; of a run, by their first outputs.
    strips: Vec<Strip>,
    /// Which outputs the last two are of, and at which positions of a row: neighbouring rows have the same ones.
    along: Option<(*const Outputs, Span)>,
}

/// The positions of a row at which a phase has outputs.
struct Strip {
    /// Which of the run's phases it is.
    phase: usize,
    from: usize,
    to: usize,
    /// Where the output of position 0 would lie along the last axis.
    target: isize,
}

impl Strip {
    fn len(&self) -> usize {
        self.to.saturating_sub(self.from)
    }

    /// Where the first output lies along the last axis, given the distance from position to position.
    fn first(&self, step: isize) -> isize {
        self.target + self.from as isize * step
    }
}

impl Targets {
    /// Bytes of those at so many rows of positions.
    pub(super) fn bytes(outputs: &Outputs, rows: usize) -> usize {
        let strips: usize = outputs.runs.iter().map(|run| run.phases.len()).sum();
        outputs.rows.len() * rows * size_of::<Option<isize>>() + strips * size_of::<Strip>()
    }

    /// Finds where the outputs at these positions go.
    pub(super) fn find<T: Real>(&mut self, problem: &Problem<'_, T>, outputs: &Outputs, spans: &[Span]) {
        let last = spans.len() - 1;
        self.rows = spans[last - 1].count;
        self.of_rows.clear();
        for residues in &outputs.rows {
            for row in 0..self.rows {
                let mut target = Some(0);
                for (axis, of) in problem.axes[..last].iter().enumerate() {
                    let row = if axis == last - 1 { row as i64 } else { 0 };
                    let output = of.output_at(spans[axis].first + row, residues[axis]);
                    let inside = 0 <= output && output < of.output as i64;
                    target = target.filter(|_| inside).map(|target| target + output as isize * of.y_stride);
                }
                self.of_rows.push(target);
            }
        }
        let this = Some((std::ptr::from_ref(outputs), spans[last]));
        if self.along != this {
            self.along = this;
            self.find_along(&problem.axes[last], outputs, spans[last]);
        }
    }

    /// The same along the last axis.
    fn find_along(&mut self, of: &EngineAxis<'_>, outputs: &Outputs, along: Span) {
        let step = of.stride as isize * of.y_stride;
        let lane = |position: i64| (position - along.first).clamp(0, along.count as i64) as usize;
        self.turns.clear();
        self.strips.clear();
        for run in &outputs.runs {
            let strip = |(phase, &(residue, _)): (usize, &(usize, usize))| {
                let inside = of.span(residue);
                let target = of.output_at(along.first, residue) as isize * of.y_stride;
                Strip { phase, from: lane(inside.first), to: lane(inside.end()), target }
            };
            let first = self.strips.len();
            self.strips.extend(run.phases.iter().enumerate().map(strip));
            let strips = &mut self.strips[first..];
            let turns = strips.iter().map(Strip::len).min().unwrap_or(0);
            if turns > 0 {
                // At the begin of a row, the phase of its first output need not be the first of the phases.
                strips.sort_by_key(|strip| strip.first(step));
            }
            let in_turns = turns > 0
                && of.y_stride == 1
                && strips.windows(2).all(|pair| pair[0].first(step) + 1 == pair[1].first(step));
            self.turns.push(if in_turns { turns } else { 0 });
        }
    }

    /// Stores sums, given the distances between columns and between rows.
    pub(super) fn store<T: Real>(
        &self,
        problem: &Problem<'_, T>,
        outputs: &Outputs,
        group: usize,
        sums: &[T],
        (pitch, row_pitch): (usize, usize),
    ) {
        let last = &problem.axes[problem.axes.len() - 1];
        let step = last.stride as isize * last.y_stride;
        if problem.y_channel_stride == 1 && last.y_stride != 1 && outputs.has_neighbours {
            self.store_channels(problem, outputs, group, sums, (pitch, row_pitch, step));
            return;
        }
        let mut strips = &self.strips[..];
        let mut distances = Vec::new();
        for (run, &turns) in outputs.runs.iter().zip(&self.turns) {
            let (of_run, rest) = strips.split_at(run.phases.len());
            strips = rest;
            let channel = problem.y_channel(group, run.channel);
            for row in 0..self.rows {
                let Some(target) = self.of_rows[run.row * self.rows + row] else { continue };
                let target = target + channel;
                let place = |strip: &Strip| run.phases[strip.phase].1 * pitch + row * row_pitch + strip.from;
                if turns > 0 {
                    distances.clear();
                    distances.extend(of_run.iter().map(|strip| place(strip) as isize));
                    let (first, sums) = (target + of_run[0].first(step), sums.as_ptr());
                    // SAFETY: every distance is the place of a phase's sums of a row, of which there are so many; each output
                    // belongs to one position of one phase, and each task has its own positions, blocks and groups.
                    unsafe {
                        if run.phases.len() as i64 == last.stride {
                            problem.y.write_interleaved(first, sums, &distances, turns, problem.stream);
                        } else {
                            problem.y.write_transposed(first, step, sums, &distances, turns, problem.stream);
                        }
                    }
                }
                for strip in of_run.iter().filter(|strip| strip.len() > turns) {
                    let first = target + strip.first(step) + turns as isize * step;
                    // SAFETY: as above.
                    unsafe { problem.y.write(first, step, &sums[place(strip)..][turns..strip.len()]) };
                }
            }
        }
    }

    /// Stores sums of neighbouring channels in turns, given the distances between columns, rows and outputs.
    fn store_channels<T: Real>(
        &self,
        problem: &Problem<'_, T>,
        outputs: &Outputs,
        group: usize,
        sums: &[T],
        (pitch, row_pitch, step): (usize, usize, isize),
    ) {
        let Some(first_run) = outputs.runs.first() else { return };
        let channel = problem.y_channel(group, first_run.channel);
        let mut distances = Vec::new();
        for row in 0..self.rows {
            let Some(target) = self.of_rows[first_run.row * self.rows + row] else { continue };
            for strip in self.strips[..first_run.phases.len()].iter().filter(|strip| strip.len() > 0) {
                let place = |run: &Run| run.phases[strip.phase].1 * pitch + row * row_pitch + strip.from;
                distances.clear();
                distances.extend(outputs.runs.iter().map(|run| place(run) as isize));
                let first = target + channel + strip.first(step);
                // SAFETY: every distance is the place of a column's sums of a row, of which there are so many; the rest as
                // in `store`.
                unsafe {
                    let sums = sums.as_ptr();
                    problem.y.write_transposed(first, step, sums, &distances, strip.len(), problem.stream);
                }
            }
        }
    }
}
