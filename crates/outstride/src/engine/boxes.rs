//! Cutting the space of positions into boxes: the unit of work of a task, small enough for its input to stay in cache.

use super::axis::Span;

/// A grid of boxes over a space of positions.
#[derive(Clone, Debug)]
pub(crate) struct Boxes {
    space: Vec<Span>,
    /// Positions per box, along each axis.
    chunk: Vec<usize>,
    /// The axes, those first along which boxes are cut first.
    order: Vec<usize>,
}

/// Rows of positions are not cut to less than this before other axes are.
const SHORT_ROW: usize = 64;

/// Boxes cut along an axis of fewer positions than so many times what they reach read much of what others do.
const WELL_BEYOND_REACH: usize = 16;

/// Whom tasks are made for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Workers {
    pub(crate) threads: usize,
    /// Tasks for each: several let those threads that are less disturbed do more.
    pub(crate) turns: usize,
}

impl Workers {
    pub(crate) const ALONE: Workers = Workers { threads: 1, turns: 1 };

    /// From so many tasks for each on, it matters little that some threads get one more.
    pub(crate) const MOST_TURNS: usize = 4;

    /// How many tasks there should be.
    pub(crate) fn tasks(self) -> usize {
        if self.threads == 1 { 1 } else { self.threads * self.turns }
    }

    /// Into how many parts, but no fewer than `least`, to cut each of some items that are made of so many pieces, for threads to be
    /// done soonest.
    pub(crate) fn parts(self, items: usize, pieces: usize, least: usize) -> usize {
        let parts_for = |tasks: usize| tasks.div_ceil(items.max(1)).clamp(1, pieces.max(1));
        let most = parts_for(self.threads * Self::MOST_TURNS);
        // Pieces that the last thread to be done has computed.
        let longest = |parts: &usize| {
            let tasks_of_last = items.saturating_mul(*parts).div_ceil(self.threads);
            tasks_of_last.saturating_mul(pieces.div_ceil(*parts))
        };
        (parts_for(self.tasks()).max(least)..=most).min_by_key(longest).unwrap_or(least)
    }
}

impl Boxes {
    /// Halves the space until a box `fits` or nothing is left to cut. Along each axis, boxes are multiples of `granules`. Axes along
    /// which positions `reach` no input but their own come first, as no box reads what another one does, then the outermost. Rows
    /// stay whole, unless they are long and the others are short.
    pub(crate) fn cut(
        space: Vec<Span>,
        granules: &[usize],
        reach: &[usize],
        fits: impl Fn(&[usize]) -> bool,
    ) -> Self {
        let mut boxes = Boxes::whole(space);
        let last = boxes.chunk.len() - 1;
        let is_short = |axis: usize| boxes.chunk[axis] < WELL_BEYOND_REACH.saturating_mul(reach[axis]);
        let keeps_rows = boxes.chunk[last] < 2 * SHORT_ROW || !(0..last).any(is_short);
        boxes.order.sort_by_key(|&axis| reach[axis] > 0 || (axis == last && keeps_rows));
        while !fits(&boxes.chunk) {
            let least = |axis: usize, row: usize| granules[axis].max(if axis == last { row } else { 1 });
            let divisible = |row: usize| {
                let mut axes = boxes.order.iter().copied();
                axes.find(|&axis| boxes.chunk[axis] > least(axis, row))
            };
            let Some(axis) = divisible(SHORT_ROW).or_else(|| divisible(1)) else { break };
            boxes.chunk[axis] = boxes.chunk[axis].div_ceil(2).next_multiple_of(granules[axis]);
        }
        boxes
    }

    /// Cuts on, in the same order, until `workers` have enough boxes, of each of some groups, or they are no longer `worthwhile`.
    pub(crate) fn spread(
        mut self,
        granules: &[usize],
        workers: Workers,
        groups: usize,
        worthwhile: impl Fn(&[usize]) -> bool,
    ) -> Self {
        if self.len() == 0 {
            return self;
        }
        for axis in self.order.clone() {
            let granule = granules[axis];
            let pieces = self.space[axis].count.div_ceil(granule);
            let along = self.space[axis].count.div_ceil(self.chunk[axis]);
            let items = (self.len() / along).saturating_mul(groups);
            let most = workers.parts(items, pieces, along);
            for parts in (along + 1..=most).rev() {
                let whole = self.chunk[axis];
                self.chunk[axis] = pieces.div_ceil(parts) * granule;
                if worthwhile(&self.chunk) {
                    break;
                }
                self.chunk[axis] = whole;
            }
        }
        self
    }

    /// The whole space as one box.
    pub(crate) fn whole(space: Vec<Span>) -> Self {
        let order = (0..space.len()).collect();
        Boxes { chunk: space.iter().map(|span| span.count.max(1)).collect(), space, order }
    }

    /// How many boxes there are.
    pub(crate) fn len(&self) -> usize {
        self.space.iter().zip(&self.chunk).map(|(span, &chunk)| span.count.div_ceil(chunk)).product()
    }

    /// How many shapes they have: along each axis, the last one may be shorter.
    pub(crate) fn shapes(&self) -> usize {
        let of_axis = |(span, &chunk): (&Span, &usize)| {
            1 + usize::from(span.count > chunk && !span.count.is_multiple_of(chunk))
        };
        self.space.iter().zip(&self.chunk).map(of_axis).product()
    }

