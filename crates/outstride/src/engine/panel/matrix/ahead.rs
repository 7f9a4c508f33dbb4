//! The input of the task that a thread will most likely take next.

use std::cell::Cell;
use std::ops::Range;

use outstride_kernels::{FETCHED_BY_STEP, Real};

use super::super::super::axis::Span;
use super::super::super::problem::Problem;

/// Inputs of more bytes are in no second-level cache when they are read. With fewer, fetching gained nothing or cost a few percent.
const FAR_BYTES: usize = 6 << 20;

/// Memory that is brought near, little by little, while something else is multiplied.
pub(in crate::engine::panel) struct Ahead {
    /// What is left of it, as addresses: it is fetched and never read.
    left: Cell<Range<usize>>,
}

impl Ahead {
    pub(in crate::engine::panel) fn nothing() -> Self {
        Ahead { left: Cell::default() }
    }

    /// Whether an input lies far away, with its channels side by side.
    pub(in crate::engine::panel) fn is_worthwhile<T: Real>(problem: &Problem<'_, T>) -> bool {
        problem.x_channel_stride == 1 && problem.x.bytes() > FAR_BYTES
    }

    /// The indices `needed` of every axis of such an input, if they lie side by side.
    pub(in crate::engine::panel) fn of<T: Real>(
        problem: &Problem<'_, T>,
        group: usize,
        needed: &[Span],
    ) -> Self {
        let channels = problem.filter.in_channels;
        let (mut first, mut elements, mut between) = (problem.x_group(group) as isize, channels, 0);
        for (axis, span) in problem.axes.iter().zip(needed) {
            let span = span.intersect(&axis.whole_input());
            first += span.first as isize * axis.x_stride;
            between += span.count.saturating_sub(1) as isize * axis.x_stride;
            elements = elements.saturating_mul(span.count);
        }
        let len = between.unsigned_abs() + channels;
        // Where boxes do not have whole rows, half of what is fetched may be of others.
        let side_by_side = between >= 0 && len / 2 <= elements;
        let left = if side_by_side { problem.x.addresses(first, len) } else { 0..0 };
        Ahead { left: Cell::new(left) }
    }

    /// What so many steps fetch.
    pub(super) fn take(&self, steps: usize) -> *const u16 {
        let Range { start, end } = self.left.take();
        if start >= end {
            return std::ptr::null();
        }
        self.left.set(start + steps * FETCHED_BY_STEP * size_of::<u16>()..end);
        std::ptr::without_provenance(start)
    }
}
