//! What becomes of the sums of tiles: most often one pass on their way to the output, otherwise all that there may be to do.

use std::borrow::Cow;
use std::ops::Range;

use outstride_kernels::{
    ByteOutput, FINISHED_COLUMNS, FinishedRows, MatrixBlock, MatrixSession, NARROW_COLUMNS, Real,
    Requantization, RowsTarget, TILE_ROWS, TINY, VANISHING,
};

use super::super::super::finish::Scales;
use super::super::super::problem::Problem;
use super::super::bundle::Member;
use super::super::exact::Exact;
use super::super::planes::{TurnedRows, TurnedWrite};
use super::super::store::{PositionStore, Run};
use super::super::sums::{PanelGroup, Prepared};
use super::{Grain, MatrixSums, RowBlocks, Rows, row_tiles};
use crate::aligned::LINE;

/// How some columns of sums are finished and stored in one pass.
pub(super) struct OnTheWay<'a> {
    columns: Range<usize>,
    target: RowsTarget<'a>,
    how: How<'a>,
}

/// What there is to do with sums.
enum How<'a> {
    /// And to bring them within bounds.
    AddBias(Cow<'a, [f32]>, (f32, f32)),
    Requantize {
        scales: Cow<'a, [f32]>,
        bias: Cow<'a, [f32]>,
        bounds: (f32, f32),
        output: Option<ByteOutput>,
    },
}

impl<'a> OnTheWay<'a> {
    /// Both at once, if the sums of another way go right behind these, and fill a line with them or two that caches fetch together.
    pub(super) fn beside(&self, other: &Self) -> Option<OnTheWay<'a>> {
        let columns = self.columns.len();
        let follow =
            self.columns == other.columns && other.target.first - self.target.first == columns as isize;
        let bytes = 2 * columns * self.target.output.dtype().size();
        if !follow || self.columns.start > 0 || (bytes != LINE && bytes != 2 * LINE) {
            return None;
        }
        let how = match (&self.how, &other.how) {
            (
                How::Requantize { scales, bias, bounds, output: Some(output) },
                How::Requantize { scales: other_scales, bias: other_bias, .. },
            ) if columns == FINISHED_COLUMNS => How::Requantize {
                scales: [&scales[..], &other_scales[..]].concat().into(),
                bias: [&bias[..], &other_bias[..]].concat().into(),
                bounds: *bounds,
                output: Some(*output),
            },
            (How::AddBias(bias, bounds), How::AddBias(other_bias, _))
                if matches!(columns, NARROW_COLUMNS | FINISHED_COLUMNS) =>
            {
                How::AddBias([&bias[..], &other_bias[..]].concat().into(), *bounds)
            }
            _ => return None,
        };
        Some(OnTheWay { columns: self.columns.clone(), how, ..*self })
    }

    /// The rows of a block that go this way, given their sums, perhaps others to go beside, and where outputs lie and between which
    /// of them all are.
    #[inline]
    pub(super) fn rows<'r>(
        &self,
        sums: *const f32,
        beside: Option<*const f32>,
        rows: &'r [u16],
        (distances, range): (&'r [isize], (isize, isize)),
    ) -> FinishedRows<'r> {
        let (sums, columns) = (sums.wrapping_add(self.columns.start), self.columns.len());
        FinishedRows { sums, beside, rows, distances, range, columns }
    }

    /// Finishes rows. Returns whether it could; otherwise what was stored is of no use.
    ///
    /// # Safety
    ///
    /// As [`MatrixSession::finish`].
    pub(super) unsafe fn finish(&self, session: &MatrixSession, rows: &FinishedRows<'_>) -> bool {
        // SAFETY: handed on from the caller.
        unsafe {
            match &self.how {
                How::AddBias(bias, bounds) => session.finish(rows, bias, *bounds, &self.target),
                how => session.finish_bytes(rows, &how.requantization(), &self.target),
            }
        }
    }

    /// The same while blocks of so many tiles of columns are multiplied.
    ///
    /// # Safety
    ///
    /// As [`MatrixSession::multiply_and_finish`].
    #[inline]
    pub(super) unsafe fn finish_while_multiplying(
        &self,
        session: &MatrixSession,
        rows: &FinishedRows<'_>,
        (grain, columns): (Grain, usize),
        blocks: &[MatrixBlock<'_>],
    ) -> bool {
        // SAFETY: handed on from the caller.
        unsafe {
            match (&self.how, grain) {
                (How::AddBias(bias, bounds), Grain::Pieces(pieces)) => {
                    session.multiply_and_finish((pieces, columns), blocks, rows, bias, *bounds, &self.target)
                }
                (how, Grain::Bytes { signed }) => {
                    let to = how.requantization();
                    session.multiply_and_finish_bytes((signed, columns), blocks, rows, &to, &self.target)
                }
                _ => unreachable!("parts are not requantized"),
            }
        }
    }
}

