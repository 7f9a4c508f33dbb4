//! What the panel path computes and stores together.
//!
//! Positions are counted from the first one of each phase, on every axis: the rows of a tile are then the same for all
//! phases, which only read and write at different distances.

use std::ops::Range;

use outstride_kernels::Real;

use super::super::axis::{EngineAxis, Span, meeting};
use super::super::pack::PackedFilter;
use super::super::panels::Panels;

/// The most phases that are computed together because they read nearly the same.
const MAX_MEMBERS: usize = 16;

/// Members whose outputs are stored together.
#[derive(Debug)]
pub(super) struct Bundle {
    pub(super) members: Vec<Member>,
    /// Per axis, the batch included, the positions of the longest member, and of what no tap reaches between members of a row.
    pub(super) counts: Vec<usize>,
    /// The innermost axes whose outputs are stored as rows; none if they are stored position by position.
    pub(super) row_axes: usize,
}

/// Panels that read the same inputs: those of one phase, of several that share panels, or of several that read the same.
#[derive(Debug)]
pub(super) struct Member {
    /// Per axis, the batch included, its positions.
    pub(super) spans: Vec<Span>,
    /// Per axis, the deltas of its taps.
    pub(super) deltas: Vec<Vec<usize>>,
    /// Taps that meet the input at some position.
    met_taps: usize,
    pub(super) panels: Range<usize>,
    /// Per axis, the residue of its first phase; 0 where several share the panels.
    pub(super) residues: Vec<usize>,
    /// Whether several phases share the panels, so that not every position has outputs in each.
    pub(super) shared: bool,
}

impl Member {
    pub(super) fn taps(&self) -> usize {
        self.deltas.iter().map(Vec::len).product()
    }

    /// The indices of an axis at which the outputs of all its phases lie inside the output.
    pub(super) fn inside(&self, axis: usize, of: &EngineAxis<'_>) -> Span {
        let before = of.output_at(self.spans[axis].first, self.residues[axis]);
        let first = -before.div_euclid(of.stride);
        let end = (of.output as i64 - before).div_euclid(of.stride);
        Span { first, count: (end - first).max(0) as usize }
    }
}

impl Bundle {
    /// Taps of the member that has most.
    pub(super) fn most_taps(&self) -> usize {
        self.members.iter().map(Member::taps).max().unwrap_or(1)
    }

    /// The same of taps that meet the input at some position: on the smallest maps, most do not.
    pub(super) fn most_met_taps(&self) -> usize {
        self.members.iter().map(|member| member.met_taps).max().unwrap_or(1)
    }

    /// Panels of every member. Those of different members, one by one, hold the same channels.
    pub(super) fn panels(&self) -> usize {
        self.members[0].panels.len()
    }

    /// The same of all members together.
    pub(super) fn jobs(&self) -> usize {
        self.members.len() * self.panels()
    }

    fn new(members: Vec<Member>) -> Self {
        let longest = |axis: usize| members.iter().map(|member| member.spans[axis].count).max().unwrap_or(0);
        Bundle { counts: (0..members[0].spans.len()).map(longest).collect(), members, row_axes: 0 }
    }

