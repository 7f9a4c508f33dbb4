//! Storing tiles position by position: runs of channels where they are side by side, single elements elsewhere.

use outstride_kernels::Real;

use super::super::axis::Span;
use super::super::pack::Panel;
use super::panels_of;
use super::worker::{Prepared, Worker};

/// One (lane range → memory) run of a panel's columns: an arithmetic progression on both sides.
#[derive(Clone, Copy)]
pub(super) struct Run {
    column: usize,
    len: usize,
    offset: isize,
    stride: isize,
}

impl<T: Real> Worker<'_, T> {
    pub(super) fn store(&self, prepared: &Prepared<'_, T>, spans: &[Span]) {
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
    pub(super) fn runs(&self, panel: &Panel) -> Vec<Run> {
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
