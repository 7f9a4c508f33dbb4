//! A box of the input with zeros around it, channel by channel: positions are a flat run, and every tap reads it at a fixed
//! distance.

use outstride_kernels::Real;

use super::super::axis::Span;
use super::super::channels::position_strides;
use super::super::problem::Problem;

/// The indices of a box, those around the input included, and how they lie in a plane.
#[derive(Clone, Debug)]
pub(super) struct Planes {
    spans: Vec<Span>,
    /// Per axis, the distance between positions; 1 for the last.
    strides: Vec<usize>,
    /// From channel to channel: an odd number of cache lines, so that the channels of one position do not all fall into the
    /// same set of a cache.
    pub(super) stride: usize,
}

impl Planes {
    pub(super) fn new(spans: Vec<Span>) -> Self {
        const LINE: usize = 16;
        let (strides, positions) = position_strides(&spans, &Vec::from_iter(0..spans.len()));
        Planes { spans, strides, stride: (positions.div_ceil(LINE) | 1) * LINE }
    }

    /// From row to row.
    pub(super) fn pitch(&self) -> usize {
        self.spans.last().map_or(0, |span| span.count)
    }

    /// Elements of so many planes, if kernels may read so many behind the last.
    pub(super) fn len(&self, count: usize, beyond: usize) -> usize {
        self.stride.saturating_mul(count).saturating_add(beyond)
    }

    /// From the first element of a plane to a position, which need not be there.
    pub(super) fn place(&self, q: impl Iterator<Item = i64>) -> isize {
        let of_axis = |((span, &stride), q): ((&Span, &usize), i64)| {
            (q.wrapping_sub(span.first) as isize).wrapping_mul(stride as isize)
        };
        self.spans.iter().zip(&self.strides).zip(q).map(of_axis).fold(0, isize::wrapping_add)
    }

    /// From a position to the one so many before it.
    pub(super) fn distance(&self, deltas: impl Iterator<Item = usize>) -> isize {
        -self.strides.iter().zip(deltas).map(|(&stride, delta)| (stride * delta) as isize).sum::<isize>()
    }

    /// Copies planes from where the first one's position of index 0 lies in the input.
    pub(super) fn copy<T: Real>(&self, problem: &Problem<'_, T>, x: usize, count: usize, target: &mut [T]) {
        let Some((along, outer)) = self.spans.split_last() else { return };
        if self.spans.iter().any(|span| span.count == 0) {
            return;
        }
        let (last, axes) = problem.axes.split_last().expect("there is a batch");
        let inside = along.intersect(&Span { first: 0, count: last.input });
        let before = ((inside.first - along.first).max(0) as usize).min(along.count);
        let rows: usize = outer.iter().map(|span| span.count).product();
        let row_at = |row: usize| {
            let mut rest = row;
            let mut exists = inside.count > 0;
            let mut from = if exists { inside.first as isize * last.x_stride } else { 0 };
            for (axis, span) in axes.iter().zip(outer).rev() {
                let index = span.first + (rest % span.count) as i64;
                rest /= span.count;
                // What lies around the input may be farther away than can be told.
                match 0 <= index && index < axis.input as i64 {
                    true => from += index as isize * axis.x_stride,
                    false => exists = false,
                }
            }
            exists.then_some(from)
        };
        let rows: Vec<Option<isize>> = (0..rows).map(row_at).collect();
        if problem.x_channel_stride == 1 && last.x_stride != 1 {
            let positions = 0..inside.count as isize;
            let distances: Vec<isize> = positions.map(|position| position * last.x_stride).collect();
            for (row, from) in rows.iter().enumerate() {
                let first = row * along.count;
                for plane in target.chunks_mut(self.stride).take(count) {
                    let row = &mut plane[first..first + along.count];
                    let there = if from.is_some() { inside.count } else { 0 };
                    row[..before].fill(T::default());
                    row[before + there..].fill(T::default());
                }
                if let Some(from) = from {
                    let (first, target) = (x as isize + from, &mut target[first + before..]);
                    problem.x.read_transposed(first, &distances, count, target, self.stride);
                }
            }
            return;
        }
        // Channel by channel, as they lie in memory that may have to be fetched from far away.
        for (channel, plane) in target.chunks_mut(self.stride).take(count).enumerate() {
            let x = x as isize + channel as isize * problem.x_channel_stride;
            for (row, target) in rows.iter().zip(plane.chunks_exact_mut(along.count)) {
                let Some(from) = row else {
                    target.fill(T::default());
                    continue;
                };
                let (zeros, rest) = target.split_at_mut(before);
                let (values, behind) = rest.split_at_mut(inside.count);
                zeros.fill(T::default());
                behind.fill(T::default());
                if last.x_stride == 1 {
                    problem.x.read_run(x + from, values);
                } else {
                    for (position, value) in values.iter_mut().enumerate() {
                        *value = problem.x.get((x + from + position as isize * last.x_stride) as usize);
                    }
                }
            }
        }
    }
}
