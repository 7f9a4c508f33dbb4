//! Cutting the space of positions into boxes: the unit of work of a task, small enough for its input to stay in cache.

use super::axis::Span;

/// A grid of boxes over a space of positions.
#[derive(Clone, Debug)]
pub(crate) struct Boxes {
    space: Vec<Span>,
    /// Positions per box, along each axis.
    chunk: Vec<usize>,
}

impl Boxes {
    /// Halves the space along its outermost divisible axis until `accept` is content with a box or nothing is left to
    /// cut. Along each axis, boxes are multiples of `granules`.
    pub(crate) fn cut(
        space: Vec<Span>,
        granules: &[usize],
        accept: impl Fn(&[usize], usize) -> bool,
    ) -> Self {
        let mut boxes = Boxes::whole(space);
        while !accept(&boxes.chunk, boxes.len()) {
            let divisible = (0..boxes.chunk.len()).find(|&axis| boxes.chunk[axis] > granules[axis]);
            let Some(axis) = divisible else { break };
            boxes.chunk[axis] = (boxes.chunk[axis] / 2).next_multiple_of(granules[axis]);
        }
        boxes
    }

    /// The whole space as one box.
    pub(crate) fn whole(space: Vec<Span>) -> Self {
        Boxes { chunk: space.iter().map(|span| span.count.max(1)).collect(), space }
    }

    /// How many boxes there are.
    pub(crate) fn len(&self) -> usize {
        self.space.iter().zip(&self.chunk).map(|(span, &chunk)| span.count.div_ceil(chunk)).product()
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

    #[test]
    fn boxes_partition_the_space() {
        let space = vec![Span { first: -2, count: 5 }, Span { first: 3, count: 37 }];
        let boxes = Boxes::cut(space, &[1, 8], |chunk, _| chunk.iter().product::<usize>() <= 16);
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
