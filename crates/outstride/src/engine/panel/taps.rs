//! Pointing the taps of a tile at their inputs.

use std::ops::Range;

use outstride_kernels::{MAX_ROWS, PanelTap, Real};

use super::super::axis::{EngineAxis, Span, meeting};
use super::super::channels::Input;
use super::bundle::Member;
use super::rows::{Piece, Positions};

/// The taps of a tile that meet the input, wherever the tile's rows stand.
pub(super) struct Taps<T> {
    taps: Vec<PanelTap<T>>,
    /// Of each of the taps, its number among the member's taps.
    numbers: Vec<usize>,
    /// What rows read that stand outside of what can be read.
    zeros: Vec<T>,
    /// Per axis, the taps that can meet the input.
    windows: Vec<Range<usize>>,
    /// Per axis, which of its window comes next.
    counter: Vec<usize>,
}

impl<T: Real> Taps<T> {
    pub(super) fn new(channels: usize) -> Self {
        Taps {
            taps: Vec::new(),
            numbers: Vec::new(),
            zeros: vec![T::default(); channels],
            windows: Vec::new(),
            counter: Vec::new(),
        }
    }

    /// The taps with weights, and with what is to be fetched meanwhile, by their number.
    pub(super) fn with_weights(
        &mut self,
        weights: impl Fn(usize) -> *const T,
        fetch: impl Fn(usize) -> *const T,
    ) -> &[PanelTap<T>] {
        let taps = &mut self.taps[..self.numbers.len()];
        for (tap, &number) in taps.iter_mut().zip(&self.numbers) {
            tap.weights = weights(number);
            tap.fetch = fetch(number);
        }
        taps
    }

    /// Points at a block of channels, leaving out the taps that find no input at any of the tile's rows.
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
        self.windows.clear();
        self.counter.clear();
        for (axis, of_axis) in axes.iter().enumerate() {
            let read = Span { first: extent[axis].first + member.spans[axis].first, ..extent[axis] };
            let window = meeting(&member.deltas[axis], read, Span { first: 0, count: of_axis.input });
            self.counter.push(window.start);
            self.windows.push(window);
        }
        self.numbers.clear();
        let count: usize = self.windows.iter().map(Range::len).product();
        let zeros = self.zeros.as_ptr();
        if self.taps.len() < count {
            self.taps.resize(count, PanelTap { rows: [zeros; MAX_ROWS], weights: zeros, fetch: zeros });
        }
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
            let shift = shift(member, axis, self.counter[axis]);
            number = number * member.deltas[axis].len() + self.counter[axis];
            distance += shift as isize * input.strides[axis];
            let of_axis = &input.readable[axis];
            readable &= extent.first + shift >= of_axis.first && extent.end() + shift <= of_axis.end();
        }
        self.numbers.push(number);
        let &Piece { first, count, .. } = &positions.pieces[tile];
        let offsets = &positions.inputs[first..first + count];
        let origin = origin.wrapping_offset(distance);
        let counter = &self.counter;
        let rows = &mut self.taps[tap].rows;
        for (row, &offset) in rows.iter_mut().zip(offsets) {
            *row = origin.wrapping_offset(offset);
        }
        // A kernel may compute more rows than there are.
        rows[count..].fill(self.zeros.as_ptr());
        if !readable {
            for (row, position) in rows.iter_mut().zip(first..first + count) {
                if !is_readable(counter, member, positions.index(position), input) {
                    *row = self.zeros.as_ptr();
                }
            }
        }
    }
}

fn is_readable<T>(counter: &[usize], member: &Member, index: &[i64], input: &Input<'_, T>) -> bool {
    counter.iter().enumerate().all(|(axis, &tap)| {
        let at = index[axis] + shift(member, axis, tap);
        let readable = &input.readable[axis];
        readable.first <= at && at < readable.end()
    })
}

/// From a position, counted from the member's first, to the index that a tap reads there.
fn shift(member: &Member, axis: usize, tap: usize) -> i64 {
    member.spans[axis].first - member.deltas[axis][tap] as i64
}
