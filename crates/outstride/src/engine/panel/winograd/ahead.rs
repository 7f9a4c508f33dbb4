//! What is fetched while a point is multiplied.

use std::iter::StepBy;
use std::ops::Range;
use std::slice::Chunks;

use outstride_kernels::{Fetch, Real, fetched_by_tap, lines_fetched_by_tap};

use super::super::super::pack::PackedFilter;
use crate::aligned::LINE;

/// The weights of the next point, as far as they go, and then its inputs.
pub(super) struct Ahead<'a, T> {
    /// The lines of the weights of a panel, as many at a time as kernels fetch.
    lines: StepBy<Range<usize>>,
    points: Chunks<'a, T>,
}

impl<'a, T: Real> Ahead<'a, T> {
    /// For so many panels, whose next weights are known or not.
    pub(super) fn new(filter: &PackedFilter<T>, panels: usize, is_known: bool, points: &'a [T]) -> Self {
        let channels = filter.in_channels;
        let width = 2 * filter.kernels.lanes();
        let lines = if is_known { (channels * width * size_of::<T>()).div_ceil(LINE) } else { 0 };
        Ahead {
            lines: (0..lines).step_by(lines_fetched_by_tap(channels).max(1)),
            points: points.chunks((fetched_by_tap::<T>(channels) * panels).max(1)),
        }
    }

    /// What to fetch while the next rows are multiplied.
    pub(super) fn next(&mut self) -> Fetch<T> {
        self.lines.next().map_or_else(
            || {
                let points = self.points.next().unwrap_or_default();
                Fetch::Inputs(points.as_ptr(), points.len())
            },
            Fetch::Weights,
        )
    }
}
