//! What is fetched while a point is multiplied.

use std::iter::StepBy;
use std::ops::Range;
use std::slice::Chunks;

use outstride_kernels::{Fetch, Real, fetched_by_tap, lines_fetched_by_tap};

use super::WinogradSums;
use crate::aligned::LINE;

/// The weights of the next point, as far as they go, and then its inputs.
pub(super) struct Ahead<'a, T> {
    /// The lines of the weights of every chain, as many at a time as kernels fetch.
    lines: StepBy<Range<usize>>,
    /// Those that are fetched by the rows in question.
    line: Option<usize>,
    points: Chunks<'a, T>,
}

impl<'a, T: Real> Ahead<'a, T> {
    /// For so many panels, whose next weights are known or not.
    pub(super) fn new(sums: &WinogradSums<'_, T>, panels: usize, is_known: bool, points: &'a [T]) -> Self {
        let chain = sums.chain();
        let width = 2 * sums.site.problem.filter.kernels.lanes();
        let lines = if is_known { (chain * width * size_of::<T>()).div_ceil(LINE) } else { 0 };
        Ahead {
            lines: (0..lines).step_by(lines_fetched_by_tap(chain).max(1)),
            line: None,
            points: points.chunks((fetched_by_tap::<T>(chain) * panels).max(1)),
        }
    }

    /// Goes on to other rows.
    pub(super) fn next_rows(&mut self) {
        self.line = self.lines.next();
    }

    /// What to fetch while the next chain of these rows is multiplied.
    pub(super) fn next_chain(&mut self) -> Fetch<T> {
        self.line.map_or_else(
            || {
                let points = self.points.next().unwrap_or_default();
                Fetch::Inputs(points.as_ptr(), points.len())
            },
            Fetch::Weights,
        )
    }
}
