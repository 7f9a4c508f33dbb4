//! Sums by matrix tiles: positions × output channels, 32 input channels at a time.

mod grain;
mod input;
mod row_blocks;
mod weights;

use std::ops::Range;

use outstride_kernels::{
    FETCHED_BY_STEP, MatrixBlock, MatrixSession, MatrixStep, PART_ROW, Real, TILE_ROWS, TINY, VANISHING,
};

pub(crate) use grain::Grain;
pub(crate) use weights::MatrixWeights;

use super::super::finish::Scales;
use super::super::problem::Problem;
use super::bundle::Member;
use super::exact::Exact;
use super::planes::TurnedWrite;
use super::run::Site;
use super::store::PositionStore;
use super::sums::{PanelGroup, Prepared};
pub(super) use input::{PartsInput, parts_len};
pub(super) use row_blocks::{RowBlock, RowBlocksOfBundle};

/// The most rows that are computed at once.
pub(super) const MOST_ROWS: usize = 4 * TILE_ROWS;

/// What the sums of a task are made of.
pub(super) struct MatrixSums<'a, T: Real> {
    pub(super) site: &'a Site<'a, T>,
    /// Where the tiles of positions begin.
    pub(super) begins: &'a [isize],
    pub(super) input: &'a PartsInput<'a>,
    pub(super) weights: &'a MatrixWeights,
    pub(super) session: &'a MatrixSession,
}

/// What is done with sums as soon as they are complete.
pub(super) enum Then<'a, T: Real> {
    /// They are finished and stored, those of every member.
    Store(Vec<PositionStore<'a, T>>),
    Finish,
    Leave,
}

/// Finishes sums on their way from rows to columns.
pub(super) struct FinishInTurning<'a, T: Real> {
    problem: &'a Problem<'a, T>,
    session: &'a MatrixSession,
    bounds: (f32, f32),
}

impl<T: Real> TurnedWrite<T> for FinishInTurning<'_, T> {
    unsafe fn write(
        &self,
        prepared: &Prepared<'_, T>,
        sums: *const T,
        distances: &[isize],
        columns: Range<usize>,
        first: isize,
    ) -> bool {
        let (Some(bias), Some(y)) = (T::as_f32(prepared.bias), T::as_f32_output(&self.problem.y)) else {
            return false;
        };
        let source = sums.wrapping_add(columns.start).cast();
        let (from, to) = ((source, distances), (first, self.problem.y_channel_stride));
        let stream = self.problem.stream;
        // SAFETY: handed on from the caller; where there are biases of 32 bits, sums are such as well. Every task settles what
        // it streams.
        unsafe { self.session.finish_turned(from, &bias[columns], self.bounds, y, to, stream) }
    }
}

/// Tiles of rows that are computed at once.
fn row_tiles(prepared: &Prepared<'_, impl Real>) -> usize {
    4 / prepared.panel.vectors
}

/// Tiles of rows that there must be room for.
pub(super) fn padded_tiles(tiles: usize) -> usize {
    tiles.next_multiple_of(4)
}

