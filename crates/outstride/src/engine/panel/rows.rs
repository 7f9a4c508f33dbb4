//! The positions of a task, and the tiles they are cut into.

use super::super::axis::Span;

/// The positions of a task, counted from the first one of each phase, in the order of the rows of its tiles.
pub(super) struct Positions {
    /// Per position and axis, its index. Axes are fastest.
    indices: Vec<i64>,
    /// Per tile and axis, from the least to the greatest index. Axes are fastest.
    extents: Vec<Span>,
    /// Per position, how far its input lies from that of index 0.
    pub(super) inputs: Vec<isize>,
    /// Per position, how far its outputs lie from those of index 0.
    pub(super) outputs: Vec<isize>,
    axes: usize,
    /// Rows of every tile but the last.
    pub(super) per_tile: usize,
}

impl Positions {
    /// All positions of `spans`, the last axis of `order` fastest, in tiles of at most `most_rows`. Strides are from
    /// position to position.
    pub(super) fn new(
        spans: &[Span],
        order: &[usize],
        input_strides: &[isize],
        output_strides: &[isize],
        most_rows: usize,
    ) -> Self {
        let axes = spans.len();
        let count: usize = spans.iter().map(|span| span.count).product();
        let tile_count = count.div_ceil(most_rows).max(1);
        let per_tile = count.div_ceil(tile_count).max(1);
        let mut indices = Vec::with_capacity(count * axes);
        let mut inputs = Vec::with_capacity(count);
        let mut outputs = Vec::with_capacity(count);
        let mut index: Vec<i64> = spans.iter().map(|span| span.first).collect();
        let (&fastest, slower) = order.split_last().expect("there is always the batch");
        while inputs.len() < count {
            let (input, output) = (offset(&index, input_strides), offset(&index, output_strides));
            for step in 0..spans[fastest].count {
                inputs.push(input + step as isize * input_strides[fastest]);
                outputs.push(output + step as isize * output_strides[fastest]);
                let at = indices.len() + fastest;
                indices.extend_from_slice(&index);
                indices[at] += step as i64;
            }
            for &axis in slower.iter().rev() {
                index[axis] += 1;
                if index[axis] < spans[axis].end() {
                    break;
                }
                index[axis] = spans[axis].first;
            }
        }
        let mut extents = Vec::with_capacity(tile_count * axes);
        for tile in indices.chunks(per_tile * axes) {
            extents.extend((0..axes).map(|axis| extent(tile, axis, axes)));
        }
        Positions { indices, extents, inputs, outputs, axes, per_tile }
    }

    pub(super) fn tiles(&self) -> usize {
        self.inputs.len().div_ceil(self.per_tile)
    }

    /// The first position of a tile, and how many it has.
    pub(super) fn rows(&self, tile: usize) -> (usize, usize) {
        let first = tile * self.per_tile;
        (first, self.per_tile.min(self.inputs.len() - first))
    }

    /// Per axis, from the least to the greatest index of a tile.
    pub(super) fn extent(&self, tile: usize) -> &[Span] {
        &self.extents[tile * self.axes..(tile + 1) * self.axes]
    }

    /// The index of a position along every axis.
    pub(super) fn index(&self, position: usize) -> &[i64] {
        &self.indices[position * self.axes..(position + 1) * self.axes]
    }
}

fn offset(index: &[i64], strides: &[isize]) -> isize {
    index.iter().zip(strides).map(|(&index, &stride)| index as isize * stride).sum()
}

/// From the least to the greatest index of a tile along an axis.
fn extent(tile: &[i64], axis: usize, axes: usize) -> Span {
    let (mut least, mut greatest) = (i64::MAX, i64::MIN);
    let mut at = axis;
    while at < tile.len() {
        least = least.min(tile[at]);
        greatest = greatest.max(tile[at]);
        at += axes;
    }
    Span { first: least, count: (greatest - least + 1) as usize }
}
