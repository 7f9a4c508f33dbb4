//! Storing sums into channels-first outputs: sums hold one value per channel and position, whereas memory wants runs of
//! positions per channel, those of all phases of the last axis in turns.

use std::ops::Range;

use outstride_kernels::Real;

use super::super::axis::Span;
use super::super::channels::position_strides;
use super::super::problem::Problem;
use super::bundle::Bundle;
use super::panels_of;
use super::rows::Positions;
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

/// The outputs of a task as runs along the last axis, as far as they are the same for all bundles: each has all phases of
/// that axis.
pub(super) struct Stretches {
    spans: Vec<Span>,
    /// Per stretch, the number of its first position.
    firsts: Vec<usize>,
    /// Between positions of a stretch.
    number_stride: usize,
    /// By rising output within a position: the member, and how many positions of a stretch it has.
    members: Vec<(usize, usize)>,
    /// Per stretch and output, where its sum of column 0 lies within a panel's sums.
    distances: Vec<isize>,
    /// Columns of the panel that the distances are for.
    width: usize,
}

impl Stretches {
    /// Of the positions `spans`, numbered in `order`.
    pub(super) fn new<T: Real>(
        problem: &Problem<'_, T>,
        bundle: &Bundle,
        spans: &[Span],
        order: &[usize],
    ) -> Self {
        let last = spans.len() - 1;
        let (number_strides, _) = position_strides(spans, order);
        let rows: usize = spans[..last].iter().map(|span| span.count).product();
        let first = |mut row: usize| {
            let mut number = 0;
            for axis in (0..last).rev() {
                number += row % spans[axis].count * number_strides[axis];
                row /= spans[axis].count;
            }
            number
        };
        // By rising output within a position.
        let mut members: Vec<usize> = (0..bundle.members.len()).collect();
        members.sort_by_key(|&member| bundle.members[member].first_output(last, &problem.axes[last]));
        let there = |member: usize| {
            let left = bundle.members[member].spans[last].count as i64 - spans[last].first;
            (member, left.clamp(0, spans[last].count as i64) as usize)
        };
        Stretches {
            spans: spans.to_vec(),
            firsts: (0..rows).map(first).collect(),
            number_stride: number_strides[last],
            members: members.into_iter().map(there).collect(),
            distances: Vec::new(),
            width: 0,
        }
    }

    /// The most bytes that they take at so many positions of so many members, with what they are found by.
    pub(super) fn most_bytes(positions: usize, members: usize) -> usize {
        // A first position, a place, and a distance for each member.
        positions * (2 + members) * size_of::<usize>()
    }

    /// Stores the sums of all panels of a group by `write`, as long as it can. Returns whether it could.
    pub(super) fn store<T: Real>(
        &mut self,
        site: &Site<'_, T>,
        panels: &PanelGroup<'_, T>,
        sums: &[T],
        write: &impl TurnedWrite<T>,
    ) -> bool {
        let Site { problem, group, bundle, positions, .. } = *site;
        let filter = problem.filter;
        let len: usize = self.members.iter().map(|&(_, count)| count).sum();
        for panel in 0..panels.panels() {
            let prepared = panels.panel(panel, 0);
            let at = panels.place(panel, 0, 0);
            self.lay_out(positions, panels, prepared.width());
            for (row, distances) in self.distances.chunks_exact(len.max(1)).enumerate() {
                let target = self.target(problem, bundle, row);
                for segment in panels_of(filter).segments(prepared.panel) {
                    let columns = segment.column..segment.column + segment.channels;
                    let first = problem.y_channel(group, segment.first_channel) + target;
                    let rows = TurnedRows { prepared, sums: sums[at..].as_ptr(), distances, columns, first };
                    // SAFETY: every distance is the place of a row among the panel's sums, and a row has the panel's
                    // columns. Each output belongs to one position of one phase, and each task has its own positions
                    // and panels.
                    if !unsafe { write.write(rows) } {
                        return false;
                    }
                }
            }
        }
        true
    }

    /// Where channel 0 of a stretch goes.
    fn target<T: Real>(&self, problem: &Problem<'_, T>, bundle: &Bundle, mut row: usize) -> isize {
        let last = self.spans.len() - 1;
        let mut target = (self.spans[last].first * problem.axes[last].stride) as isize;
        for (axis, of) in problem.axes[..last].iter().enumerate().rev() {
            let span = &self.spans[axis];
            let index = span.first + (row % span.count) as i64;
            row /= span.count;
            let output = bundle.members[0].first_output(axis, of) + index * of.stride;
            target += output as isize * of.y_stride;
        }
        target
    }

    /// Finds the distances for panels of so many columns.
    fn lay_out<T: Real>(&mut self, positions: &Positions, panels: &PanelGroup<'_, T>, width: usize) {
        if self.width == width {
            return;
        }
        self.width = width;
        let places = positions.places(panels.tile_len(), width);
        let member = |&(member, count): &(usize, usize)| (panels.place(0, member, 0) as isize, count);
        let members: Vec<(isize, usize)> = self.members.iter().map(member).collect();
        let count = self.spans[self.spans.len() - 1].count;
        // Positions that all members have; behind them, only some do.
        let of_all = members.iter().map(|&(_, count)| count).min().unwrap_or(0);
        self.distances.clear();
        self.distances
            .reserve_exact(self.firsts.len() * members.iter().map(|&(_, count)| count).sum::<usize>());
        for &first in &self.firsts {
            let places = places[first..].iter().step_by(self.number_stride).take(count);
            for &place in places.clone().take(of_all) {
                self.distances.extend(members.iter().map(|&(member, _)| member + place));
            }
            for (position, &place) in places.enumerate().skip(of_all) {
                let there = members.iter().filter(|&&(_, count)| position < count);
                self.distances.extend(there.map(|&(member, _)| member + place));
            }
        }
    }
}