impl How<'_> {
    fn requantization(&self) -> Requantization<'_> {
        match self {
            How::Requantize { scales, bias, bounds, output } => {
                Requantization { scales, bias, bounds: *bounds, output: *output }
            }
            How::AddBias(..) => unreachable!("integers are requantized, and nothing else"),
        }
    }
}

/// Finishes sums on their way from rows to columns.
pub(in crate::engine::panel) struct FinishInTurning<'a, T: Real> {
    sums: &'a MatrixSums<'a, T>,
    bounds: (f32, f32),
}

impl<T: Real> TurnedWrite<T> for FinishInTurning<'_, T> {
    fn set_tapless(&self, _: &Prepared<'_, T>, row: &mut [T]) {
        // The bias is added on the way.
        row.fill(T::default());
    }

    unsafe fn write(&self, rows: TurnedRows<'_, T>) -> bool {
        let TurnedRows { prepared, sums, distances, columns, first } = rows;
        let MatrixSums { site, session, .. } = self.sums;
        let Problem { y, y_channel_stride, finish, stream, .. } = site.problem;
        let (Some(bias), Some(y)) = (T::as_f32(prepared.bias), T::as_f32_output(y)) else { return false };
        let source = sums.wrapping_add(columns.start).cast();
        let (from, to) = ((source, distances), (first, *y_channel_stride));
        // SAFETY: handed on from the caller; where there are biases of 32 bits, sums are such as well. Every task settles what
        // it streams.
        unsafe {
            match self.sums.scales(prepared) {
                Some(scales) => {
                    let requantization = scales.requantization(columns, self.bounds, finish.output);
                    session.finish_bytes_turned(from, &requantization, y, to, *stream)
                }
                None => session.finish_turned(from, &bias[columns], self.bounds, y, to, *stream),
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
        rows: Rows<'_>,
        store: Option<&PositionStore<'_, T>>,
        out: &mut [T],
    ) {
        if !store.is_some_and(|store| self.store_at_once(store, rows, prepared, out)) {
            self.finish_slowly(member, prepared, rows, store, out);
        }
    }

    /// The same, one thing after the other.
    pub(super) fn finish_slowly(
        &self,
        member: &Member,
        prepared: &Prepared<'_, T>,
        rows: Rows<'_>,
        store: Option<&PositionStore<'_, T>>,
        out: &mut [T],
    ) {
        let Problem { filter, finish, .. } = self.site.problem;
        match self.scales(prepared) {
            Some(scales) => finish.apply_to_integers(filter.kernels, out, scales, self.session),
            None => self.finish_parts(member, prepared, rows, out),
        }
        if let Some(store) = store {
            store.store(rows.pieces(), rows.first, out, TILE_ROWS * prepared.width());
        }
    }

    /// Finishes and stores sums in one pass. Returns whether it could.
    fn store_at_once(
        &self,
        store: &PositionStore<'_, T>,
        rows: Rows<'_>,
        prepared: &Prepared<'_, T>,
        out: &[T],
    ) -> bool {
        let Some(sums) = T::as_f32(out) else { return false };
        let finish = |runs: &[Run], rows: &[u16], outputs: (&[isize], (isize, isize))| {
            // SAFETY: the rows of a block are among its sums. Each output belongs to one position of one phase, and each task has
            // its own positions and panels, and settles what it streams.
            let finish = |way: OnTheWay<'_>| unsafe {
                way.finish(self.session, &way.rows(sums.as_ptr(), None, rows, outputs))
            };
            self.ways(store, runs, prepared).is_some_and(|mut ways| ways.all(finish))
        };
        let outputs = self.site.positions.outputs();
        if rows.is_interior {
            return finish(store.runs(), rows.rows, rows.outputs(outputs, self.session));
        }
        let first = rows.positions().start;
        store.for_each_part(rows.positions(), |part, runs| {
            let outputs = &outputs[part.clone()];
            let rows = &rows.rows[part.start - first..part.end - first];
            finish(runs, rows, (outputs, self.session.range_of(outputs)))
        })
    }

    /// How some columns of the sums of a panel are finished and stored in one pass each; not at all if there may be more to do.
    pub(super) fn ways<'w>(
        &self,
        store: &'w PositionStore<'w, T>,
        runs: &'w [Run],
        prepared: &'w Prepared<'_, T>,
    ) -> Option<impl Iterator<Item = OnTheWay<'w>>> {
        let finish = &self.site.problem.finish;
        let bounds = finish.bounds()?;
        let scales = self.scales(prepared);
        if scales.is_none() && self.may_be_subnormal() {
            return None;
        }
        let bias = T::as_f32(prepared.bias)?;
        let way = move |(columns, target): (Range<usize>, RowsTarget<'w>)| {
            let how = match scales {
                Some(scales) => {
                    let to = scales.requantization(columns.clone(), bounds, finish.output);
                    let (scales, bias) = (to.scales.into(), to.bias.into());
                    How::Requantize { scales, bias, bounds, output: finish.output }
                }
                None => How::AddBias(bias[columns.clone()].into(), bounds),
            };
            OnTheWay { columns, target, how }
        };
        Some(store.targets(runs)?.map(way))
    }

    /// Those of integers that tiles of bytes left.
    fn scales<'p>(&self, prepared: &Prepared<'p, T>) -> Option<Scales<'p>> {
        prepared.scales.filter(|_| matches!(self.weights.grain, Grain::Bytes { .. }))
    }

    /// A way to finish sums while rows become columns, if that is all there is to do in most cases.
    pub(in crate::engine::panel) fn finish_in_turning(&self) -> Option<FinishInTurning<'_, T>> {
        let Problem { finish, .. } = self.site.problem;
        let bounds = finish.bounds().filter(|_| !self.may_be_subnormal())?;
        Some(FinishInTurning { sums: self, bounds })
    }

    /// Finishes the sums of a panel that were left unfinished.
    pub(in crate::engine::panel) fn finish_all(
        &self,
        panels: &PanelGroup<'_, T>,
        row_blocks: &RowBlocks<'_>,
        sums: &mut [T],
    ) {
        for (number, member) in self.site.bundle.members.iter().enumerate() {
            let prepared = panels.panel(0, number);
            let row_blocks = row_blocks.of_member(number);
            for block in 0..row_blocks.len() {
                let place = panels.place(0, number, row_blocks.first_tile(block));
                let out = &mut sums[place..place + row_tiles(prepared.panel.vectors) * panels.tile_len()];
                self.finish(member, prepared, row_blocks.block(block), None, out);
            }
        }
    }

    /// Whether sums with their bias may be subnormal.
    fn may_be_subnormal(&self) -> bool {
        self.has_tiny() || self.weights.tiny_bias
    }

    /// Whether there are numbers that tiles may take for zero.
    fn has_tiny(&self) -> bool {
        self.input.tiny || self.weights.tiny
    }

    /// Adds the bias, replaces what tiles cannot compute, and activates.
    fn finish_parts(&self, member: &Member, prepared: &Prepared<'_, T>, rows: Rows<'_>, out: &mut [T]) {
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
        rows: Rows<'_>,
        out: &[T],
    ) -> Vec<(usize, usize, Vec<bool>)> {
        let (zero, tiny, vanishing) =
            (T::default(), T::from_f64(f64::from(TINY)), T::from_f64(f64::from(VANISHING)));
        let exact = Exact { site: self.site, member, prepared };
        let width = prepared.width();
        let mut found = Vec::new();
        for (&row, position) in rows.rows.iter().zip(rows.positions()) {
            let at = usize::from(row);
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
