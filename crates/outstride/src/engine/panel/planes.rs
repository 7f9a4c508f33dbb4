//! Storing sums into channels-first outputs: sums hold one value per channel and position, whereas memory wants runs of
//! positions per channel, those of all phases of the innermost axes in turns.

use std::cell::Ref;
use std::ops::Range;

use outstride_kernels::Real;
use outstride_spec::Phase;

use super::super::axis::{EngineAxis, Span};
use super::super::channels::position_strides;
use super::super::panels::Segment;
use super::super::problem::Problem;
use super::panels_of;
use super::run::Site;
use super::sums::{PanelGroup, Prepared};

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

/// The outputs of positions along an axis of a row, which follow each other in turns.
#[derive(Clone, Debug, PartialEq)]
struct Turns {
    /// Of every residue, by rising output, the positions that have it.
    there: Vec<Range<usize>>,
    outputs: usize,
}

/// Where the sums of an output of a position lie.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Sums {
    /// So far from those of its first column.
    OfPosition(isize),
    /// At the same place for all positions, because no tap reaches it.
    OfNone(isize),
}

/// The rows of a task.
pub(super) struct Rows {
    /// Per axis of a row.
    turns: Vec<Turns>,
    /// Of every combination of turns, the number of its phase, if it has one.
    phases: Vec<Option<usize>>,
    /// From the first output to where these rows begin.
    begin: isize,
    stretches: Stretches,
}

/// How a row is cut into stretches, whose outputs follow each other in memory.
struct Stretches {
    len: usize,
    /// How far each lies from the first.
    offsets: Vec<isize>,
}

/// Stores the sums of all panels of a group by `write`, as long as it can. Returns whether it could.
pub(super) fn store_stretches<T: Real>(
    site: &Site<'_, T>,
    rows: &Rows,
    panels: &PanelGroup<'_, T>,
    sums: &mut [T],
    write: &impl TurnedWrite<T>,
) -> bool {
    let Site { problem, group, bundle, .. } = *site;
    let filter = problem.filter;
    // Where phases share a panel, those of a row are fastest.
    let in_turns = if bundle.members[0].shared { rows.phases.iter().flatten().count() } else { 1 };
    for panel in 0..panels.panels() {
        let prepared = panels.panel(panel, 0);
        let sums = &mut sums[panels.place(panel, 0, 0)..];
        write.set_tapless(prepared, &mut sums[panels.place_of_tapless()..][..prepared.width()]);
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

impl Rows {
    pub(super) fn of<T: Real>(site: &Site<'_, T>) -> Self {
        let Site { problem, bundle, spans, .. } = *site;
        let first = spans.len() - bundle.row_axes;
        let axes = &problem.axes[first..];
        let mut rows = Rows {
            turns: Vec::with_capacity(axes.len()),
            phases: vec![Some(0)],
            begin: 0,
            stretches: Stretches { len: 0, offsets: Vec::new() },
        };
        for (of, axis) in axes.iter().zip(first..) {
            let position_0 = |residue: usize| match &bundle.members[0] {
                member if member.shared => member.spans[axis].first + spans[axis].first,
                _ => of.span(residue).first + spans[axis].first,
            };
            let mut residues: Vec<usize> = of.residues().collect();
            residues.sort_by_key(|&residue| of.output_at(position_0(residue), residue));
            let there = |&residue: &usize| {
                let (own, position_0) = (of.span(residue), position_0(residue));
                let position = |q: i64| (q - position_0).clamp(0, spans[axis].count as i64) as usize;
                position(own.first)..position(own.end())
            };
            let there: Vec<Range<usize>> = residues.iter().map(there).collect();
            let with_output = residues.iter().zip(&there).filter(|(_, there)| !there.is_empty());
            let outputs = with_output
                .map(|(&residue, there)| of.output_at(position_0(residue) + there.start as i64, residue));
            rows.begin += outputs.min().unwrap_or(0) as isize * of.y_stride;
            let phase = |residue: usize| of.phases.iter().position(|phase| phase.residue == residue);
            let own: Vec<Option<usize>> = residues.iter().map(|&residue| phase(residue)).collect();
            let with_own = |slower: &Option<usize>| {
                let slower = *slower;
                own.iter().map(move |own| Some(slower? * of.phases.len() + (*own)?))
            };
            rows.phases = rows.phases.iter().flat_map(with_own).collect();
            rows.turns.push(Turns { outputs: there.iter().map(Range::len).sum(), there });
        }
        rows.stretches = Stretches::of(&rows.turns, axes);
        rows
    }

    /// Where the sums of all combinations lie, of all members or of phases that share a panel.
    fn sums<T: Real>(
        &self,
        panels: &PanelGroup<'_, T>,
        phases: &[Segment],
        shared: bool,
    ) -> impl Iterator<Item = Sums> {
        self.phases.iter().map(move |phase| match *phase {
            Some(phase) if shared => Sums::OfPosition((phases[phase].column - phases[0].column) as isize),
            Some(member) => Sums::OfPosition(panels.place(0, member, 0) as isize),
            None => Sums::OfNone(panels.place_of_tapless() as isize),
        })
    }
}

impl Stretches {
    /// As long as possible, given the outputs of the axes of a row.
    fn of(turns: &[Turns], axes: &[EngineAxis<'_>]) -> Self {
        let last = axes.len() - 1;
        // Outputs of an axis follow each other if all those of faster ones are there.
        let is_whole = |axis: &usize| turns[*axis].outputs == axes[*axis].output;
        let slowest = (1..=last).rev().take_while(is_whole).last().map_or(last, |axis| axis - 1);
        let mut offsets = vec![0];
        for (turns, axis) in turns[..slowest].iter().zip(axes) {
            let along = |offset: &isize| {
                let offset = *offset;
                (0..turns.outputs as isize).map(move |output| offset + output * axis.y_stride)
            };
            offsets = offsets.iter().flat_map(along).collect();
        }
        Stretches { len: outputs_of(&turns[slowest..]).max(1), offsets }
    }
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
        let first = first_position(&spans[..outer], &strides, row);
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

impl Sums {
    /// Where they lie, given where those of the position do.
    fn of(self, place: isize) -> isize {
        match self {
            Sums::OfPosition(distance) => place + distance,
            Sums::OfNone(place) => place,
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
        positions * size_of::<isize>() + turns * of_turn + axes * size_of::<Turns>()
    }

    /// The distances of every row.
    fn rows(&self) -> impl Iterator<Item = &[isize]> {
        self.distances.chunks_exact(outputs_of(&self.turns).max(1))
    }
}

/// Outputs of a row.
fn outputs_of(turns: &[Turns]) -> usize {
    turns.iter().map(|turns| turns.outputs).product()
}

/// The number of the first position of a row, given the spans of the axes before its own, and how far positions are apart along every
/// axis.
fn first_position(spans: &[Span], strides: &[usize], mut row: usize) -> usize {
    let mut number = 0;
    for (span, stride) in spans.iter().zip(strides).rev() {
        number += row % span.count * stride;
        row /= span.count;
    }
    number
}