    /// Of members that have all outputs of the innermost axes together.
    fn of_rows(members: Vec<Member>, axes: &[EngineAxis<'_>], row_axes: usize) -> Self {
        let mut bundle = Bundle { row_axes, ..Bundle::new(members) };
        let first = axes.len() - row_axes;
        for (count, axis) in bundle.counts[first..].iter_mut().zip(&axes[first..]) {
            *count = axis.residues().map(|residue| axis.span(residue).count).fold(*count, usize::max);
        }
        bundle
    }
}

/// Bundles of all phases of the innermost axes, whose outputs lie in turns: members of one phase each, or one whose panels have them
/// all.
pub(super) fn of_rows<T: Real>(
    axes: &[EngineAxis<'_>],
    filter: &PackedFilter<T>,
    panels: &Panels,
    row_axes: usize,
) -> Vec<Bundle> {
    let phases = || axes[axes.len() - row_axes..].iter().map(|axis| axis.phases.len()).product();
    let together = if panels.share_phases() { 1 } else { phases() };
    let mut members = members(axes, filter, panels, row_axes).into_iter().peekable();
    let mut bundles = Vec::new();
    while members.peek().is_some() {
        bundles.push(Bundle::of_rows(members.by_ref().take(together).collect(), axes, row_axes));
    }
    bundles
}

/// Bundles of phases that have the same positions, and so read the same inputs.
pub(super) fn of_same_positions<T: Real>(
    axes: &[EngineAxis<'_>],
    filter: &PackedFilter<T>,
    panels: &Panels,
) -> Vec<Bundle> {
    bundled(members(axes, filter, panels, 0), panels, |one, other| one.spans == other.spans)
}

/// Bundles of phases that have as many positions, and so read nearly the same inputs.
pub(super) fn of_same_counts<T: Real>(
    axes: &[EngineAxis<'_>],
    filter: &PackedFilter<T>,
    panels: &Panels,
) -> Vec<Bundle> {
    bundled(members(axes, filter, panels, 0), panels, |one, other| {
        one.spans.iter().zip(&other.spans).all(|(one, other)| one.count == other.count)
    })
}

/// Bundles of members that belong together, with panels as wide.
fn bundled(
    members: Vec<Member>,
    panels: &Panels,
    together: impl Fn(&Member, &Member) -> bool,
) -> Vec<Bundle> {
    let widths = |member: &Member| panels.panels[member.panels.clone()].iter().map(|panel| panel.vectors);
    let mut bundles: Vec<Vec<Member>> = Vec::new();
    for member in members {
        let same = |bundle: &&mut Vec<Member>| {
            let first = &bundle[0];
            bundle.len() < MAX_MEMBERS && widths(first).eq(widths(&member)) && together(first, &member)
        };
        match bundles.iter_mut().find(same) {
            Some(bundle) => bundle.push(member),
            None => bundles.push(vec![member]),
        }
    }
    bundles.into_iter().map(Bundle::new).collect()
}

/// Members that read the same as one, each by itself: whatever is found out for a tile then serves all their panels, and what these
/// write lies side by side.
pub(super) fn reading_the_same<T: Real>(
    axes: &[EngineAxis<'_>],
    filter: &PackedFilter<T>,
    panels: &Panels,
) -> Vec<Bundle> {
    let mut joined: Vec<Member> = Vec::new();
    for member in members(axes, filter, panels, 0) {
        let same = |before: &&mut Member| {
            !before.shared && !member.shared && before.spans == member.spans && before.deltas == member.deltas
        };
        match joined.last_mut().filter(same) {
            Some(before) => before.panels.end = member.panels.end,
            None => joined.push(member),
        }
    }
    joined.into_iter().map(|member| Bundle::new(vec![member])).collect()
}

/// How many of the taps of some deltas meet the input at positions `spans`.
fn met_taps(axes: &[EngineAxis<'_>], spans: &[Span], deltas: &[Vec<usize>]) -> usize {
    let of_axis = |((axis, span), deltas): ((&EngineAxis<'_>, &Span), &Vec<usize>)| {
        meeting(deltas, *span, axis.whole_input()).len()
    };
    axes.iter().zip(spans).zip(deltas).map(of_axis).product()
}

/// All members. Panels that several phases share also have the positions of what no tap reaches between the outputs of the innermost
/// axes, if these are stored as rows.
fn members<T: Real>(
    axes: &[EngineAxis<'_>],
    filter: &PackedFilter<T>,
    panels: &Panels,
    row_axes: usize,
) -> Vec<Member> {
    let first_of_row = axes.len() - row_axes;
    let mut members: Vec<Member> = Vec::new();
    let mut last_phase = None;
    for (index, panel) in panels.panels.iter().enumerate() {
        let segments = panels.segments(panel);
        let shared = segments.windows(2).any(|pair| pair[0].phase != pair[1].phase);
        let phase = segments[0].phase;
        let mut spans = vec![Span { first: 0, count: 0 }; axes.len()];
        spans[0] = axes[0].span(0);
        for segment in segments {
            for (axis, phase) in filter.phase(segment.phase).into_iter().enumerate() {
                let span = axes[axis + 1].span(phase.residue);
                spans[axis + 1] = spans[axis + 1].hull(&span);
            }
        }
        if shared {
            for (span, axis) in spans.iter_mut().zip(axes).skip(first_of_row) {
                *span = axis.hull(axis.residues());
            }
        }
        let deltas: Vec<Vec<usize>> = std::iter::once(vec![0]).chain(panel.deltas.iter().cloned()).collect();
        let same = |member: &&mut Member| match (member.shared, shared) {
            (false, false) => last_phase == Some(phase),
            (true, true) => member.spans == spans && member.deltas == deltas,
            _ => false,
        };
        match members.last_mut().filter(same) {
            Some(member) => member.panels.end = index + 1,
            None => {
                let of_phase = filter.phase(phase);
                let residues = of_phase.iter().map(|phase| if shared { 0 } else { phase.residue });
                members.push(Member {
                    met_taps: met_taps(axes, &spans, &deltas),
                    spans,
                    deltas,
                    panels: index..index + 1,
                    residues: std::iter::once(0).chain(residues).collect(),
                    shared,
                });
            }
        }
        last_phase = Some(phase);
    }
    members
}
