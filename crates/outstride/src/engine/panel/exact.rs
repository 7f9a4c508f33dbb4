//! Sums made product by product, for the few that kernels cannot be trusted with.

use std::ops::Range;

use outstride_kernels::Real;

use super::super::axis::{Span, meeting};
use super::super::channels::ChannelBlocks;
use super::bundle::Member;
use super::panels_of;
use super::rows::Piece;
use super::run::Site;
use super::sums::Prepared;

/// The sums of one panel.
pub(super) struct Exact<'a, T: Real> {
    pub(super) site: &'a Site<'a, T>,
    pub(super) member: &'a Member,
    pub(super) prepared: &'a Prepared<'a, T>,
}

impl<T: Real> Exact<'_, T> {
    /// Sums again what is not finite among the sums of a piece, one row after the other.
    #[cold]
    pub(super) fn replace_what_is_not_finite(&self, piece: &Piece, sums: &mut [T]) {
        for (row, sums) in sums.chunks_exact_mut(self.prepared.width()).enumerate().take(piece.count) {
            let doubtful: Vec<bool> = sums.iter().map(|sum| !sum.is_finite()).collect();
            if doubtful.contains(&true) {
                self.replace(self.site.positions.index(piece.first + row), sums, &doubtful);
            }
        }
    }

    /// Replaces the doubtful ones of a position's sums, bias included. In the order of the kernels, but leaving out what
    /// is only padding: zeros around the input, and weights that stand in for taps a phase does not have or between joined
    /// groups. Those multiply to NaN where a real value is infinite or NaN.
    #[cold]
    pub(super) fn replace(&self, index: &[i64], sums: &mut [T], doubtful: &[bool]) {
        let filter = self.site.problem.filter;
        let taps = self.taps(index);
        for segment in panels_of(filter).segments(self.prepared.panel) {
            let phase = filter.phase(segment.phase);
            let feeding = taps.iter().filter(|(tap, _)| self.prepared.panel.tap_feeds(*tap, &phase));
            let feeding: Vec<(usize, isize)> = feeding.copied().collect();
            for channel in 0..segment.channels {
                let column = segment.column + channel;
                if doubtful[column] {
                    let channels = filter.channels_of(segment.first_channel + channel);
                    sums[column] = self.sum(&feeding, &channels, column);
                }
            }
        }
    }

    fn sum(&self, taps: &[(usize, isize)], of: &Range<usize>, column: usize) -> T {
        let filter = self.site.problem.filter;
        let product = |tap: usize, offset: isize, channel: usize| {
            let weight = self.prepared.weight(tap * filter.in_channels + channel, column);
            (self.input(offset, channel), weight)
        };
        let products = ChannelBlocks::new(filter.in_channels).iter().flat_map(move |(first, channels)| {
            taps.iter().flat_map(move |&(tap, offset)| {
                let channels = of.start.max(first)..of.end.min(first + channels);
                channels.map(move |channel| product(tap, offset, channel))
            })
        });
        filter.kernels.sum(products, self.prepared.bias[column])
    }

    /// Whether a position reads an input that `wanted` picks.
    pub(super) fn reads(&self, index: &[i64], wanted: impl Fn(T) -> bool) -> bool {
        let channels = self.site.problem.filter.in_channels;
        self.taps(index).iter().any(|&(_, at)| (0..channels).any(|channel| wanted(self.input(at, channel))))
    }

    fn input(&self, offset: isize, channel: usize) -> T {
        self.site.problem.x.get((offset + channel as isize * self.site.problem.x_channel_stride) as usize)
    }

    /// The taps that meet the input at a position, and where they do.
    fn taps(&self, index: &[i64]) -> Vec<(usize, isize)> {
        let mut taps = vec![(0, self.site.problem.x_group(self.site.group) as isize)];
        for (axis, of) in self.site.problem.axes.iter().enumerate() {
            let deltas = &self.member.deltas[axis];
            let q = index[axis] + self.site.spans[axis].first + self.member.spans[axis].first;
            let window = meeting(deltas, Span { first: q, count: 1 }, of.whole_input());
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
