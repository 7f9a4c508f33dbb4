//! Storing sums of phases that share panels into channels-first outputs: per channel, runs of positions with the
//! phases of the last axis in turns.

use outstride_kernels::Real;
use outstride_spec::Phase;

use super::super::axis::Span;
use super::super::channels::position_strides;
use super::super::panels::Segment;
use super::super::problem::Problem;
use super::bundle::Member;
use super::panels_of;
use super::planes::{TurnedRows, TurnedWrite};
use super::run::Site;
use super::sums::PanelGroup;

/// Stores some panels of a member by `write`, as long as it can. Returns whether it could.
pub(super) fn store_shared_planes<T: Real>(
    site: &Site<'_, T>,
    order: &[usize],
    panels: &PanelGroup<'_, T>,
    sums: &[T],
    write: &impl TurnedWrite<T>,
) -> bool {
    let Site { problem, group, bundle, spans, positions } = *site;
    let member = &bundle.members[0];
    let filter = problem.filter;
    let (strides, _) = position_strides(spans, order);
    let last = spans.len() - 1;
    let rows: usize = spans[..last].iter().map(|span| span.count).product();
    let mut distances = Vec::new();
    for panel in 0..panels.panels() {
        let prepared = panels.panel(panel, 0);
        let sums = sums[panels.place(panel, 0, 0)..].as_ptr();
        let places = positions.places(panels.tile_len(), prepared.width());
        // Phases of the last axis are fastest.
        for phases in panels_of(filter).segments(prepared.panel).chunks(filter.phases[last - 1].len()) {
            let turns = Turns::new(problem, member, phases, spans[last]);
            let channel = problem.y_channel(group, phases[0].first_channel);
            let residues = filter.phase(phases[0].phase);
            for row in 0..rows {
                let Some((first, target)) = row_at(problem, member, spans, &strides, &residues, row) else {
                    continue;
                };
                distances.clear();
                let place =
                    |&(position, column): &(usize, isize)| places[first + position * strides[last]] + column;
                distances.extend(turns.outputs.iter().map(place));
                let (first, columns) = (channel + target + turns.begin, 0..phases[0].channels);
                let rows = TurnedRows { prepared, sums, distances: &distances, columns, first };
                // SAFETY: every distance is the place of a row among the panel's sums and a phase's columns within it. Each
                // output belongs to one position of one phase, and each task has its own positions and panels.
                if !unsafe { write.write(rows) } {
                    return false;
                }
            }
        }
    }
    true
}

/// The number of a row's first position, and where its outputs of channel 0 begin; none if they are outside the output.
fn row_at<T: Real>(
    problem: &Problem<'_, T>,
    member: &Member,
    spans: &[Span],
    strides: &[usize],
    phases: &[&Phase],
    mut row: usize,
) -> Option<(usize, isize)> {
    let (mut first, mut target) = (0, 0isize);
    for axis in (0..spans.len() - 1).rev() {
        let index = row % spans[axis].count;
        row /= spans[axis].count;
        first += index * strides[axis];
        let of = &problem.axes[axis];
        let residue = if axis == 0 { 0 } else { phases[axis - 1].residue };
        let output = of.output_at(member.spans[axis].first + spans[axis].first + index as i64, residue);
        if output < 0 || output >= of.output as i64 {
            return None;
        }
        target += output as isize * of.y_stride;
    }
    Some((first, target))
}

/// The outputs of a row, the same for all rows.
struct Turns {
    /// The first of them.
    begin: isize,
    /// Of each, the position and the first column of the phase.
    outputs: Vec<(usize, isize)>,
}

impl Turns {
    fn new<T: Real>(problem: &Problem<'_, T>, member: &Member, phases: &[Segment], along: Span) -> Self {
        let last = problem.axes.len() - 1;
        let of = &problem.axes[last];
        let mut begin = None;
        let mut outputs = Vec::with_capacity(along.count * phases.len());
        for position in 0..along.count {
            let q = member.spans[last].first + along.first + position as i64;
            for (phase, segment) in of.phases.iter().zip(phases) {
                let output = of.output_at(q, phase.residue);
                if 0 <= output && output < of.output as i64 {
                    begin.get_or_insert(output);
                    outputs.push((position, segment.column as isize));
                }
            }
        }
        Turns { begin: begin.unwrap_or(0) as isize, outputs }
    }
}
