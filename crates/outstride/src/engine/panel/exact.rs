//! Sums made product by product, for the few that kernels cannot be trusted with.

use outstride_kernels::Real;

use super::super::axis::{Span, meeting};
use super::super::channels::ChannelBlocks;
use super::bundle::Member;
use super::panels_of;
use super::run::Site;
use super::sums::Prepared;

/// The sums of one panel.
pub(super) struct Exact<'a, T: Real> {
    pub(super) site: &'a Site<'a, T>,
    pub(super) member: &'a Member,
    pub(super) prepared: &'a Prepared<'a, T>,
}

impl<T: Real> Exact<'_, T> {
    /// Replaces those sums of a position's columns that `doubtful` picks. In the order of the kernels, but leaving out
    /// what is only padding: zeros around the input, and weights that stand in for taps a phase does not have. Those
    /// multiply to NaN where a real value is infinite or NaN.
    #[cold]
    pub(super) fn replace(&self, index: &[i64], sums: &mut [T], doubtful: impl Fn(T) -> bool) {
        let filter = self.site.problem.filter;
        let taps = self.taps(index);
        for segment in panels_of(filter).segments(self.prepared.panel) {
            let phase = filter.phase(segment.phase);
            let feeding = taps.iter().filter(|(tap, _)| self.prepared.panel.tap_feeds(*tap, &phase));
            let feeding: Vec<(usize, isize)> = feeding.copied().collect();
            for column in segment.column..segment.column + segment.channels {
                if doubtful(sums[column]) {
                    sums[column] = self.sum(&feeding, column);
                }
            }
        }
    }

    fn sum(&self, taps: &[(usize, isize)], column: usize) -> T {
        let filter = self.site.problem.filter;
        let mut sum = T::default();
        for (first, channels) in ChannelBlocks::new(filter.in_channels).iter() {
            for &(tap, offset) in taps {
                for channel in first..first + channels {
                    let value = self.input(offset, channel);
                    let weight = self.prepared.weight(tap * filter.in_channels + channel, column);
                    sum = filter.kernels.multiply_add(value, weight, sum);
                }
            }
        }
        sum
    }

    /// Whether a position reads an input that `wanted` picks.
    pub(super) fn reads(&self, index: &[i64], wanted: impl Fn(T) -> bool) -> bool {
        let channels = self.site.problem.filter.in_channels;
        self.taps(index).iter().any(|&(_, at)| (0..channels).any(|channel| wanted(self.input(at, channel))))
    }

    fn input(&self, offset: isize, channel: usize) -> T {
        self.site.problem.x[(offset + channel as isize * self.site.problem.x_channel_stride) as usize]
    }

    /// The taps that meet the input at a position, and where they do.
    fn taps(&self, index: &[i64]) -> Vec<(usize, isize)> {
        let mut taps = vec![(0, self.site.problem.x_group(self.site.group) as isize)];
        for (axis, of) in self.site.problem.axes.iter().enumerate() {
            let deltas = &self.member.deltas[axis];
            let q = index[axis] + self.member.spans[axis].first;
            let window = meeting(deltas, Span { first: q, count: 1 }, Span { first: 0, count: of.input });
            let with = |&(number, offset): &(usize, isize)| {
                window.clone().map(move |tap| {
                    let at = q - deltas[tap] as i64;
                    (number * deltas.len() + tap, offset + at as isize * of.x_stride)
                })
            };
            taps = taps.iter().flat_map(with).collect();
        }
        taps
    }
}
