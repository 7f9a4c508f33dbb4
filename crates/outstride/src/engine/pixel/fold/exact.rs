//! Sums that are not finite.

use outstride_kernels::Real;
use outstride_spec::Phase;

use super::super::super::problem::Problem;

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
        let elements: usize = filter.kernel.iter().product();
        let batch = self.problem.x_group(self.group) as isize + q[0] as isize * self.problem.axes[0].x_stride;
        let mut taps = vec![(0, batch)];
        let mut left = elements;
        for (axis, phase) in (1..).zip(phases) {
            let of = &self.problem.axes[axis];
            left /= filter.kernel[axis - 1];
            let met = |&(element, from): &(usize, isize)| {
                let inputs = phase.taps.iter().map(move |tap| (tap.kernel, q[axis] - tap.delta as i64));
                let inside = inputs.filter(|&(_, index)| 0 <= index && index < of.input as i64);
                let product = inside.map(move |(kernel, index)| {
                    (element + kernel * left, from + index as isize * of.x_stride)
                });
                product.collect::<Vec<_>>()
            };
            taps = taps.iter().flat_map(met).collect();
        }
        let product = |&(element, from): &(usize, isize), channel: usize| {
            let x = from + channel as isize * self.problem.x_channel_stride;
            (self.problem.x.get(x as usize), weights.get(self.group, channel, (self.channel, element)))
        };
        let products = (0..filter.in_channels)
            .flat_map(|channel| taps.iter().map(move |tap| product(tap, channel)))
            .collect::<Vec<_>>();
        let bias = filter.bias[self.group * filter.out_channels + self.channel];
        filter.kernels.sum(products.iter().copied(), bias)
    }
}