    /// Positions per axis of the first, and so the largest, of the boxes, if there is one.
    pub(crate) fn largest(&self) -> Option<Vec<usize>> {
        (self.len() > 0).then(|| self.get(0).iter().map(|span| span.count).collect())
    }

    /// The positions of one box, the last axis of the grid fastest.
    pub(crate) fn get(&self, mut index: usize) -> Vec<Span> {
        let mut spans: Vec<Span> = self
            .space
            .iter()
            .zip(&self.chunk)
            .rev()
            .map(|(span, &chunk)| {
                let along = span.count.div_ceil(chunk);
                let first = index % along * chunk;
                index /= along;
                Span { first: span.first + first as i64, count: chunk.min(span.count - first) }
            })
            .collect();
        spans.reverse();
        spans
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(lines: usize, threads: usize, turns: usize) -> Vec<usize> {
        let space = vec![Span { first: 0, count: 1 }, Span { first: 0, count: lines }];
        let workers = Workers { threads, turns };
        let boxes = Boxes::whole(space).spread(&[1, 1], workers, 1, |_| true);
        (0..boxes.len()).map(|index| boxes.get(index)[1].count).collect()
    }

    #[test]
    fn threads_get_boxes_of_about_the_same_size() {
        assert_eq!(sizes(57, 1, 1), [57]);
        assert_eq!(sizes(57, 2, 1), [29, 28]);
        assert_eq!(sizes(57, 3, 1), [19, 19, 19]);
        assert_eq!(sizes(56, 2, 4), [7; 8]);
        assert_eq!(sizes(5, 8, 4), [1; 5]);
        for (threads, turns) in [(2, 2), (3, 2), (5, 1), (7, 3), (8, 4)] {
            let boxes = sizes(1000, threads, turns);
            let greatest = boxes.iter().max().unwrap() * boxes.len().div_ceil(threads);
            assert!(greatest * threads <= 1200, "{threads} threads: {boxes:?}");
        }
    }

    #[test]
    fn there_are_no_boxes_of_no_positions() {
        assert_eq!(sizes(0, 1, 1), []);
        assert_eq!(sizes(0, 8, 4), []);
    }

    #[test]
    fn items_are_cut_into_even_parts() {
        assert_eq!(Workers::ALONE.parts(3, 8, 1), 1);
        assert_eq!(Workers { threads: 2, turns: 1 }.parts(1, 8, 1), 2);
        assert_eq!(
            Workers { threads: 2, turns: 3 }.parts(1, 8, 1),
            8,
            "six parts of eight pieces are uneven"
        );
        assert_eq!(Workers { threads: 2, turns: 2 }.parts(8, 8, 1), 1);
        assert_eq!(Workers { threads: 3, turns: 1 }.parts(2, 9, 1), 3);
        assert_eq!(Workers { threads: 8, turns: 4 }.parts(1, 0, 1), 1);
        assert_eq!(Workers { threads: 8, turns: 4 }.parts(1, 5, 1), 5);
    }

    #[test]
    fn boxes_are_not_cut_below_what_is_worthwhile() {
        let space = vec![Span { first: 0, count: 100 }, Span { first: 0, count: 10 }];
        let workers = Workers { threads: 8, turns: 4 };
        let boxes = Boxes::whole(space).spread(&[1, 1], workers, 1, |chunk| chunk[0] * chunk[1] >= 200);
        assert_eq!(boxes.len(), 5);
    }

    #[test]
    fn axes_whose_boxes_share_no_input_are_cut_first() {
        let cut = |counts: [usize; 3], reach: [usize; 3], positions: usize| {
            let space = counts.map(|count| Span { first: 0, count }).to_vec();
            let fits = |chunk: &[usize]| chunk.iter().product::<usize>() <= positions;
            Boxes::cut(space, &[1; 3], &reach, fits).chunk
        };
        assert_eq!(cut([6, 64, 200], [0; 3], 200), [1, 1, 200]);
        assert_eq!(cut([6, 64, 200], [2; 3], 800), [1, 4, 200]);
        assert_eq!(cut([6, 64, 200], [2, 0, 2], 1200), [6, 1, 200]);
        assert_eq!(cut([1, 64, 200], [0, 2, 0], 1600), [1, 8, 200], "rows stay whole");
        assert_eq!(cut([1, 16, 200], [0, 2, 0], 800), [1, 16, 50], "unless others are short");
        assert_eq!(cut([1, 16, 100], [0, 2, 0], 800), [1, 8, 100], "and they are long");
        assert_eq!(cut([6, 16, 200], [0, 2, 0], 1), [1; 3]);
    }

    #[test]
    fn boxes_partition_the_space() {
        let space = vec![Span { first: -2, count: 5 }, Span { first: 3, count: 37 }];
        let boxes = Boxes::cut(space, &[1, 8], &[1, 1], |chunk| chunk.iter().product::<usize>() <= 16);
        let mut seen = vec![0; 5 * 37];
        for index in 0..boxes.len() {
            let spans = boxes.get(index);
            assert!(spans[0].count * spans[1].count <= 16);
            for a in spans[0].first..spans[0].end() {
                for b in spans[1].first..spans[1].end() {
                    seen[((a + 2) * 37 + b - 3) as usize] += 1;
                }
            }
        }
        assert_eq!(seen, vec![1; 5 * 37]);
    }
}
