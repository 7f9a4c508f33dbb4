//! Sums that are not finite.

use outstride_kernels::{PixelTap, Real};

use super::super::axis::Span;
use super::super::problem::Problem;
use super::blocks::Line;
use super::planes::Planes;

/// What a line is computed of at the positions of a chunk.
pub(super) struct Site<'a, T: Real> {
    pub(super) problem: &'a Problem<'a, T>,
    pub(super) group: usize,
    pub(super) line: &'a Line,
    pub(super) spans: &'a [Span],
    pub(super) taps: &'a [PixelTap],
    /// Per tap, its number among those of the line.
    pub(super) numbers: &'a [usize],
    pub(super) planes: &'a Planes,
    /// From the group's first plane on.
    pub(super) input: &'a [T],
}

impl<T: Real> Site<'_, T> {
    /// Sums again, product by product and in the same order, what is not finite, leaving out what is only padding: zeros
    /// around the input multiply to NaN where a weight is infinite or NaN.
    #[cold]
    pub(super) fn sum_again(&self, out: &mut [T], pitch: usize) {
        let last = self.spans.len() - 1;
        let (rows, along) = (self.spans[last - 1], self.spans[last]);
        let mut q: Vec<i64> = self.spans.iter().map(|span| span.first).collect();
        for column in 0..self.line.columns.len() {
            for row in 0..rows.count {
                for position in 0..along.count {
                    q[last - 1] = rows.first + row as i64;
                    q[last] = along.first + position as i64;
                    let sum = &mut out[column * pitch + row * self.planes.pitch() + position];
                    // What is finite stays: its bits must not depend on what shares its chunk.
                    if !sum.is_finite() {
                        *sum = self.sum(column, &q);
                    }
                }
            }
        }
    }

    fn sum(&self, column: usize, q: &[i64]) -> T {
        let filter = self.problem.filter;
        let real: Vec<&PixelTap> = self
            .taps
            .iter()
            .zip(self.numbers)
            .filter(|&(tap, &number)| tap.feeds >> column & 1 == 1 && self.meets(number, q))
            .map(|(tap, _)| tap)
            .collect();
        let place = self.planes.place(q.iter().copied());
        let weights = filter.group_weights(self.group);
        let product = |tap: &PixelTap, channel: usize| {
            let x = (place + tap.input) as usize + channel * self.planes.stride;
            (self.input[x], weights[tap.weights + channel * self.line.weight_stride + column])
        };
        let products =
            (0..filter.in_channels).flat_map(|channel| real.iter().map(move |tap| product(tap, channel)));
        let channel = self.group * filter.out_channels + self.line.columns[column].channel;
        filter.kernels.sum(products, filter.bias[channel])
    }

    /// Whether a tap of the line finds an input at a position.
    fn meets(&self, mut number: usize, q: &[i64]) -> bool {
        self.line.deltas.iter().zip(q).zip(&self.problem.axes).rev().all(|((deltas, q), axis)| {
            let index = q - deltas[number % deltas.len()] as i64;
            number /= deltas.len();
            0 <= index && index < axis.input as i64
        })
    }
}
