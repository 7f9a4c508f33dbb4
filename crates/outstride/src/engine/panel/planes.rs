//! Storing sums into channels-first outputs: sums hold one value per channel and position, whereas memory wants runs of
//! positions per channel, those of all phases of the last axis in turns.

use std::cell::Ref;
use std::ops::Range;

use outstride_kernels::Real;
use outstride_spec::Phase;

use super::super::axis::Span;
use super::super::channels::position_strides;
use super::super::panels::Segment;
use super::super::problem::Problem;
use super::bundle::Member;
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

/// Where the sums of all stretches lie: the outputs of a task as runs along the last axis, each with all phases of that axis, be they
/// members of a bundle or share a panel. Most tasks have the same, so that it is kept with their positions.
#[derive(Debug, Default)]
pub(super) struct LaidOut {
    /// By rising output within a position.
    turns: Vec<Turn>,
    /// From tile to tile, and from row to row.
    pitches: (usize, usize),
    /// Per stretch and output, where its sum lies from that of the first turn's first column.
    distances: Vec<isize>,
}

/// One of the outputs that follow each other in turns.
#[derive(Debug, PartialEq)]
struct Turn {
    /// Where its sums lie, from those of the first column that is stored.
    offset: isize,
    /// The positions of a stretch that have it.
    there: Range<usize>,
}

/// Stores the sums of all panels of a group by `write`, as long as it can. Returns whether it could.
pub(super) fn store_stretches<T: Real>(
    site: &Site<'_, T>,
    panels: &PanelGroup<'_, T>,
    sums: &[T],
    write: &impl TurnedWrite<T>,
) -> bool {
    let Site { problem, group, bundle, .. } = *site;
    let filter = problem.filter;
    let last = &problem.axes[problem.axes.len() - 1];
    let shared = bundle.members[0].shared;
    for panel in 0..panels.panels() {
        let prepared = panels.panel(panel, 0);
        let sums = sums[panels.place(panel, 0, 0)..].as_ptr();
        // Where phases share a panel, those of the last axis are fastest.
        let in_turns = if shared { last.phases.len() } else { 1 };
        for phases in panels_of(filter).segments(prepared.panel).chunks(in_turns) {
            let (begin, turns) = turns(site, panels, phases);
            let laid_out = lay_out(turns, site, (panels.tile_len(), prepared.width()));
            let columns = phases[0].column..phases[0].column + phases[0].channels;
            let of_phases = filter.phase(phases[0].phase);
            let first = problem.y_channel(group, phases[0].first_channel) + begin;
            for (row, distances) in laid_out.stretches().enumerate() {
                let Some(target) = target(site, &of_phases, row) else { continue };
                let (first, columns) = (first + target, columns.clone());
                let rows = TurnedRows { prepared, sums, distances, columns, first };
                // SAFETY: every distance is the place of a row among the panel's sums, and perhaps of a phase's columns within
                // it; a row has the panel's columns. Each output belongs to one position of one phase, and each task has its
                // own positions and panels.
                if !unsafe { write.write(rows) } {
                    return false;
                }
            }
        }
    }
    true
}

/// The outputs that follow each other, of all members or of phases that share a panel, and where along the last axis they begin.
fn turns<T: Real>(site: &Site<'_, T>, panels: &PanelGroup<'_, T>, phases: &[Segment]) -> (isize, Vec<Turn>) {
    let Site { problem, bundle, spans, .. } = *site;
    let last = spans.len() - 1;
    let (of, along) = (&problem.axes[last], spans[last]);
    // With the output at the first position of a stretch, whether it is there or not.
    let turn = |first: i64, residue: usize, offset: usize| {
        let first = first + along.first;
        let position = |q: i64| (q - first).clamp(0, along.count as i64) as usize;
        let span = of.span(residue);
        let there = position(span.first)..position(span.end());
        (of.output_at(first, residue), Turn { offset: offset as isize, there })
    };
    let mut turns: Vec<(i64, Turn)> = match &bundle.members[..] {
        [member] if member.shared => {
            let of_phase = |segment: &Segment| {
                let residue = of.phases[segment.phase % of.phases.len()].residue;
                turn(member.spans[last].first, residue, segment.column - phases[0].column)
            };
            phases.iter().map(of_phase).collect()
        }
        members => {
            let of_member = |(number, member): (usize, &Member)| {
                turn(member.spans[last].first, member.residues[last], panels.place(0, number, 0))
            };
            members.iter().enumerate().map(of_member).collect()
        }
    };
    turns.sort_by_key(|&(output, _)| output);
    let there = turns.iter().filter(|(_, turn)| !turn.there.is_empty());
    let begins = there.map(|(output, turn)| output + turn.there.start as i64 * of.stride);
    (begins.min().unwrap_or(0) as isize, turns.into_iter().map(|(_, turn)| turn).collect())
}

