//! Pointing the taps of a tile at their inputs.

use std::ops::Range;

use outstride_kernels::{MAX_ROWS, PanelTap, Real};

use super::super::axis::{EngineAxis, Span, all_meet, meeting};
use super::super::channels::Input;
use super::bundle::Member;
use super::rows::{Piece, Positions};
use super::run::Site;

/// The taps of a tile that meet the input, wherever the tile's rows stand.
pub(super) struct TileTaps<T> {
    taps: Vec<PanelTap<T>>,
    /// How many of them are pointed somewhere.
    count: usize,
    /// What rows read that stand outside of what can be read.
    zeros: Vec<T>,
    /// Per axis, the taps that can meet the input.
    windows: Vec<Range<usize>>,
    /// Per axis, which of its window comes next.
    counter: Vec<usize>,
    /// Per axis, the task's first position among those of the filter's taps.
    begins: Vec<i64>,
    /// Per axis, between which indices of the task all taps of the member find inputs.
    inside: Vec<Span>,
    /// How far each of them reads from a position, if there are such indices.
    distances: Vec<isize>,
}

impl<T: Real> TileTaps<T> {
    pub(super) fn new(channels: usize) -> Self {
        TileTaps {
            taps: Vec::new(),
            count: 0,
            zeros: vec![T::default(); channels],
            windows: Vec::new(),
            counter: Vec::new(),
            begins: Vec::new(),
            inside: Vec::new(),
            distances: Vec::new(),
        }
    }

    /// Finds what all tiles of a task inside the input have in common.
    pub(super) fn aim(&mut self, site: &Site<'_, T>, member: &Member, input: &Input<'_, T>) {
        self.begins.clear();
        self.begins.extend(member.spans.iter().zip(site.spans).map(|(own, task)| own.first + task.first));
        self.inside.clear();
        self.distances.clear();
        for (axis, deltas) in member.deltas.iter().enumerate() {
            let there = input.readable[axis].intersect(&site.problem.axes[axis].whole_input());
            let Span { first, count } = all_meet(deltas, there);
            self.inside.push(Span { first: first - self.begins[axis], count });
        }
        // There may be many more taps than inputs.
        if self.inside.iter().any(|span| span.count == 0) {
            return;
        }
        self.distances.push(0);
        for (axis, deltas) in member.deltas.iter().enumerate() {
            let of_axis =
                (0..deltas.len()).map(|tap| self.shift(member, axis, tap) as isize * input.strides[axis]);
            let of_axis: Vec<isize> = of_axis.collect();
            let slower = std::mem::take(&mut self.distances);
            self.distances.extend(slower.iter().flat_map(|slow| of_axis.iter().map(move |fast| slow + fast)));
        }
    }

    /// Points at a block of channels where all taps of all rows find inputs.
    fn point_inside(&mut self, positions: &Positions, tile: usize, origin: *const T) {
        let &Piece { first, count, .. } = &positions.pieces[tile];
        let offsets = &positions.inputs()[first..first + count];
        self.make_room(self.distances.len());
        for (number, (tap, &distance)) in self.taps.iter_mut().zip(&self.distances).enumerate() {
            tap.number = number;
            point_rows(&mut tap.rows, origin.wrapping_offset(distance), offsets, &self.zeros);
        }
    }

    /// Makes room for so many taps.
    fn make_room(&mut self, count: usize) {
        self.count = count;
        if self.taps.len() < count {
            self.taps.resize(count, PanelTap { rows: [self.zeros.as_ptr(); MAX_ROWS], number: 0 });
        }
    }

    /// The taps as they were last pointed.
    pub(super) fn pointed(&self) -> &[PanelTap<T>] {
        &self.taps[..self.count]
    }

    /// What the first row of the tile behind reads first, if the taps are pointed at a tile.
    pub(super) fn next_inputs(&self, positions: &Positions, tile: usize) -> *const T {
        let first = self.pointed().first().map_or(self.zeros.as_ptr(), |tap| tap.rows[0]);
        first.wrapping_offset(positions.inputs_to_next(tile))
    }

    /// Points the taps of the member last [aimed](Self::aim) with at a block of channels, leaving out the taps that find no input at
    /// any of the tile's rows.
    pub(super) fn point(
        &mut self,
        axes: &[EngineAxis<'_>],
        member: &Member,
        positions: &Positions,
        tile: usize,
        input: &Input<'_, T>,
        block: usize,
    ) {
        let extent = positions.extent(tile);
        let is_inside = |(extent, inside): (&Span, &Span)| inside.contains(extent);
        if !self.distances.is_empty() && extent.iter().zip(&self.inside).all(is_inside) {
            self.point_inside(positions, tile, input.origin(block));
            return;
        }
        self.windows.clear();
        self.counter.clear();
        for (axis, of_axis) in axes.iter().enumerate() {
            let read = Span { first: extent[axis].first + self.begins[axis], ..extent[axis] };
            let window = meeting(&member.deltas[axis], read, of_axis.whole_input());
            self.counter.push(window.start);
            self.windows.push(window);
        }
        let count: usize = self.windows.iter().map(Range::len).product();
        self.make_room(count);
        let origin = input.origin(block);
        for tap in 0..count {
            self.point_tap(tap, member, positions, tile, input, origin);
            for axis in (0..axes.len()).rev() {
                self.counter[axis] += 1;
                if self.counter[axis] < self.windows[axis].end {
                    break;
                }
                self.counter[axis] = self.windows[axis].start;
            }
        }
    }

    fn point_tap(
        &mut self,
        tap: usize,
        member: &Member,
        positions: &Positions,
        tile: usize,
        input: &Input<'_, T>,
        origin: *const T,
    ) {
        let (mut number, mut distance, mut readable) = (0, 0isize, true);
        for (axis, extent) in positions.extent(tile).iter().enumerate() {
            let shift = self.shift(member, axis, self.counter[axis]);
            number = number * member.deltas[axis].len() + self.counter[axis];
            distance += shift as isize * input.strides[axis];
            let of_axis = &input.readable[axis];
            readable &= extent.first + shift >= of_axis.first && extent.end() + shift <= of_axis.end();
        }
        self.taps[tap].number = number;
        let &Piece { first, count, .. } = &positions.pieces[tile];
        let offsets = &positions.inputs()[first..first + count];
        point_rows(&mut self.taps[tap].rows, origin.wrapping_offset(distance), offsets, &self.zeros);
        if !readable {
            for (row, position) in (first..first + count).enumerate() {
                if !self.is_readable(member, positions.index(position), input) {
                    self.taps[tap].rows[row] = self.zeros.as_ptr();
                }
            }
        }
    }

    /// Whether the tap that comes next can be read at a position.
    fn is_readable(&self, member: &Member, index: &[i64], input: &Input<'_, T>) -> bool {
        self.counter.iter().enumerate().all(|(axis, &tap)| {
            let at = index[axis] + self.shift(member, axis, tap);
            let readable = &input.readable[axis];
            readable.first <= at && at < readable.end()
        })
    }

    /// From a position of the task to the index that a tap reads there.
    fn shift(&self, member: &Member, axis: usize, tap: usize) -> i64 {
        self.begins[axis] - member.deltas[axis][tap] as i64
    }
}

/// Points rows at their offsets from an origin. A kernel may compute more rows than there are.
fn point_rows<T>(rows: &mut [*const T; MAX_ROWS], origin: *const T, offsets: &[isize], zeros: &[T]) {
    for (row, &offset) in rows.iter_mut().zip(offsets) {
        *row = origin.wrapping_offset(offset);
    }
    rows[offsets.len()..].fill(zeros.as_ptr());
}
