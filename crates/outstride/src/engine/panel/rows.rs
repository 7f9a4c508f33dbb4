//! The rows of a tile: which inputs they read, and where their outputs go.

use std::ops::Range;

use outstride_kernels::{MAX_ROWS, PanelTap, Real};

use super::super::axis::{EngineAxis, Span, meeting};
use super::worker::Worker;

/// A row of the current tile.
#[derive(Clone, Copy)]
pub(super) struct Row {
    /// Where the output of residue 0 and channel 0 lies.
    pub(super) y: isize,
    /// Whether the outputs of all residues are inside.
    pub(super) interior: bool,
}

/// What every position along one axis contributes to a row.
pub(super) struct AxisTable {
    /// The first position.
    first: i64,
    input: usize,
    deltas: Vec<usize>,
    /// Distance between positions of the input.
    stride: isize,
    /// Per position: the output of residue 0, and whether those of all residues are inside.
    y: Vec<(isize, bool)>,
}

impl<T: Real> Worker<'_, T> {
    /// Points every tap at the next `count` rows, leaving out the taps that meet no input at all.
    pub(super) fn collect_rows(
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
}

/// Marks a row that a tap finds outside the input: so far below any real offset that it stays there when the other
/// axes' offsets are added.
const OUTSIDE: isize = isize::MIN / 4;

impl AxisTable {
    pub(super) fn new(axis: &EngineAxis<'_>, span: &Span, deltas: &[usize], stride: isize) -> Self {
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
