//! Sums that are not finite.

use outstride_kernels::Real;
use outstride_spec::Phase;

use super::super::super::axis::{EngineAxis, Span};
use super::super::super::problem::Problem;
use super::met::Met;

/// An output channel of a group.
pub(super) struct Site<'a, T: Real> {
    pub(super) problem: &'a Problem<'a, T>,
    pub(super) group: usize,
    pub(super) channel: usize,
}

impl<T: Real> Site<'_, T> {
    /// Sums again, product by product, what is not finite of a row that begins at a position, given the phases of all spatial axes:
    /// only a part of a sum may have been too large.
    #[cold]
    pub(super) fn sum_again(&self, phases: &[&Phase], first: &[i64], row: &mut [T]) {
        let mut q = first.to_vec();
        let last = q.len() - 1;
        for (position, sum) in row.iter_mut().enumerate() {
            // What is finite stays: its bits must not depend on what shares its row.
            if !sum.is_finite() {
                q[last] = first[last] + position as i64;
                *sum = self.sum(phases, &q);
            }
        }
    }

    fn sum(&self, phases: &[&Phase], q: &[i64]) -> T {
        let filter = self.problem.filter;
        let weights = filter.folded();
        let axes = &self.problem.axes;
        let inside: Vec<Span> = axes.iter().map(EngineAxis::whole_input).collect();
        let place = |axis: usize, index: i64| index as isize * axes[axis].x_stride;
        let mut taps = Vec::new();
        Met { phases, kernel: &filter.kernel, q, inside: &inside, place }.each(&mut |element, place| {
            taps.push((element, self.problem.x_group(self.group) as isize + place))
        });
        let product = |&(element, from): &(usize, isize), channel: usize| {
            let x = from + channel as isize * self.problem.x_channel_stride;
            (self.problem.x.get(x as usize), weights.get(self.group, channel, (self.channel, element)))
        };
        let products =
            (0..filter.in_channels).flat_map(|channel| taps.iter().map(move |tap| product(tap, channel)));
        let bias = filter.bias[self.group * filter.out_channels + self.channel];
        filter.kernels.sum(products, bias)
    }
}