impl<T: Real> MatrixSums<'_, T> {
    /// Computes the sums of a panel, for all members and tiles, and does with them what it is told to. Meanwhile it has the weights of what comes next fetched, at last those of panel `after`.
    pub(super) fn compute(
        &self,
        panel: usize,
        after: Option<usize>,
        panels: &PanelGroup<'_, T>,
        row_blocks: &mut RowBlocksOfBundle,
        then: &Then<'_, T>,
        sums: &mut [T],
    ) {
        let mut steps = Vec::new();
        let mut less = Vec::new();
        for (number, member) in self.site.bundle.members.iter().enumerate() {
            let prepared = panels.panel(0, number);
            let row_blocks = row_blocks.of(self.site, number, row_tiles(prepared));
            let blocks = self.weights.blocks(self.site.problem.filter.in_channels, member.taps());
            let own = self.weights.panel(self.site.group, member.panels.start + panel);
            let following = match (self.site.bundle.members.get(number + 1), after) {
                (Some(next), _) => Some(next.panels.start + panel),
                (None, Some(after)) => Some(self.site.bundle.members[0].panels.start + after),
                (None, None) => None,
            };
            let following = following.map_or(&[][..], |index| self.weights.panel(self.site.group, index));
            let mut done = 0;
            for block in 0..blocks.len() {
                let (_, count) = blocks.block(block);
                let len = member.taps() * count * self.weights.step_len(prepared.panel);
                let (current, rest) = own[done..].split_at(len);
                done += len;
                let next = if rest.is_empty() { following } else { rest };
                let mut known = None;
                for rows in &row_blocks.blocks {
                    if known != Some(rows.windows) {
                        let windows = row_blocks.windows(rows);
                        let len = self.weights.step_len(prepared.panel);
                        self.plan_steps(member, blocks.block(block), current, len, windows, &mut steps);
                        self.add_up_zeros(member, member.panels.start + panel, prepared, windows, &mut less);
                        known = Some(rows.windows);
                    }
                    let first = rows.first;
                    // What is stored at once needs no place of its own.
                    let at_once = matches!(then, Then::Store(_));
                    let place = if at_once && blocks.len() == 1 { 0 } else { panels.place(0, number, first) };
                    let out = &mut sums[place..place + row_tiles(prepared) * panels.tile_len()];
                    let fetched = first / row_tiles(prepared) * steps.len() * FETCHED_BY_STEP;
                    // Behind the end, what is near already: an address that is nowhere would cost time.
                    let fetch = next.get(fetched..).filter(|rest| !rest.is_empty());
                    let fetch = fetch.unwrap_or(current).as_ptr();
                    self.multiply(prepared, first, &steps, fetch, block > 0, out);
                    if block + 1 == blocks.len() {
                        let rows = (rows, row_blocks.rows(rows));
                        match then {
                            Then::Store(stores) => {
                                self.finish(member, prepared, rows, &less, stores.get(number), out);
                            }
                            Then::Finish => self.finish(member, prepared, rows, &less, None, out),
                            Then::Leave => (),
                        }
                    }
                }
            }
        }
    }

    /// Of bytes, what a position adds to the sums of a panel whose inputs all stand for zero, with the taps of the windows.
    fn add_up_zeros(
        &self,
        member: &Member,
        panel: usize,
        prepared: &Prepared<'_, T>,
        windows: &[Range<usize>],
        less: &mut Vec<i32>,
    ) {
        less.clear();
        let tap_sums = self.weights.tap_sums(self.site.group, panel);
        less.resize(prepared.width(), 0);
        let zero = T::as_f32_source(&self.site.problem.x).map_or(0, |x| self.session.zero_byte(x));
        if zero == 0 || tap_sums.is_empty() {
            return;
        }
        for (tap, _) in self.taps(member, windows) {
            let sums = &tap_sums[tap * prepared.width()..][..prepared.width()];
            less.iter_mut().zip(sums).for_each(|(less, sum)| *less += zero * sum);
        }
    }

    /// The numbers of the taps of the windows, and how far from a position they read.
    fn taps(&self, member: &Member, windows: &[Range<usize>]) -> Vec<(usize, isize)> {
        let mut taps = vec![(0, 0isize)];
        for (axis, window) in windows.iter().enumerate() {
            let deltas = &member.deltas[axis];
            let with = |&(number, distance): &(usize, isize)| {
                window.clone().map(move |tap| {
                    let shift = member.spans[axis].first - deltas[tap] as i64;
                    (number * deltas.len() + tap, distance + shift as isize * self.input.strides[axis])
                })
            };
            taps = taps.iter().flat_map(with).collect();
        }
        taps
    }

    /// The steps of a block of channels with the taps of the windows.
    fn plan_steps(
        &self,
        member: &Member,
        (first, count): (usize, usize),
        weights: &[u16],
        step_len: usize,
        windows: &[Range<usize>],
        steps: &mut Vec<MatrixStep>,
    ) {
        steps.clear();
        for (tap, distance) in self.taps(member, windows) {
            for step in 0..count {
                let row = distance * (PART_ROW * size_of::<u16>()) as isize;
                steps.push(MatrixStep {
                    input: row + (first + step) as isize * self.input.step_bytes(),
                    weights: weights[(tap * count + step) * step_len..].as_ptr(),
                });
            }
        }
    }

    fn multiply(
        &self,
        prepared: &Prepared<'_, T>,
        first: usize,
        steps: &[MatrixStep],
        fetch: *const u16,
        resume: bool,
        out: &mut [T],
    ) {
        let Some(out) = T::as_f32_mut(out) else { unreachable!("matrix tiles compute 32-bit numbers") };
        let last = self.begins.len() - 1;
        // Behind the last tile, that one again.
        let rows = std::array::from_fn(|tile| self.input.row(self.begins[(first + tile).min(last)]));
        let part_stride = self.input.part_stride;
        let block = MatrixBlock { rows, part_stride, steps, fetch, out: out.as_mut_ptr(), resume };
        assert!(out.len() >= row_tiles(prepared) * TILE_ROWS * prepared.width());
        // SAFETY: tiles begin at positions of the box; with any of the steps' distances, these and the 15 behind them are
        // inside the copy. Every step's weights are of a panel as wide. The output was just checked.
        unsafe {
            match self.weights.grain {
                Grain::Parts(parts) => self.session.multiply(parts, prepared.panel.vectors, &block),
                Grain::Bytes { signed } => {
                    self.session.multiply_bytes(signed, prepared.panel.vectors, &block);
                }
            }
        }
    }

    /// Finishes the sums of a block of rows, and stores them if there is a store for them.
    fn finish(
        &self,
        member: &Member,
        prepared: &Prepared<'_, T>,
        (block, rows): (&RowBlock, &[u16]),
        less: &[i32],
        store: Option<&PositionStore<'_, T>>,
        out: &mut [T],
    ) {
        let Problem { filter, finish, .. } = self.site.problem;
        let scales = prepared.scales.filter(|_| matches!(self.weights.grain, Grain::Bytes { .. }));
        let at_once = |store: &PositionStore<'_, T>| match scales {
            Some(scales) => self.store_bytes(store, (block, rows), scales, less, out),
            None => self.store_parts(store, (block, rows), prepared, out),
        };
        if store.is_some_and(at_once) {
            return;
        }
        match scales {
            Some(scales) => finish.apply_to_integers(filter.kernels, out, scales, (self.session, less)),
            None => self.finish_parts(member, prepared, (block, rows), out),
        }
        if let Some(store) = store {
            store.store(block.pieces.clone(), block.first, out, TILE_ROWS * prepared.width());
        }
    }

    /// Finishes and stores sums in one pass. Returns whether it could.
    fn store_parts(
        &self,
        store: &PositionStore<'_, T>,
        (block, rows): (&RowBlock, &[u16]),
        prepared: &Prepared<'_, T>,
        out: &[T],
    ) -> bool {
        let Problem { finish, stream, .. } = self.site.problem;
        let (Some(bounds), Some(bias), false) = (finish.bounds(), T::as_f32(prepared.bias), self.has_tiny())
        else {
            return false;
        };
        store.finish(block, rows, out, |rows, columns, y, first| {
            // SAFETY: the rows of a block are among its sums. Each output belongs to one position of one phase, and each
            // task has its own positions and panels, and settles what it streams.
            unsafe { self.session.finish(rows, &bias[columns], bounds, y, first, *stream) }
        })
    }

    /// Finishes and stores integers in one pass. Returns whether it could.
    fn store_bytes(
        &self,
        store: &PositionStore<'_, T>,
        (block, rows): (&RowBlock, &[u16]),
        scales: Scales<'_>,
        less: &[i32],
        out: &[T],
    ) -> bool {
        let Problem { finish, stream, .. } = self.site.problem;
        let Some(bounds) = finish.bounds() else { return false };
        store.finish(block, rows, out, |rows, columns, y, first| {
            let less = &less[columns.clone()];
            let to = scales.requantization(columns, bounds, finish.output);
            // SAFETY: as in `store_parts`.
            unsafe { self.session.finish_bytes(rows, less, &to, y, first, *stream) }
        })
    }

    /// A way to finish sums while rows become columns, if that is all there is to do in most cases.
    pub(super) fn finish_in_turning(&self) -> Option<FinishInTurning<'_, T>> {
        let Problem { finish, .. } = self.site.problem;
        let of_parts = matches!(self.weights.grain, Grain::Parts(_)) && !self.has_tiny();
        let bounds = finish.bounds().filter(|_| of_parts)?;
        Some(FinishInTurning { problem: self.site.problem, session: self.session, bounds })
    }

    /// Finishes the sums of a panel that were left unfinished.
    pub(super) fn finish_all(
        &self,
        panels: &PanelGroup<'_, T>,
        row_blocks: &mut RowBlocksOfBundle,
        sums: &mut [T],
    ) {
        for (number, member) in self.site.bundle.members.iter().enumerate() {
            let prepared = panels.panel(0, number);
            let row_blocks = row_blocks.of(self.site, number, row_tiles(prepared));
            for block in &row_blocks.blocks {
                let place = panels.place(0, number, block.first);
                let out = &mut sums[place..place + row_tiles(prepared) * panels.tile_len()];
                self.finish_parts(member, prepared, (block, row_blocks.rows(block)), out);
            }
        }
    }

    /// Whether there are numbers that tiles may take for zero.
    fn has_tiny(&self) -> bool {
        self.input.tiny || self.weights.tiny
    }

    /// Adds the bias, replaces what tiles cannot compute, and activates.
    fn finish_parts(
        &self,
        member: &Member,
        prepared: &Prepared<'_, T>,
        rows: (&RowBlock, &[u16]),
        out: &mut [T],
    ) {
        let Problem { filter, finish, .. } = self.site.problem;
        let tiny = self.has_tiny();
        // The bias hides what vanished.
        let sound = !tiny || T::as_f32(out).is_some_and(|sums| self.session.are_sound(sums, tiny));
        let mut doubtful = if sound { Vec::new() } else { self.doubtful(member, prepared, rows, out) };
        let finite = match (T::as_f32_mut(out), T::as_f32(prepared.bias)) {
            (Some(sums), Some(bias)) => self.session.add_bias(sums, bias),
            _ => unreachable!("matrix tiles compute 32-bit numbers"),
        };
        if sound && !finite {
            doubtful = self.doubtful(member, prepared, rows, out);
        }
        let exact = Exact { site: self.site, member, prepared };
        for (at, position, doubtful) in doubtful {
            let sums = &mut out[at..at + prepared.width()];
            exact.replace(self.site.positions.index(position), sums, &doubtful);
        }
        finish.apply(filter.kernels, out, prepared.scales);
    }

    /// Sums that are not finite, and those that vanish and might not if tiles did not take tiny numbers for zero: where the
    /// sums of a position begin, its number, and which of them. What vanishes in vain depends on what a position itself
    /// reads, so that results do not depend on what is computed with it.
    #[cold]
    fn doubtful(
        &self,
        member: &Member,
        prepared: &Prepared<'_, T>,
        (block, rows): (&RowBlock, &[u16]),
        out: &[T],
    ) -> Vec<(usize, usize, Vec<bool>)> {
        let (zero, tiny, vanishing) =
            (T::default(), T::from_f64(f64::from(TINY)), T::from_f64(f64::from(VANISHING)));
        let exact = Exact { site: self.site, member, prepared };
        let width = prepared.width();
        let mut found = Vec::new();
        for (&row, position) in rows.iter().zip(block.positions.clone()) {
            let at = usize::from(row) * width;
            let sums = &out[at..at + width];
            if sums.iter().all(|sum| sum.is_finite() && sum.magnitude() >= vanishing) {
                continue;
            }
            let index = self.site.positions.index(position);
            let lost = if self.weights.tiny {
                exact.reads(index, |value| value != zero)
            } else {
                self.input.tiny && exact.reads(index, |value| value != zero && value.magnitude() < tiny)
            };
            let is_doubtful = |sum: &T| !sum.is_finite() || lost && sum.magnitude() < vanishing;
            let doubtful: Vec<bool> = sums.iter().map(is_doubtful).collect();
            if doubtful.contains(&true) {
                found.push((at, position, doubtful));
            }
        }
        found
    }
}
