//! Rows of channels-first outputs: all that lies along the innermost axes, phases and what no tap reaches in turns.

use std::ops::Range;

use outstride_kernels::Real;

use super::super::axis::{EngineAxis, Span};
use super::super::panels::Segment;
use super::run::Site;
use super::sums::PanelGroup;

/// The outputs of positions along an axis of a row, which follow each other in turns.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Turns {
    /// Of every residue, by rising output, the positions that have it.
    pub(super) there: Vec<Range<usize>>,
}

/// Where the sums of an output of a position lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Sums {
    /// So far from those of its first column.
    OfPosition(isize),
    /// At the same place for all positions, because no tap reaches it.
    OfNone(isize),
}

/// The rows of a task.
pub(super) struct Rows {
    /// Per axis of a row.
    pub(super) turns: Vec<Turns>,
    /// Of every combination of turns, the number of its phase, if it has one.
    phases: Vec<Option<usize>>,
    /// From the first output to where these rows begin.
    pub(super) begin: isize,
    pub(super) stretches: Stretches,
}

/// How a row is cut into stretches, whose outputs follow each other in memory.
pub(super) struct Stretches {
    pub(super) len: usize,
    /// How far each lies from the first.
    pub(super) offsets: Vec<isize>,
}

impl Turns {
    /// Those of all positions.
    fn outputs(&self) -> usize {
        self.there.iter().map(Range::len).sum()
    }
}

impl Rows {
    /// None where outputs are stored position by position.
    pub(super) fn of<T: Real>(site: &Site<'_, T>) -> Option<Self> {
        let Site { problem, bundle, spans, .. } = *site;
        if bundle.row_axes == 0 {
            return None;
        }
        let first = spans.len() - bundle.row_axes;
        let axes = &problem.axes[first..];
        let (mut turns, mut phases, mut begin) = (Vec::with_capacity(axes.len()), vec![Some(0)], 0);
        for (axis, number) in axes.iter().zip(first..) {
            let member = &bundle.members[0];
            let together = member.shared.then_some(member.spans[number].first);
            let residues = Residues::of(axis, spans[number], together);
            begin += residues.begin as isize * axis.y_stride;
            let with_own = |slower: &Option<usize>| {
                let slower = *slower;
                residues.phases.iter().map(move |own| Some(slower? * axis.phases.len() + (*own)?))
            };
            phases = phases.iter().flat_map(with_own).collect();
            turns.push(residues.turns);
        }
        Some(Rows { stretches: Stretches::of(&turns, axes), turns, phases, begin })
    }

    /// Whether no tap reaches some of the outputs.
    pub(super) fn have_gaps(&self) -> bool {
        self.phases.contains(&None)
    }

    /// How many phases there are, of all axes of a row.
    pub(super) fn phases(&self) -> usize {
        self.phases.iter().flatten().count()
    }

    /// Where the sums of all combinations lie, of all members or of phases that share a panel.
    pub(super) fn sums<T: Real>(
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

/// The residues of an axis, by rising output.
struct Residues {
    turns: Turns,
    /// The number of the phase of each, if it has one.
    phases: Vec<Option<usize>>,
    /// The first output.
    begin: i64,
}

impl Residues {
    /// Those at some positions of an axis, counted from the first one of each residue or all `together` from the same.
    fn of(axis: &EngineAxis<'_>, along: Span, together: Option<i64>) -> Self {
        let first = |residue: usize| along.first + together.unwrap_or_else(|| axis.span(residue).first);
        let mut residues: Vec<usize> = axis.residues().collect();
        residues.sort_by_key(|&residue| axis.output_at(first(residue), residue));
        let there = residues.iter().map(|&residue| {
            let position = |q: i64| (q - first(residue)).clamp(0, along.count as i64) as usize;
            let own = axis.span(residue);
            position(own.first)..position(own.end())
        });
        let there: Vec<Range<usize>> = there.collect();
        let with_output = residues.iter().zip(&there).filter(|(_, there)| !there.is_empty());
        let outputs =
            with_output.map(|(&residue, there)| axis.output_at(first(residue) + there.start as i64, residue));
        let phase = |&residue: &usize| axis.phases.iter().position(|phase| phase.residue == residue);
        Residues {
            begin: outputs.min().unwrap_or(0),
            phases: residues.iter().map(phase).collect(),
            turns: Turns { there },
        }
    }
}

impl Stretches {
    /// As long as possible, given the outputs of the axes of a row.
    fn of(turns: &[Turns], axes: &[EngineAxis<'_>]) -> Self {
        let last = axes.len() - 1;
        // Outputs of an axis follow each other if all those of faster ones are there.
        let is_whole = |axis: &usize| turns[*axis].outputs() == axes[*axis].output;
        let slowest = (1..=last).rev().take_while(is_whole).last().map_or(last, |axis| axis - 1);
        let mut offsets = vec![0];
        for (turns, axis) in turns[..slowest].iter().zip(axes) {
            let along = |offset: &isize| {
                let offset = *offset;
                (0..turns.outputs() as isize).map(move |output| offset + output * axis.y_stride)
            };
            offsets = offsets.iter().flat_map(along).collect();
        }
        Stretches { len: outputs_of(&turns[slowest..]).max(1), offsets }
    }
}

impl Sums {
    /// Where they lie, given where those of the position do.
    pub(super) fn of(self, place: isize) -> isize {
        match self {
            Sums::OfPosition(distance) => place + distance,
            Sums::OfNone(place) => place,
        }
    }
}

/// Outputs of a row.
pub(super) fn outputs_of(turns: &[Turns]) -> usize {
    turns.iter().map(Turns::outputs).product()
}
