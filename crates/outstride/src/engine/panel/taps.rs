//! Pointing the taps of a tile at their inputs.

use std::ops::Range;

use outstride_kernels::{MAX_ROWS, PanelTap, Real, RowPointers};

use super::super::axis::{EngineAxis, Span, all_meet, meeting};
use super::super::channels::{ChannelBlocks, Input};
use super::bundle::Member;
use super::rows::{Piece, Positions};
use super::run::Site;

/// Rows of a tile, a bit each.
type RowSet = u16;

/// Channels of neighbouring taps that are multiplied as those of one where some rows read zeros instead.
const MOST_ZEROS: usize = 512;

const ALL_ROWS: RowSet = RowSet::MAX;
const _: () = assert!(MAX_ROWS <= RowSet::BITS as usize);

/// The taps of a tile that meet the input, wherever the tile's rows stand.
pub(super) struct TileTaps<T> {
    /// Those of the last tile, unless all of its rows found inputs.
    some: Vec<PanelTap>,
    /// All taps of the member, for rows that find inputs at each of them.
    all: Vec<PanelTap>,
    /// Whether the last tile has all of them.
    has_all: bool,
    /// What the taps of the last tile read.
    rows: Vec<RowPointers<T>>,
    /// What rows read that stand outside of what can be read.
    zeros: Vec<T>,
    blocks: ChannelBlocks,
    /// Whether taps that read neighbouring positions read neighbouring elements, and their weights follow each other.
    may_join: bool,
    /// Per axis, the taps that can meet the input.
    windows: Vec<Range<usize>>,
    /// Per axis, of each of these taps, the rows that can read there.
    readers: Vec<Vec<RowSet>>,
    /// Per axis, which of its window comes next.
    counter: Vec<usize>,
    /// Per axis, the task's first position among those of the filter's taps.
    begins: Vec<i64>,
    /// Per axis, between which indices of the task all taps of the member find inputs.
    inside: Vec<Span>,
}

impl<T: Real> TileTaps<T> {
    pub(super) fn new(blocks: ChannelBlocks) -> Self {
        TileTaps {
            some: Vec::new(),
            all: Vec::new(),
            has_all: false,
            rows: Vec::new(),
            zeros: vec![T::default(); blocks.size.max(MOST_ZEROS)],
            blocks,
            may_join: false,
            windows: Vec::new(),
            readers: Vec::new(),
            counter: Vec::new(),
            begins: Vec::new(),
            inside: Vec::new(),
        }
    }

    /// The most bytes of lists that have entries for every tap. Those of some tiles grow while they are made.
    pub(super) fn most_bytes(taps: usize, channels: usize) -> usize {
        2 * taps * (2 * size_of::<PanelTap>() + size_of::<RowPointers<T>>())
            + channels.max(MOST_ZEROS) * size_of::<T>()
    }

    /// Finds what all tiles of a task have in common that have all taps: those inside the input, or `with_zeros` those that can read
    /// zeros around it as well.
    pub(super) fn aim(
        &mut self,
        site: &Site<'_, T>,
        member: &Member,
        input: &Input<'_, T>,
        with_zeros: bool,
    ) {
        self.begins.clear();
        self.begins.extend(member.spans.iter().zip(site.spans).map(|(own, task)| own.first + task.first));
        // Of several blocks of channels, one's weights of a tap are not followed by those of the next tap.
        let follow = self.blocks.iter().len() == 1;
        self.may_join = follow && input.strides.last() == Some(&(self.blocks.size as isize));
        self.inside.clear();
        self.all.clear();
        for (axis, deltas) in member.deltas.iter().enumerate() {
            let readable = input.readable[axis];
            let inputs = site.problem.axes[axis].whole_input();
            let there = if with_zeros { readable } else { readable.intersect(&inputs) };
            let Span { first, count } = all_meet(deltas, there);
            self.inside.push(Span { first: first - self.begins[axis], count });
        }
        // There may be many more taps than inputs.
        if self.inside.iter().any(|span| span.count == 0) {
            return;
        }
        let tap = |number, distance| PanelTap { before: number, ..PanelTap::single(number, 0, distance) };
        self.all.push(tap(0, 0));
        for (axis, deltas) in member.deltas.iter().enumerate() {
            let slower = self.all.len();
            self.all.resize(slower * deltas.len(), tap(0, 0));
            // From the end, so that none of the slower ones is overwritten before it was read.
            for number in (0..self.all.len()).rev() {
                let distance = self.shift(member, axis, number % deltas.len()) as isize * input.strides[axis];
                self.all[number] = tap(number, self.all[number / deltas.len()].distance + distance);
            }
        }
        if self.may_join {
            self.all.dedup_by(|next, taps| {
                let follows = next.distance == taps.distance + (taps.count * self.blocks.size) as isize;
                taps.count += usize::from(follows);
                follows
            });
        }
    }

    /// What the taps of the last tile read.
    pub(super) fn rows(&self) -> &[RowPointers<T>] {
        &self.rows
    }

    /// The taps of the last tile.
    pub(super) fn taps(&self) -> &[PanelTap] {
        if self.has_all { &self.all } else { &self.some }
    }

