//! A box of the input with zeros around it, channel by channel: positions are a flat run, and every tap reads it at a fixed
//! distance.

use outstride_kernels::Real;

use super::super::axis::Span;
use super::super::channels::{position_strides, row_of_input};
use super::super::problem::Problem;

/// Memory within which the hardware looks ahead.
const PAGE_BYTES: usize = 1 << 12;

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

    /// Bytes of the lists of rows and of positions in a row that planes are copied by.
    pub(super) fn bytes_of_lists(&self) -> usize {
        let Some((along, outer)) = self.spans.split_last() else { return 0 };
        let rows: usize = outer.iter().map(|span| span.count).product();
        rows * size_of::<Option<isize>>() + along.count * size_of::<isize>()
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
        let last = &problem.axes[problem.axes.len() - 1];
        let inside = along.intersect(&last.whole_input());
        let before = ((inside.first - along.first).max(0) as usize).min(along.count);
        let rows: usize = outer.iter().map(|span| span.count).product();
        let rows: Vec<Option<isize>> =
            (0..rows).map(|row| row_of_input(&problem.axes, &self.spans, row)).collect();
        // Makes zeros of what is not inside, which is the rest of the row.
        let clear_around = |row: &mut [T], exists: bool| {
            let there = if exists { inside.count } else { 0 };
            row[..before].fill(T::default());
            row[before + there..].fill(T::default());
        };
        if problem.x_channel_stride == 1 && last.x_stride != 1 {
            let positions = 0..inside.count as isize;
            let distances: Vec<isize> = positions.map(|position| position * last.x_stride).collect();
            for (row, from) in rows.iter().enumerate() {
                let first = row * along.count;
                for plane in target.chunks_mut(self.stride).take(count) {
                    clear_around(&mut plane[first..first + along.count], from.is_some());
                }
                if let Some(from) = from {
                    let (first, target) = (x as isize + from, &mut target[first + before..]);
                    problem.x.read_transposed(first, &distances, count, target, self.stride);
                }
            }
            return;
        }
        // The hardware looks ahead within a page. Where another channel is another page, it cannot.
        let are_small = rows.len() * inside.count * size_of::<T>() <= 2 * PAGE_BYTES;
        // Channel by channel, as they lie in memory that may have to be fetched from far away. Positions are neighbours, or
        // there is but one.
        for (channel, plane) in target.chunks_mut(self.stride).take(count).enumerate() {
            let x = x as isize + channel as isize * problem.x_channel_stride;
            let coming =
                (are_small && channel + 1 < count).then_some(x.wrapping_add(problem.x_channel_stride));
            for (from, row) in rows.iter().zip(plane.chunks_exact_mut(along.count)) {
                clear_around(row, from.is_some());
                if let Some(from) = from {
                    if let Some(coming) = coming {
                        problem.x.fetch_run(coming.wrapping_add(*from), inside.count);
                    }
                    problem.x.read_run(x + from, &mut row[before..before + inside.count]);
                }
            }
        }
    }
}
