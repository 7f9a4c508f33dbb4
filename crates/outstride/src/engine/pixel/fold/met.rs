//! The kernel elements that meet inputs at a position.

use outstride_spec::Phase;

use super::super::super::axis::Span;

/// A position, and where it looks for inputs.
pub(super) struct Met<'a, P> {
    /// The phases of the first spatial axes, and the sizes of the kernel.
    pub(super) phases: &'a [&'a Phase],
    pub(super) kernel: &'a [usize],
    /// Per axis, the position, and the inputs that there are.
    pub(super) q: &'a [i64],
    pub(super) inside: &'a [Span],
    /// How far an index of an axis is from the beginning.
    pub(super) place: P,
}

impl<P: Fn(usize, i64) -> isize> Met<'_, P> {
    /// Calls with the number of every kernel element, among those of these axes, that meets an input, and with the input's place.
    pub(super) fn each(&self, visit: &mut impl FnMut(usize, isize)) {
        self.along(1, 0, (self.place)(0, self.q[0]), visit);
    }

    /// The same from an axis on, given the element and the place so far.
    fn along(&self, axis: usize, element: usize, place: isize, visit: &mut impl FnMut(usize, isize)) {
        let Some(phase) = self.phases.get(axis - 1) else {
            visit(element, place);
            return;
        };
        let inside = self.inside[axis];
        for tap in &phase.taps {
            let index = self.q[axis] - tap.delta as i64;
            if (inside.first..inside.end()).contains(&index) {
                let element = element * self.kernel[axis - 1] + tap.kernel;
                self.along(axis + 1, element, place + (self.place)(axis, index), visit);
            }
        }
    }
}
