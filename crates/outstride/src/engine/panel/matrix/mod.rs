//! Sums by matrix tiles: positions × output channels, 32 input channels at a time.

mod finish;
mod grain;
mod input;
mod row_blocks;
mod weights;

use std::ops::Range;

use outstride_kernels::{
    Begin, FETCHED_BY_STEP, MatrixBlock, MatrixSession, MatrixStep, PART_ROW, Real, TILE_ROWS,
};

pub(crate) use grain::Grain;
pub(crate) use weights::MatrixWeights;

use super::bundle::Member;
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

/// Tiles of rows that are computed at once.
fn row_tiles(prepared: &Prepared<'_, impl Real>) -> usize {
    4 / prepared.panel.vectors
}

/// Tiles of rows that there must be room for.
pub(super) fn padded_tiles(tiles: usize) -> usize {
    tiles.next_multiple_of(4)
}

impl<T: Real> MatrixSums<'_, T> {
    /// Computes the sums of a panel, for all members and tiles, and does with them what it is told to. Meanwhile it has the
    /// weights of what comes next fetched, at last those of panel `after`.
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
        let mut less_zeros = Vec::new();
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
                        let number = member.panels.start + panel;
                        self.take_zeros_away(member, number, prepared, windows, &mut less_zeros);
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
                    let begin = match (block, &less_zeros[..]) {
                        (0, []) => Begin::Zeros,
                        (0, columns) => Begin::Columns(columns),
                        _ => Begin::Sums,
                    };
                    self.multiply(prepared, first, &steps, fetch, begin, out);
                    if block + 1 == blocks.len() {
                        let rows = (rows, row_blocks.rows(rows));
                        match then {
                            Then::Store(stores) => {
                                self.finish(member, prepared, rows, stores.get(number), out);
                            }
                            Then::Finish => self.finish(member, prepared, rows, None, out),
                            Then::Leave => (),
                        }
                    }
                }
            }
        }
    }

    /// Of bytes, what must be taken away from the sums of a panel for inputs that all stand for zero to make zero, with the taps of
    /// the windows; nothing if zero itself stands for zero.
    fn take_zeros_away(
        &self,
        member: &Member,
        panel: usize,
        prepared: &Prepared<'_, T>,
        windows: &[Range<usize>],
        columns: &mut Vec<i32>,
    ) {
        columns.clear();
        let tap_sums = self.weights.tap_sums(self.site.group, panel);
        let zero = T::as_f32_source(&self.site.problem.x).map_or(0, |x| self.session.zero_byte(x));
        if zero == 0 || tap_sums.is_empty() {
            return;
        }
        columns.resize(prepared.width(), 0);
        for (tap, _) in self.taps(member, windows) {
            let sums = &tap_sums[tap * prepared.width()..][..prepared.width()];
            columns.iter_mut().zip(sums).for_each(|(column, sum)| *column -= zero * sum);
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
        begin: Begin<'_>,
        out: &mut [T],
    ) {
        let Some(out) = T::as_f32_mut(out) else { unreachable!("matrix tiles compute 32-bit numbers") };
        let last = self.begins.len() - 1;
        // Behind the last tile, that one again.
        let rows = std::array::from_fn(|tile| self.input.row(self.begins[(first + tile).min(last)]));
        let part_stride = self.input.part_stride;
        let block = MatrixBlock { rows, part_stride, steps, fetch, out: out.as_mut_ptr(), begin };
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
}