    /// What the first row of the tile behind the last one reads first.
    pub(super) fn next_inputs(&self, positions: &Positions, tile: usize) -> *const T {
        let Some(tap) = self.taps().first() else { return self.zeros.as_ptr() };
        self.rows[tap.rows][0].wrapping_offset(tap.distance + positions.inputs_to_next(tile))
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
        let &Piece { first, count, .. } = &positions.pieces[tile];
        let offsets = &positions.inputs()[first..first + count];
        let origin = input.origin(block);
        let is_inside = |(extent, inside): (&Span, &Span)| inside.contains(extent);
        self.has_all = !self.all.is_empty() && extent.iter().zip(&self.inside).all(is_inside);
        self.rows.clear();
        if self.has_all {
            // Rows that nobody asked for read what the first one does, wherever taps move it.
            let first = offsets.first().map_or(self.zeros.as_ptr(), |&offset| origin.wrapping_offset(offset));
            push_rows(&mut self.rows, origin, offsets, ALL_ROWS, first);
            return;
        }
        self.some.clear();
        self.windows.clear();
        self.counter.clear();
        self.readers.resize_with(axes.len(), Vec::new);
        for (axis, of_axis) in axes.iter().enumerate() {
            let read = Span { first: extent[axis].first + self.begins[axis], ..extent[axis] };
            let window = meeting(&member.deltas[axis], read, of_axis.whole_input());
            self.counter.push(window.start);
            self.find_readers(axis, window.clone(), member, positions, tile, input);
            self.windows.push(window);
        }
        let most_joined = if self.may_join { self.zeros.len() / self.blocks.size.max(1) } else { 1 };
        // The number of a tap that can be joined to those before, where it would read, and by which rows.
        let mut behind = None;
        for before in 0..self.windows.iter().map(Range::len).product() {
            let (number, distance, readers) = self.tap_at_counter(member, input);
            match self.some.last_mut() {
                Some(taps) if behind == Some((number, distance, readers)) && taps.count < most_joined => {
                    taps.count += 1;
                }
                _ => {
                    self.some.push(PanelTap { before, ..PanelTap::single(number, self.rows.len(), 0) });
                    let (origin, zeros) = (origin.wrapping_offset(distance), self.zeros.as_ptr());
                    push_rows(&mut self.rows, origin, offsets, readers, zeros);
                }
            }
            behind = Some((number + 1, distance + self.blocks.size as isize, readers));
            for axis in (0..axes.len()).rev() {
                self.counter[axis] += 1;
                if self.counter[axis] < self.windows[axis].end {
                    break;
                }
                self.counter[axis] = self.windows[axis].start;
            }
        }
    }

    /// Finds the rows of a tile that can read at each of some taps of an axis.
    fn find_readers(
        &mut self,
        axis: usize,
        window: Range<usize>,
        member: &Member,
        positions: &Positions,
        tile: usize,
        input: &Input<'_, T>,
    ) {
        let &Piece { first, count, .. } = &positions.pieces[tile];
        let (extent, readable) = (positions.extent(tile)[axis], input.readable[axis]);
        let mut readers = std::mem::take(&mut self.readers[axis]);
        readers.clear();
        readers.extend(window.map(|tap| {
            let shift = self.shift(member, axis, tap);
            if readable.contains(&Span { first: extent.first + shift, ..extent }) {
                return ALL_ROWS;
            }
            let reads = |row: &usize| {
                let at = positions.index(first + row)[axis] + shift;
                readable.first <= at && at < readable.end()
            };
            (0..count).filter(reads).fold(0, |rows, row| rows | 1 << row)
        }));
        self.readers[axis] = readers;
    }

    /// The number of the tap that comes next, how far it reads from a position, and by which rows.
    fn tap_at_counter(&self, member: &Member, input: &Input<'_, T>) -> (usize, isize, RowSet) {
        let (mut number, mut distance, mut readers) = (0, 0isize, ALL_ROWS);
        for (axis, &tap) in self.counter.iter().enumerate() {
            number = number * member.deltas[axis].len() + tap;
            distance += self.shift(member, axis, tap) as isize * input.strides[axis];
            readers &= self.readers[axis][tap - self.windows[axis].start];
        }
        (number, distance, readers)
    }

    /// From a position of the task to the index that a tap reads there.
    fn shift(&self, member: &Member, axis: usize, tap: usize) -> i64 {
        self.begins[axis] - member.deltas[axis][tap] as i64
    }
}

/// Adds rows at their offsets from an origin; those that cannot read there, or that a kernel computes in vain, read `others`.
fn push_rows<T>(
    rows: &mut Vec<RowPointers<T>>,
    origin: *const T,
    offsets: &[isize],
    readers: RowSet,
    others: *const T,
) {
    rows.push([others; MAX_ROWS]);
    let Some(pushed) = rows.last_mut() else { return };
    // In place: whoever copies them reads back several short stores at once, and so waits until all stores before have reached the
    // cache, those of the last outputs among them.
    for (row, (pointer, &offset)) in pushed.iter_mut().zip(offsets).enumerate() {
        // No branch, which could not be foreseen.
        let reads = usize::from(readers >> row & 1 != 0);
        *pointer = [others, origin.wrapping_offset(offset)][reads];
    }
}
