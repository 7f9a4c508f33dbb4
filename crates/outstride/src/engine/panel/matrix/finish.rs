//! What becomes of the sums of tiles: most often one pass on their way to the output, otherwise all that there may be to do.

use outstride_kernels::{MatrixSession, Real, TILE_ROWS, TINY, VANISHING};

use super::super::super::finish::Scales;
use super::super::super::problem::Problem;
use super::super::bundle::Member;
use super::super::exact::Exact;
use super::super::planes::{TurnedRows, TurnedWrite};
use super::super::store::PositionStore;
use super::super::sums::{PanelGroup, Prepared};
use super::{Grain, MatrixSums, RowBlock, RowBlocksOfBundle, row_tiles};

/// Finishes sums on their way from rows to columns.
pub(in crate::engine::panel) struct FinishInTurning<'a, T: Real> {
    problem: &'a Problem<'a, T>,
    session: &'a MatrixSession,
    /// Of what tiles were made.
    grain: Grain,
    bounds: (f32, f32),
}

impl<T: Real> TurnedWrite<T> for FinishInTurning<'_, T> {
    unsafe fn write(&self, rows: TurnedRows<'_, T>) -> bool {
        let TurnedRows { prepared, sums, distances, columns, first } = rows;
        let Problem { y, y_channel_stride, finish, stream, .. } = self.problem;
        let (Some(bias), Some(y)) = (T::as_f32(prepared.bias), T::as_f32_output(y)) else { return false };
        let source = sums.wrapping_add(columns.start).cast();
        let (from, to) = ((source, distances), (first, *y_channel_stride));
        let scales = prepared.scales.filter(|_| matches!(self.grain, Grain::Bytes { .. }));
        // SAFETY: handed on from the caller; where there are biases of 32 bits, sums are such as well. Every task settles what
        // it streams.
        unsafe {
            match scales {
                Some(scales) => {
                    let requantization = scales.requantization(columns, self.bounds, finish.output);
                    self.session.finish_bytes_turned(from, &requantization, y, to, *stream)
                }
                None => self.session.finish_turned(from, &bias[columns], self.bounds, y, to, *stream),
            }
        }
    }
}

impl<T: Real> MatrixSums<'_, T> {
    /// Finishes the sums of a block of rows, and stores them if there is a store for them.
    pub(super) fn finish(
        &self,
        member: &Member,
        prepared: &Prepared<'_, T>,
        (block, rows): (&RowBlock, &[u16]),
        store: Option<&PositionStore<'_, T>>,
        out: &mut [T],
    ) {
        let Problem { filter, finish, .. } = self.site.problem;
        let scales = prepared.scales.filter(|_| matches!(self.weights.grain, Grain::Bytes { .. }));
        let at_once = |store: &PositionStore<'_, T>| match scales {
            Some(scales) => self.store_bytes(store, (block, rows), scales, out),
            None => self.store_parts(store, (block, rows), prepared, out),
        };
        if store.is_some_and(at_once) {
            return;
        }
        match scales {
            Some(scales) => finish.apply_to_integers(filter.kernels, out, scales, self.session),
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
        out: &[T],
    ) -> bool {
        let Problem { finish, stream, .. } = self.site.problem;
        let Some(bounds) = finish.bounds() else { return false };
        store.finish(block, rows, out, |rows, columns, y, first| {
            let to = scales.requantization(columns, bounds, finish.output);
            // SAFETY: as in `store_parts`.
            unsafe { self.session.finish_bytes(rows, &to, y, first, *stream) }
        })
    }

    /// A way to finish sums while rows become columns, if that is all there is to do in most cases.
    pub(in crate::engine::panel) fn finish_in_turning(&self) -> Option<FinishInTurning<'_, T>> {
        let Problem { finish, .. } = self.site.problem;
        let bounds = finish.bounds().filter(|_| !self.has_tiny())?;
        let Self { session, weights, .. } = *self;
        Some(FinishInTurning { problem: self.site.problem, session, grain: weights.grain, bounds })
    }

    /// Finishes the sums of a panel that were left unfinished.
    pub(in crate::engine::panel) fn finish_all(
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
