//! Cutting the space of positions into boxes: the unit of work of a task, small enough for its input to stay in cache.

use super::axis::Span;

/// A grid of boxes over a space of positions.
#[derive(Clone, Debug)]
pub(crate) struct Boxes {
    space: Vec<Span>,
    /// Positions per box, along each axis.
    chunk: Vec<usize>,
}

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
    /// Halves the space along its outermost divisible axis until a box `fits` or nothing is left to cut. Along each axis,
    /// boxes are multiples of `granules`.
    pub(crate) fn cut(space: Vec<Span>, granules: &[usize], fits: impl Fn(&[usize]) -> bool) -> Self {
        let mut boxes = Boxes::whole(space);
        while !fits(&boxes.chunk) {
            let divisible = (0..boxes.chunk.len()).find(|&axis| boxes.chunk[axis] > granules[axis]);
            let Some(axis) = divisible else { break };
            boxes.chunk[axis] = boxes.chunk[axis].div_ceil(2).next_multiple_of(granules[axis]);
        }
        boxes
    }

    /// Cuts on, the outermost axes first, until `workers` have enough boxes, of each of some groups, or they are no longer
    /// `worthwhile`.
    pub(crate) fn spread(
        mut self,
        granules: &[usize],
        workers: Workers,
        groups: usize,
        worthwhile: impl Fn(&[usize]) -> bool,
    ) -> Self {
        let axes = if self.len() == 0 { 0 } else { self.chunk.len() };
        for axis in 0..axes {
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
        Boxes { chunk: space.iter().map(|span| span.count.max(1)).collect(), space }
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
    fn boxes_partition_the_space() {
        let space = vec![Span { first: -2, count: 5 }, Span { first: 3, count: 37 }];
        let boxes = Boxes::cut(space, &[1, 8], |chunk| chunk.iter().product::<usize>() <= 16);
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
