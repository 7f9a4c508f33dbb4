//! The positions of a task, and the tiles they are cut into.

use super::super::axis::Span;

/// The positions of a task, counted from the first one of each phase, numbered in the order of the rows of its tiles.
pub(super) struct Positions {
    /// Per position and axis, its index. Axes are fastest.
    indices: Vec<i64>,
    axes: usize,
    /// Per position, how far its input lies from that of index 0.
    pub(super) inputs: Vec<isize>,
    /// Per position, how far its outputs lie from those of index 0.
    pub(super) outputs: Vec<isize>,
    pub(super) pieces: Vec<Piece>,
    /// Per piece and axis, from the least to the greatest index. Axes are fastest.
    extents: Vec<Span>,
}

/// Consecutive positions on consecutive rows of a tile.
pub(super) struct Piece {
    pub(super) tile: usize,
    pub(super) row: usize,
    pub(super) first: usize,
    pub(super) count: usize,
}

impl Positions {
    /// All positions of `spans`, the last axis of `order` fastest. Strides are from position to position.
    fn new(spans: &[Span], order: &[usize], input_strides: &[isize], output_strides: &[isize]) -> Self {
        let axes = spans.len();
        let count: usize = spans.iter().map(|span| span.count).product();
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
        Positions { indices, axes, inputs, outputs, pieces: Vec::new(), extents: Vec::new() }
    }

    /// In tiles of at most `most_rows` positions each, wherever they lie.
    pub(super) fn in_tiles(
        spans: &[Span],
        order: &[usize],
        input_strides: &[isize],
        output_strides: &[isize],
        most_rows: usize,
    ) -> Self {
        let mut positions = Positions::new(spans, order, input_strides, output_strides);
        let count = positions.inputs.len();
        let per_tile = count.div_ceil(count.div_ceil(most_rows).max(1)).max(1);
        for first in (0..count).step_by(per_tile) {
            positions.push(Piece {
                tile: first / per_tile,
                row: 0,
                first,
                count: per_tile.min(count - first),
            });
        }
        positions
    }

    /// In tiles of `rows` rows that follow each other in the input, and where each tile begins. Some rows may belong to
    /// no position, if that makes fewer tiles.
    pub(super) fn in_strips(
        spans: &[Span],
        order: &[usize],
        input_strides: &[isize],
        output_strides: &[isize],
        rows: usize,
    ) -> (Self, Vec<isize>) {
        let mut positions = Positions::new(spans, order, input_strides, output_strides);
        let Strips { strip, strips, pitch } = Strips::new(spans, order, input_strides, rows);
        let count = positions.inputs.len();
        let mut begins = Vec::new();
        for first in (0..count).step_by(strip * strips) {
            let tile = begins.len();
            let len = (strips - 1) * pitch + strip;
            begins.extend((0..len).step_by(rows).map(|row| positions.inputs[first] + row as isize));
            for number in 0..strips {
                let (mut done, at) = (0, number * pitch);
                while done < strip {
                    let row = (at + done) % rows;
                    let count = (rows - row).min(strip - done);
                    let first = first + number * strip + done;
                    positions.push(Piece { tile: tile + (at + done) / rows, row, first, count });
                    done += count;
                }
            }
        }
        (positions, begins)
    }

    fn push(&mut self, piece: Piece) {
        let indices = &self.indices[piece.first * self.axes..(piece.first + piece.count) * self.axes];
        self.extents.extend((0..self.axes).map(|axis| extent(indices, axis, self.axes)));
        self.pieces.push(piece);
    }

    pub(super) fn tiles(&self) -> usize {
        self.pieces.last().map_or(0, |piece| piece.tile + 1)
    }

    /// Per position, where its row begins among sums of so many columns, in tiles so far apart.
    pub(super) fn places(&self, tile_len: usize, width: usize) -> Vec<isize> {
        let mut places = vec![0; self.outputs.len()];
        for piece in &self.pieces {
            let begin = piece.tile * tile_len + piece.row * width;
            for (row, place) in places[piece.first..piece.first + piece.count].iter_mut().enumerate() {
                *place = (begin + row * width) as isize;
            }
        }
        places
    }

    /// Per axis, from the least to the greatest index of a piece.
    pub(super) fn extent(&self, piece: usize) -> &[Span] {
        &self.extents[piece * self.axes..(piece + 1) * self.axes]
    }

    /// The index of a position along every axis.
    pub(super) fn index(&self, position: usize) -> &[i64] {
        &self.indices[position * self.axes..(position + 1) * self.axes]
    }
}

/// Runs of positions that follow each other in the input.
pub(super) struct Strips {
    /// Positions of a run.
    strip: usize,
    /// How many runs are cut into tiles together, with the gaps between them.
    strips: usize,
    /// From one of these runs to the next.
    pitch: usize,
}

impl Strips {
    fn new(spans: &[Span], order: &[usize], input_strides: &[isize], rows: usize) -> Self {
        // Axes whose positions follow each other without a gap.
        let mut strip = 1;
        let mut outer = order.iter().rev().peekable();
        while let Some(&axis) = outer.next_if(|&&axis| input_strides[axis] == strip as isize) {
            strip *= spans[axis].count;
        }
        // Of the next axis, the gap between runs may cost less than the unused rows of their last tiles.
        if let Some(&axis) = outer.next() {
            let (count, stride) = (spans[axis].count, input_strides[axis] as usize);
            let with_gaps = ((count - 1) * stride + strip).div_ceil(rows);
            if stride >= strip && with_gaps < count * strip.div_ceil(rows) {
                return Strips { strip, strips: count, pitch: stride };
            }
        }
        Strips { strip, strips: 1, pitch: 0 }
    }

    /// Tiles that so many positions are cut into.
    pub(super) fn tiles(spans: &[Span], order: &[usize], input_strides: &[isize], rows: usize) -> usize {
        let count: usize = spans.iter().map(|span| span.count).product();
        let Strips { strip, strips, pitch } = Strips::new(spans, order, input_strides, rows);
        count / (strip * strips) * ((strips - 1) * pitch + strip).div_ceil(rows)
    }
}

fn offset(index: &[i64], strides: &[isize]) -> isize {
    index.iter().zip(strides).map(|(&index, &stride)| index as isize * stride).sum()
}

/// From the least to the greatest index of some positions along an axis.
fn extent(indices: &[i64], axis: usize, axes: usize) -> Span {
    let (mut least, mut greatest) = (i64::MAX, i64::MIN);
    let mut at = axis;
    while at < indices.len() {
        least = least.min(indices[at]);
        greatest = greatest.max(indices[at]);
        at += axes;
    }
    Span { first: least, count: (greatest - least + 1) as usize }
}