/// Where the outputs of a stretch begin, but for the last axis and the channel; nowhere if they are outside the output.
fn target<T: Real>(site: &Site<'_, T>, phases: &[&Phase], mut row: usize) -> Option<isize> {
    let last = site.spans.len() - 1;
    let mut target = 0;
    for (axis, of) in site.problem.axes[..last].iter().enumerate().rev() {
        let span = &site.spans[axis];
        let index = span.first + (row % span.count) as i64;
        row /= span.count;
        let residue = if axis == 0 { 0 } else { phases[axis - 1].residue };
        let output = of.output_at(site.bundle.members[0].spans[axis].first + index, residue);
        if !(0..of.output as i64).contains(&output) {
            return None;
        }
        target += output as isize * of.y_stride;
    }
    Some(target)
}

/// Where the sums of turns lie, given how far tiles and their rows are apart.
fn lay_out<'s, T: Real>(turns: Vec<Turn>, site: &Site<'s, T>, pitches: (usize, usize)) -> Ref<'s, LaidOut> {
    let kept = site.positions.laid_out();
    if !kept.borrow().is_of(&turns, pitches) {
        let mut laid_out = kept.borrow_mut();
        find_distances(&turns, site, pitches, &mut laid_out.distances);
        (laid_out.turns, laid_out.pitches) = (turns, pitches);
    }
    kept.borrow()
}

/// Per stretch and output, where its sum lies, given how far tiles and their rows are apart.
fn find_distances<T: Real>(
    turns: &[Turn],
    site: &Site<'_, T>,
    (tile_len, width): (usize, usize),
    distances: &mut Vec<isize>,
) {
    let Site { spans, positions, .. } = *site;
    let last = spans.len() - 1;
    let (strides, _) = position_strides(spans, positions.order());
    let places = positions.places(tile_len, width);
    let count = spans[last].count;
    let stretches: usize = spans[..last].iter().map(|span| span.count).product();
    // Positions that have all turns; before and behind them are some that have not.
    let begin = turns.iter().map(|turn| turn.there.start).max().unwrap_or(0);
    let end = turns.iter().map(|turn| turn.there.end).min().unwrap_or(0).max(begin);
    distances.clear();
    distances.reserve_exact(stretches * outputs_of(turns));
    for stretch in 0..stretches {
        let first = first_position(spans, &strides, stretch);
        let place = |position: usize| places[first + position * strides[last]];
        let border = |position: usize| {
            let there = turns.iter().filter(move |turn| turn.there.contains(&position));
            there.map(move |turn| place(position) + turn.offset)
        };
        distances.extend((0..begin).flat_map(border));
        let at = distances.len();
        distances.resize(at + (end - begin) * turns.len(), 0);
        let all = distances[at..].chunks_exact_mut(turns.len().max(1));
        for (distances, position) in all.zip(begin..) {
            let place = place(position);
            distances.iter_mut().zip(turns).for_each(|(distance, turn)| *distance = place + turn.offset);
        }
        distances.extend((end..count).flat_map(border));
    }
}

impl LaidOut {
    /// The most bytes of those of so many positions with so many turns.
    pub(super) fn most_bytes(positions: usize, turns: usize) -> usize {
        turns * (positions * size_of::<isize>() + size_of::<Turn>())
    }

    /// The same of what they are found by.
    pub(super) fn most_bytes_to_find(positions: usize) -> usize {
        positions * size_of::<isize>()
    }

    fn is_of(&self, turns: &[Turn], pitches: (usize, usize)) -> bool {
        self.pitches == pitches && self.turns == turns
    }

    /// The distances of every stretch.
    fn stretches(&self) -> impl Iterator<Item = &[isize]> {
        self.distances.chunks_exact(outputs_of(&self.turns).max(1))
    }
}

/// The number of the first position of a stretch, given how far positions are apart along every axis.
fn first_position(spans: &[Span], strides: &[usize], mut stretch: usize) -> usize {
    let mut number = 0;
    for axis in (0..spans.len() - 1).rev() {
        number += stretch % spans[axis].count * strides[axis];
        stretch /= spans[axis].count;
    }
    number
}

/// Outputs of a stretch.
fn outputs_of(turns: &[Turn]) -> usize {
    turns.iter().map(|turn| turn.there.len()).sum()
}
