//! The positions of a task, and the tiles they are cut into.

use std::cell::OnceCell;
use std::ops::Range;

use super::super::axis::Span;

/// The positions of a task, counted from the first one of each phase, numbered in the order of the rows of its tiles.
pub(super) struct Positions {
    spans: Vec<Span>,
    /// The axes, slowest first.
    order: Vec<usize>,
    /// Per position and axis, its index. Axes are fastest. Found when somebody asks, which is seldom.
    indices: OnceCell<Vec<i64>>,
    inputs: Offsets,
    outputs: Offsets,
    pub(super) pieces: Vec<Piece>,
    /// Per piece and axis, from the least to the greatest index. Axes are fastest. Found when somebody asks.
    extents: OnceCell<Vec<Span>>,
}

/// Per position, how far something lies from that of index 0. Found when somebody asks.
struct Offsets {
    strides: Vec<isize>,
    offsets: OnceCell<Vec<isize>>,
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
        Positions {
            spans: spans.to_vec(),
            order: order.to_vec(),
            indices: OnceCell::new(),
            inputs: Offsets { strides: input_strides.to_vec(), offsets: OnceCell::new() },
            outputs: Offsets { strides: output_strides.to_vec(), offsets: OnceCell::new() },
            pieces: Vec::new(),
            extents: OnceCell::new(),
        }
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
        let count = positions.len();
        let per_tile = count.div_ceil(count.div_ceil(most_rows).max(1)).max(1);
        for first in (0..count).step_by(per_tile) {
            positions.pieces.push(Piece {
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
        let count = positions.len();
        let mut begins = Vec::new();
        let mut extent = Vec::new();
        for first in (0..count).step_by(strip * strips) {
            let tile = begins.len();
            let len = (strips - 1) * pitch + strip;
            extent.clear();
            positions.extend_by_extent(first..first + 1, &mut extent);
            let begin: isize =
                extent.iter().zip(input_strides).map(|(span, stride)| span.first as isize * stride).sum();
            begins.extend((0..len).step_by(rows).map(|row| begin + row as isize));
            for number in 0..strips {
                let (mut done, at) = (0, number * pitch);
                while done < strip {
                    let row = (at + done) % rows;
                    let count = (rows - row).min(strip - done);
                    let first = first + number * strip + done;
                    positions.pieces.push(Piece { tile: tile + (at + done) / rows, row, first, count });
                    done += count;
                }
            }
        }
        (positions, begins)
    }

    /// Appends, per axis, from the least to the greatest index of some positions.
    pub(super) fn extend_by_extent(&self, positions: Range<usize>, extents: &mut Vec<Span>) {
        let begin = extents.len();
        extents.extend(self.spans.iter().copied());
        let (mut first, mut last) = (positions.start, positions.end - 1);
        // Slower axes have one index; the first that has several has some of them, and faster ones have all.
        let mut whole = self.len();
        for &axis in &self.order {
            let span = self.spans[axis];
            whole /= span.count;
            let (least, greatest) = (first / whole, last / whole);
            extents[begin + axis] = Span { first: span.first + least as i64, count: greatest - least + 1 };
            if least != greatest {
                break;
            }
            (first, last) = (first % whole, last % whole);
        }
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.spans.iter().map(|span| span.count).product()
    }

    /// Per position, how far its input lies from that of index 0.
    pub(super) fn inputs(&self) -> &[isize] {
        self.inputs.get(&self.spans, &self.order)
    }

    /// Per position, how far its outputs lie from those of index 0.
    pub(super) fn outputs(&self) -> &[isize] {
        self.outputs.get(&self.spans, &self.order)
    }

    /// How far the inputs of the piece after lie from those of a piece; nowhere after the last.
    pub(super) fn inputs_to_next(&self, piece: usize) -> isize {
        let Some([this, next]) = self.pieces.get(piece..piece + 2) else { return 0 };
        self.inputs()[next.first] - self.inputs()[this.first]
    }

    pub(super) fn tiles(&self) -> usize {
        self.pieces.last().map_or(0, |piece| piece.tile + 1)
    }

    /// Per position, where its row begins among sums of so many columns, in tiles so far apart.
    pub(super) fn places(&self, tile_len: usize, width: usize) -> Vec<isize> {
        let mut places = Vec::with_capacity(self.len());
        // Pieces are in the order of their positions.
        for piece in &self.pieces {
            let begin = (piece.tile * tile_len + piece.row * width) as isize;
            places.extend((0..piece.count as isize).map(|row| begin + row * width as isize));
        }
        places
    }

    /// Per axis, from the least to the greatest index of a piece.
    pub(super) fn extent(&self, piece: usize) -> &[Span] {
        let axes = self.spans.len();
        let extents = self.extents.get_or_init(|| {
            let mut extents = Vec::with_capacity(self.pieces.len() * axes);
            for piece in &self.pieces {
                self.extend_by_extent(piece.first..piece.first + piece.count, &mut extents);
            }
            extents
        });
        &extents[piece * axes..(piece + 1) * axes]
    }

    /// Visits the runs along the fastest axis that some consecutive positions consist of, each with the index of its first position
    /// and that axis.
    pub(super) fn for_each_run(
        &self,
        positions: Range<usize>,
        mut visit: impl FnMut(Range<usize>, &[i64], usize),
    ) {
        let along = *self.order.last().expect("there is always the batch");
        let mut index = vec![0; self.spans.len()];
        let mut first = positions.start;
        while first < positions.end {
            let mut rest = first;
            for &axis in self.order.iter().rev() {
                let Span { first, count } = self.spans[axis];
                index[axis] = first + (rest % count) as i64;
                rest /= count;
            }
            let behind = first + (self.spans[along].end() - index[along]) as usize;
            let run = first..behind.min(positions.end);
            first = run.end;
            visit(run, &index, along);
        }
    }

    /// The index of a position along every axis.
    pub(super) fn index(&self, position: usize) -> &[i64] {
        let axes = self.spans.len();
        let indices = self.indices.get_or_init(|| {
            let mut indices = Vec::with_capacity(self.len() * axes);
            for_each_run(&self.spans, &self.order, |index, along| {
                for step in 0..self.spans[along].count {
                    let at = indices.len() + along;
                    indices.extend_from_slice(index);
                    indices[at] += step as i64;
                }
            });
            indices
        });
        &indices[position * axes..(position + 1) * axes]
    }
}

impl Offsets {
    fn get(&self, spans: &[Span], order: &[usize]) -> &[isize] {
        self.offsets.get_or_init(|| {
            let mut offsets = Vec::with_capacity(spans.iter().map(|span| span.count).product());
            for_each_run(spans, order, |index, along| {
                let first = offset(index, &self.strides);
                let steps = 0..spans[along].count as isize;
                offsets.extend(steps.map(|step| first + step * self.strides[along]));
            });
            offsets
        })
    }
}

/// Visits every run of positions along the last axis of `order`, given its first index and that axis.
fn for_each_run(spans: &[Span], order: &[usize], mut visit: impl FnMut(&[i64], usize)) {
    let mut index: Vec<i64> = spans.iter().map(|span| span.first).collect();
    let (&along, slower) = order.split_last().expect("there is always the batch");
    let runs: usize = slower.iter().map(|&axis| spans[axis].count).product();
    for _ in 0..runs {
        visit(&index, along);
        for &axis in slower.iter().rev() {
            index[axis] += 1;
            if index[axis] < spans[axis].end() {
                break;
            }
            index[axis] = spans[axis].first;
        }
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
