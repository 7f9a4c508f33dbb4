//! Storing sums into channels-first outputs: sums hold one value per channel and position, whereas memory wants runs of
//! positions per channel, those of all phases of the innermost axes in turns.

use std::cell::Ref;
use std::ops::Range;

use outstride_kernels::Real;
use outstride_spec::Phase;

use super::super::axis::Span;
use super::super::channels::{place_of_row, position_strides};
use super::super::panels::Segment;
use super::super::problem::Problem;
use super::panels_of;
use super::run::Site;
use super::sums::{PanelGroup, Prepared};
use super::turns::{Rows, Stretches, Sums, Turns, outputs_of};

/// Some columns of a panel's sums, which become runs per channel.
pub(super) struct TurnedRows<'a, T: 'static> {
    pub(super) prepared: &'a Prepared<'a, T>,
    /// Where the sums of column 0 begin, and how far from there each row lies.
    pub(super) sums: *const T,
    pub(super) distances: &'a [isize],
    pub(super) columns: Range<usize>,
    /// The output of the first row and column.
    pub(super) first: isize,
}

/// How rows of sums become runs per channel.
pub(super) trait TurnedWrite<T: Real> {
    /// Sets the sums of a row that no tap reaches.
    fn set_tapless(&self, prepared: &Prepared<'_, T>, row: &mut [T]);

    /// Returns whether it could.
    ///
    /// # Safety
    ///
    /// Every sum must be readable, and no other thread may write any of the output's elements at the same time.
    unsafe fn write(&self, rows: TurnedRows<'_, T>) -> bool;
}

/// As the sums are.
pub(super) struct Finished<'a, T: Real>(pub(super) &'a Problem<'a, T>);

impl<T: Real> TurnedWrite<T> for Finished<'_, T> {
    fn set_tapless(&self, prepared: &Prepared<'_, T>, row: &mut [T]) {
        row.copy_from_slice(prepared.bias);
        self.0.finish.apply(self.0.filter.kernels, row, prepared.scales);
    }

    unsafe fn write(&self, TurnedRows { sums, distances, columns, first, .. }: TurnedRows<'_, T>) -> bool {
        let Finished(problem) = self;
        let (stride, source) = (problem.y_channel_stride, sums.wrapping_add(columns.start));
        // SAFETY: handed on from the caller.
        unsafe {
            problem.y.write_transposed(first, stride, source, distances, columns.len(), problem.stream)
        };
        true
    }
}

/// Where the sums of all rows of a task lie: its outputs along the innermost axes, each with all phases of these axes, be they members
/// of a bundle or share a panel, and with what no tap reaches in between. Most tasks have the same, so that it is kept with their
/// positions.
#[derive(Debug, Default)]
pub(super) struct LaidOut {
    turns: Vec<Turns>,
    sums: Vec<Sums>,
    /// From tile to tile, and from row to row.
    pitches: (usize, usize),
    /// Per row and output, where its sum lies from that of the first column.
    distances: Vec<isize>,
}

/// Stores the sums of all panels of a group by `write`, as long as it can. Returns whether it could. Without rows, they were stored as
/// soon as they were complete.
pub(super) fn store_rows<T: Real>(
    site: &Site<'_, T>,
    rows: Option<&Rows>,
    panels: &PanelGroup<'_, T>,
    sums: &mut [T],
    write: &impl TurnedWrite<T>,
) -> bool {
    let Some(rows) = rows else { return true };
    let Site { problem, group, bundle, .. } = *site;
    let filter = problem.filter;
    // Where phases share a panel, those of a row are fastest.
    let in_turns = if bundle.members[0].shared { rows.phases() } else { 1 };
    for panel in 0..panels.panels() {
        let prepared = panels.panel(panel, 0);
        let sums = &mut sums[panels.place(panel, 0, 0)..];
        if rows.have_gaps() {
            write.set_tapless(prepared, &mut sums[panels.place_of_tapless()..][..prepared.width()]);
        }
        for phases in panels_of(filter).segments(prepared.panel).chunks(in_turns) {
            let laid_out = lay_out(rows, site, panels, prepared.width(), phases);
            let columns = phases[0].column..phases[0].column + phases[0].channels;
            let of_phases = filter.phase(phases[0].phase);
            let first = problem.y_channel(group, phases[0].first_channel) + rows.begin;
            for (row, distances) in laid_out.rows().enumerate() {
                let Some(target) = target(site, &of_phases, row) else { continue };
                let Stretches { len, offsets } = &rows.stretches;
                for (distances, offset) in distances.chunks_exact(*len).zip(offsets) {
                    let (first, columns) = (first + target + offset, columns.clone());
                    let rows = TurnedRows { prepared, sums: sums.as_ptr(), distances, columns, first };
                    // SAFETY: every distance is the place of a row among the panel's sums, and perhaps of a phase's columns
                    // within it; a row has the panel's columns. Each output belongs to one position of one phase, or lies between
                    // those of a row, and each task has its own rows and panels.
                    if !unsafe { write.write(rows) } {
                        return false;
                    }
                }
            }
        }
    }
    true
}

/// Where a row begins, but for its own axes and the channel, given one of its phases; nowhere if it is outside the output.
fn target<T: Real>(site: &Site<'_, T>, phases: &[&Phase], mut row: usize) -> Option<isize> {
    let Site { problem, bundle, spans, .. } = *site;
    let mut target = 0;
    for (axis, of) in problem.axes[..spans.len() - bundle.row_axes].iter().enumerate().rev() {
        let span = &spans[axis];
        let index = span.first + (row % span.count) as i64;
        row /= span.count;
        let residue = if axis == 0 { 0 } else { phases[axis - 1].residue };
        let output = of.output_at(bundle.members[0].spans[axis].first + index, residue);
        if !(0..of.output as i64).contains(&output) {
            return None;
        }
        target += output as isize * of.y_stride;
    }
    Some(target)
}

/// Where the sums of rows lie, given phases that share a panel, or one of each member, and how wide panels are.
fn lay_out<'s, T: Real>(
    rows: &Rows,
    site: &Site<'s, T>,
    panels: &PanelGroup<'_, T>,
    width: usize,
    phases: &[Segment],
) -> Ref<'s, LaidOut> {
    let kept = site.positions.laid_out();
    let pitches = (panels.tile_len(), width);
    let sums = || rows.sums(panels, phases, site.bundle.members[0].shared);
    let is_same = |kept: &LaidOut| {
        kept.pitches == pitches && kept.turns == rows.turns && kept.sums.iter().copied().eq(sums())
    };
    if !is_same(&kept.borrow()) {
        let mut laid_out = kept.borrow_mut();
        let LaidOut { turns, sums: kept_sums, distances, .. } = &mut *laid_out;
        turns.clone_from(&rows.turns);
        kept_sums.clear();
        kept_sums.extend(sums());
        find_distances(turns, kept_sums, site, pitches, distances);
        laid_out.pitches = pitches;
    }
    kept.borrow()
}

