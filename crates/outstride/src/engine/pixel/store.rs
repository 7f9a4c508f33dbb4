//! Where the sums of a chunk go.

use outstride_kernels::Real;

use super::super::axis::Span;
use super::super::problem::Problem;
use super::blocks::{Block, Run};

/// The outputs of a block at the positions of a chunk, as far as they are the same for all groups.
#[derive(Default)]
pub(super) struct Targets {
    /// Rows of positions, and positions of each.
    rows: usize,
    len: usize,
    /// Per row of the block and row of positions, where outputs of channel 0 begin; none outside the output.
    of_rows: Vec<Option<isize>>,
    /// Per run, the positions at which all of its phases have outputs that lie in turns.
    together: Vec<(usize, usize)>,
    /// Of every phase of every run.
    strips: Vec<Strip>,
}

/// The positions of a row at which a phase has outputs.
struct Strip {
    from: usize,
    to: usize,
    /// Where the output of position 0 would lie along the last axis.
    target: isize,
}

impl Targets {
    /// Finds where the outputs of a block at these positions go.
    pub(super) fn find<T: Real>(&mut self, problem: &Problem<'_, T>, block: &Block, spans: &[Span]) {
        let last = spans.len() - 1;
        (self.rows, self.len) = (spans[last - 1].count, spans[last].count);
        self.of_rows.clear();
        for residues in &block.rows {
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
        let (of, along) = (&problem.axes[last], spans[last]);
        self.together.clear();
        self.strips.clear();
        for run in &block.runs {
            let (mut from, mut to) = (0, along.count);
            for &(residue, _) in &run.phases {
                let inside = of.span(residue);
                let lane = |position: i64| (position - along.first).clamp(0, along.count as i64) as usize;
                let strip = Strip {
                    from: lane(inside.first),
                    to: lane(inside.end()),
                    target: of.output_at(along.first, residue) as isize * of.y_stride,
                };
                (from, to) = (from.max(strip.from), to.min(strip.to));
                self.strips.push(strip);
            }
            let in_turns = of.y_stride == 1 && run.has_no_gaps() && from < to;
            self.together.push(if in_turns { (from, to) } else { (0, 0) });
        }
    }

    /// Stores sums, given the distances between columns and between rows.
    pub(super) fn store<T: Real>(
        &self,
        problem: &Problem<'_, T>,
        block: &Block,
        group: usize,
        sums: &[T],
        (pitch, row_pitch): (usize, usize),
    ) {
        let last = &problem.axes[problem.axes.len() - 1];
        let step = last.stride as isize * last.y_stride;
        if problem.y_channel_stride == 1 && last.y_stride != 1 && block.has_neighbours {
            self.store_channels(problem, block, group, sums, (pitch, row_pitch, step));
            return;
        }
        let mut strips = &self.strips[..];
        let mut distances = Vec::new();
        let mut outputs = Vec::new();
        for (run, &(from, to)) in block.runs.iter().zip(&self.together) {
            let (of_run, rest) = strips.split_at(run.phases.len());
            strips = rest;
            let channel = problem.y_channel(group, run.channel);
            for row in 0..self.rows {
                let Some(target) = self.of_rows[run.row * self.rows + row] else { continue };
                let target = target + channel;
                let columns = run.phases.iter().map(|&(_, column)| column * pitch + row * row_pitch);
                if from == to {
                    for (column, strip) in columns.zip(of_run).filter(|(_, strip)| strip.from < strip.to) {
                        let first = target + strip.target + strip.from as isize * step;
                        // SAFETY: each output belongs to one position of one phase, and each task has its own positions,
                        // blocks and groups.
                        unsafe { problem.y.write(first, step, &sums[column..][strip.from..strip.to]) };
                    }
                    continue;
                }
                distances.clear();
                distances.extend(columns.clone().map(|column| (column + from) as isize));
                let first = target + of_run[0].target + from as isize * step;
                // SAFETY: every distance is the place of a column's sums of a row, of which there are so many; the rest as
                // above.
                unsafe {
                    if run.phases.len() as i64 == last.stride {
                        problem.y.write_interleaved(first, sums.as_ptr(), &distances, to - from);
                    } else {
                        problem.y.write_transposed(
                            first,
                            step,
                            sums.as_ptr(),
                            &distances,
                            to - from,
                            problem.stream,
                        );
                    }
                }
                // At the ends of a row, some phases have outputs, and they are neighbours.
                for position in (0..from).chain(to..self.len) {
                    let there = |strip: &Strip| strip.from <= position && position < strip.to;
                    let Some(begin) = of_run.iter().position(there) else { continue };
                    outputs.clear();
                    let of_phases = columns.clone().zip(of_run).filter(|(_, strip)| there(strip));
                    outputs.extend(of_phases.map(|(column, _)| sums[column + position]));
                    let first = target + of_run[begin].target + position as isize * step;
                    // SAFETY: as above.
                    unsafe { problem.y.write(first, 1, &outputs) };
                }
            }
        }
    }

    /// Stores sums of neighbouring channels in turns, given the distances between columns, rows and outputs.
    fn store_channels<T: Real>(
        &self,
        problem: &Problem<'_, T>,
        block: &Block,
        group: usize,
        sums: &[T],
        (pitch, row_pitch, step): (usize, usize, isize),
    ) {
        let Some(first_run) = block.runs.first() else { return };
        let channel = problem.y_channel(group, first_run.channel);
        let mut distances = Vec::new();
        for row in 0..self.rows {
            let Some(target) = self.of_rows[first_run.row * self.rows + row] else { continue };
            for (phase, strip) in self.strips[..first_run.phases.len()].iter().enumerate() {
                if strip.from >= strip.to {
                    continue;
                }
                let place = |run: &Run| run.phases[phase].1 * pitch + row * row_pitch + strip.from;
                distances.clear();
                distances.extend(block.runs.iter().map(|run| place(run) as isize));
                let first = target + channel + strip.target + strip.from as isize * step;
                // SAFETY: every distance is the place of a column's sums of a row, of which there are so many; the rest as
                // in `store`.
                unsafe {
                    let count = strip.to - strip.from;
                    problem.y.write_transposed(first, step, sums.as_ptr(), &distances, count, problem.stream);
                }
            }
        }
    }
}
