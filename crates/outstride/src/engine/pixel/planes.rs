//! A box of the input with zeros around it, channel by channel: positions are a flat run, and every tap reads it at a fixed
//! distance.

use outstride_kernels::{Real, Runs};

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
        self.most_rows() * size_of::<Rows>() + self.pitch() * size_of::<isize>()
    }

    /// How many [`Rows`] there are at most: of neighbours, those before the input, inside it and behind it.
    fn most_rows(&self) -> usize {
        let [outer @ .., neighbours, _] = &self.spans[..] else { return 1 };
        outer.iter().map(|span| span.count).product::<usize>().saturating_mul(neighbours.count.min(3))
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
        if self.spans.iter().any(|span| span.count == 0) {
            return;
        }
        let last = &problem.axes[problem.axes.len() - 1];
        if problem.x_channel_stride == 1 && last.x_stride != 1 {
            self.copy_turned(problem, x, count, target);
        } else {
            self.copy_runs(problem, x, count, target);
        }
    }

    /// Elements of a row before the input, inside it and behind it.
    fn around<T: Real>(&self, problem: &Problem<'_, T>) -> (usize, usize, usize) {
        let along = self.spans[self.spans.len() - 1];
        let inside = along.intersect(&problem.axes[self.spans.len() - 1].whole_input());
        let before = ((inside.first - along.first).max(0) as usize).min(along.count);
        (before, inside.count, along.count - before - inside.count)
    }

    /// The rows of a plane: where their first elements lie, for those that have any, in runs of rows as far from each other.
    fn rows<T: Real>(&self, problem: &Problem<'_, T>) -> Vec<Rows> {
        let rows: usize = self.spans[..self.spans.len() - 1].iter().map(|span| span.count).product();
        let mut all: Vec<Rows> = Vec::with_capacity(self.most_rows());
        for row in 0..rows {
            let from = row_of_input(&problem.axes, &self.spans, row);
            if !all.last_mut().is_some_and(|last| last.take(from)) {
                all.push(Rows { first: row, count: 1, from, step: 0 });
            }
        }
        all
    }

    /// From rows whose positions lie side by side, or are single ones.
    fn copy_runs<T: Real>(&self, problem: &Problem<'_, T>, x: usize, count: usize, target: &mut [T]) {
        let (before, inside, behind) = self.around(problem);
        let (rows, pitch) = (self.rows(problem), self.pitch());
        let there: usize = rows.iter().filter(|rows| rows.from.is_some()).map(|rows| rows.count).sum();
        // The hardware looks ahead within a page. Where another channel is another page, it cannot.
        let are_small = there * inside * size_of::<T>() <= 2 * PAGE_BYTES;
        // Channel by channel, as they lie in memory that may have to be fetched from far away.
        for (channel, plane) in target.chunks_mut(self.stride).take(count).enumerate() {
            let x = x as isize + channel as isize * problem.x_channel_stride;
            let ahead = (are_small && channel + 1 < count).then_some(problem.x_channel_stride);
            for rows in &rows {
                let plane = &mut plane[rows.first * pitch..][..rows.count * pitch];
                match rows.from {
                    Some(from) => {
                        let zeros = [before, behind];
                        let runs = Runs { count: rows.count, len: inside, step: rows.step, zeros, ahead };
                        problem.x.read_runs(x + from, &runs, plane);
                    }
                    None => plane.fill(T::default()),
                }
            }
        }
    }

    /// From positions whose channels lie side by side.
    fn copy_turned<T: Real>(&self, problem: &Problem<'_, T>, x: usize, count: usize, target: &mut [T]) {
        let (before, inside, behind) = self.around(problem);
        let pitch = self.pitch();
        let last = &problem.axes[problem.axes.len() - 1];
        let distances: Vec<isize> = (0..inside as isize).map(|position| position * last.x_stride).collect();
        for rows in self.rows(problem) {
            for row in 0..rows.count {
                let first = (rows.first + row) * pitch;
                let zeros = if rows.from.is_some() { [before, behind] } else { [pitch, 0] };
                if zeros != [0; 2] {
                    for plane in target.chunks_mut(self.stride).take(count) {
                        plane[first..first + zeros[0]].fill(T::default());
                        plane[first + pitch - zeros[1]..first + pitch].fill(T::default());
                    }
                }
                if let Some(from) = rows.from {
                    let (from, target) = (x as isize + from, &mut target[first + before..]);
                    let from = from + row as isize * rows.step;
                    problem.x.read_transposed(from, &distances, count, target, self.stride);
                }
            }
        }
    }
}

/// Neighbouring rows of a plane.
struct Rows {
    first: usize,
    count: usize,
    /// From the input of index 0 to the first one of the first row; none if they are all around the input.
    from: Option<isize>,
    /// From row to row.
    step: isize,
}

impl Rows {
    /// Takes in the next row, if it lies as far behind the last one as the others from each other.
    fn take(&mut self, row: Option<isize>) -> bool {
        match (self.from, row) {
            (Some(first), Some(row)) => {
                let step = row - first - (self.count as isize - 1) * self.step;
                if self.count > 1 && step != self.step {
                    return false;
                }
                self.step = step;
            }
            (None, None) => {}
            _ => return false,
        }
        self.count += 1;
        true
    }
}