/// Per row and output, where its sum lies, given how far tiles and their rows are apart.
fn find_distances<T: Real>(
    turns: &[Turns],
    sums: &[Sums],
    site: &Site<'_, T>,
    (tile_len, width): (usize, usize),
    distances: &mut Vec<isize>,
) {
    let Site { spans, positions, bundle, .. } = *site;
    let (strides, _) = position_strides(spans, positions.order());
    let places = positions.places(tile_len, width);
    let outer = spans.len() - bundle.row_axes;
    let rows: usize = spans[..outer].iter().map(|span| span.count).product();
    distances.clear();
    distances.reserve_exact(rows * outputs_of(turns));
    for row in 0..rows {
        let first = place_of_row(&spans[..outer], |axis| strides[axis], row);
        let inner = Inner { turns, spans: &spans[outer..], strides: &strides[outer..], places: &places };
        inner.extend(first, sums, distances);
    }
}

/// The axes of a row, from one of them on.
struct Inner<'a> {
    turns: &'a [Turns],
    spans: &'a [Span],
    /// How far positions are apart.
    strides: &'a [usize],
    /// Where the sums of every position begin.
    places: &'a [isize],
}

impl Inner<'_> {
    /// Appends where the sums of all outputs lie, given the first position, and those of every combination of turns.
    fn extend(&self, first: usize, sums: &[Sums], distances: &mut Vec<isize>) {
        let there = &self.turns[0].there;
        let positions =
            (0..self.spans[0].count).map(|position| (position, first + position * self.strides[0]));
        if self.turns.len() > 1 {
            let faster = Inner {
                turns: &self.turns[1..],
                spans: &self.spans[1..],
                strides: &self.strides[1..],
                places: self.places,
            };
            let of_turns = there.iter().zip(sums.chunks_exact(sums.len() / there.len()));
            for (position, first) in positions {
                let own = of_turns.clone().filter(|(there, _)| there.contains(&position));
                own.for_each(|(_, sums)| faster.extend(first, sums, distances));
            }
            return;
        }
        // Positions that have all turns; before and behind them are some that have not.
        let begin = there.iter().map(|there| there.start).max().unwrap_or(0);
        let end = there.iter().map(|there| there.end).min().unwrap_or(0);
        for (position, number) in positions {
            let place = self.places[number];
            if (begin..end).contains(&position) {
                distances.extend(sums.iter().map(|sums| sums.of(place)));
            } else {
                let own = there.iter().zip(sums).filter(|(there, _)| there.contains(&position));
                distances.extend(own.map(|(_, sums)| sums.of(place)));
            }
        }
    }
}

impl LaidOut {
    /// The most bytes of those of so many positions with so many turns, along so many axes.
    pub(super) fn most_bytes(positions: usize, turns: usize, axes: usize) -> usize {
        let of_turn = size_of::<Sums>() + axes * size_of::<Range<usize>>();
        turns * (positions * size_of::<isize>() + of_turn) + axes * size_of::<Turns>()
    }

    /// The same of what they are found by.
    pub(super) fn most_bytes_to_find(positions: usize, turns: usize, axes: usize) -> usize {
        let of_turn =
            2 * size_of::<Option<usize>>() + axes * (size_of::<Range<usize>>() + size_of::<usize>());
        // Rows of several axes may be cut into stretches of an output each.
        let offsets = if axes > 1 { positions * turns } else { 0 };
        (positions + offsets) * size_of::<isize>() + turns * of_turn + axes * size_of::<Turns>()
    }

    /// The distances of every row.
    fn rows(&self) -> impl Iterator<Item = &[isize]> {
        self.distances.chunks_exact(outputs_of(&self.turns).max(1))
    }
}
