//! The positions of a task, and the tiles they are cut into.

use std::cell::{OnceCell, RefCell};
use std::ops::Range;

use super::super::axis::Span;
use super::matrix::Blocks;
use super::planes::LaidOut;

/// The positions of a task, counted from its first one along every axis, numbered in the order of the rows of its tiles. Most tasks
/// have the same.
#[derive(Debug)]
pub(super) struct Positions {
    layout: Layout,
    pub(super) pieces: Vec<Piece>,
    /// In strips, where each tile begins in the input.
    pub(super) begins: Vec<isize>,
    /// Per position and axis, its index. Axes are fastest. Found when somebody asks, as is all that follows.
    indices: OnceCell<Vec<i64>>,
    /// Per position, how far its input lies from that of the first.
    inputs: OnceCell<Vec<isize>>,
    /// The same of its outputs.
    outputs: OnceCell<Vec<isize>>,
    /// Per piece and axis, from the least to the greatest index. Axes are fastest.
    extents: OnceCell<Vec<Span>>,
    /// Blocks of two tiles, and of four.
    blocks: [OnceCell<Blocks>; 2],
    /// Where the sums of stretches lie, if the last task stored such.
    laid_out: RefCell<LaidOut>,
}

/// What the positions of a task depend on.
#[derive(Debug, PartialEq)]
pub(super) struct Layout {
    /// Per axis.
    pub(super) counts: Vec<usize>,
    /// The axes, slowest first.
    pub(super) order: Vec<usize>,
    /// Per axis, from the input of a position to that of the next.
    pub(super) input_strides: Vec<isize>,
    /// The same of outputs.
    pub(super) output_strides: Vec<isize>,
    pub(super) cut: Cut,
}

/// How positions are cut into tiles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Cut {
    /// Of at most so many positions each, wherever they lie.
    Tiles(usize),
    /// Of so many rows that follow each other in the input. Some rows may belong to no position, if that makes fewer tiles.
    Strips(usize),
}

/// Consecutive positions on consecutive rows of a tile.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) tile: usize,
    pub(super) row: usize,
    pub(super) first: usize,
    pub(super) count: usize,
}

/// The positions of a thread's last tasks.
#[derive(Debug, Default)]
pub(crate) struct KeptPositions(Vec<Positions>);

impl KeptPositions {
    /// Bundles whose members have one position more or less take turns.
    const MOST: usize = 4;

    /// Those of a layout.
    pub(super) fn of(&mut self, layout: Layout) -> &Positions {
        let known = self.0.iter().position(|known| known.layout == layout);
        let place = known.unwrap_or_else(|| {
            self.0.truncate(Self::MOST - 1);
            self.0.push(Positions::new(layout));
            self.0.len() - 1
        });
        // The one that was not asked for the longest is the last.
        self.0[..=place].rotate_right(1);
        &self.0[0]
    }

    /// The most bytes that they take, if tasks have so many shapes, each of at most so many positions, in so many pieces, along so
    /// many axes and with outputs in so many turns.
    pub(super) fn most_bytes(
        shapes: usize,
        positions: usize,
        pieces: usize,
        axes: usize,
        turns: usize,
    ) -> usize {
        let indices = axes * size_of::<i64>();
        let distances = 2 * size_of::<isize>();
        let of_position = indices + distances + Blocks::position_bytes();
        let extents = axes * size_of::<Span>();
        let of_piece = size_of::<Piece>() + size_of::<isize>() + extents + Blocks::tile_bytes(axes);
        let laid_out = LaidOut::most_bytes(positions, turns, axes);
        shapes.min(Self::MOST) * (positions * of_position + pieces * of_piece + laid_out)
    }
}

impl Positions {
    fn new(layout: Layout) -> Self {
        let mut positions = Positions {
            pieces: Vec::new(),
            begins: Vec::new(),
            indices: OnceCell::new(),
            inputs: OnceCell::new(),
            outputs: OnceCell::new(),
            extents: OnceCell::new(),
            blocks: Default::default(),
            laid_out: RefCell::default(),
            layout,
        };
        match positions.layout.cut {
            Cut::Tiles(most_rows) => positions.cut_into_tiles(most_rows),
            Cut::Strips(rows) => positions.cut_into_strips(rows),
        }
        positions
    }

    fn cut_into_tiles(&mut self, most_rows: usize) {
        let count = self.len();
        let per_tile = count.div_ceil(count.div_ceil(most_rows).max(1)).max(1);
        let piece = |first: usize| Piece {
            tile: first / per_tile,
            row: 0,
            first,
            count: per_tile.min(count - first),
        };
        self.pieces = (0..count).step_by(per_tile).map(piece).collect();
    }

    fn cut_into_strips(&mut self, rows: usize) {
        let Layout { counts, order, input_strides, .. } = &self.layout;
        let runs = Strips::new(counts, order, input_strides, rows);
        let Strips { strip, strips, pitch, .. } = runs;
        let positions = self.len();
        self.pieces.reserve_exact(runs.pieces(positions, rows));
        self.begins.reserve_exact(runs.tiles(positions, rows));
        for first in (0..positions).step_by(strip * strips) {
            let tile = self.begins.len();
            let mut extent = Vec::with_capacity(counts.len());
            self.extend_by_extent(first..first + 1, &mut extent);
            let begin: isize =
                extent.iter().zip(input_strides).map(|(span, stride)| span.first as isize * stride).sum();
            self.begins.extend((0..runs.len()).step_by(rows).map(|row| begin + row as isize));
            for number in 0..strips {
                let (mut done, at) = (0, number * pitch);
                while done < strip {
                    let row = (at + done) % rows;
                    let count = (rows - row).min(strip - done);
                    let first = first + number * strip + done;
                    self.pieces.push(Piece { tile: tile + (at + done) / rows, row, first, count });
                    done += count;
                }
            }
        }
    }

    /// Blocks of so many tiles, two or four.
    pub(super) fn blocks(&self, tiles: usize) -> &Blocks {
        self.blocks[usize::from(tiles > 2)].get_or_init(|| Blocks::new(self, tiles))
    }

    /// Appends, per axis, from the least to the greatest index of some positions.
    pub(super) fn extend_by_extent(&self, positions: Range<usize>, extents: &mut Vec<Span>) {
        let Layout { counts, order, .. } = &self.layout;
        let begin = extents.len();
        extents.extend(counts.iter().map(|&count| Span { first: 0, count }));
        let (mut first, mut last) = (positions.start, positions.end - 1);
        // Slower axes have one index; the first that has several has some of them, and faster ones have all.
        let mut whole = self.len();
        for &axis in order {
            whole /= counts[axis];
            let (least, greatest) = (first / whole, last / whole);
            extents[begin + axis] = Span { first: least as i64, count: greatest - least + 1 };
            if least != greatest {
                break;
            }
            (first, last) = (first % whole, last % whole);
        }
    }

    pub(super) fn axes(&self) -> usize {
        self.layout.counts.len()
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.layout.counts.iter().product()
    }

    /// Per position, how far its input lies from that of the first.
    pub(super) fn inputs(&self) -> &[isize] {
        self.inputs.get_or_init(|| self.distances(&self.layout.input_strides))
    }

    /// Between which distances from the output of the first position those of all lie.
    pub(super) fn output_range(&self) -> (isize, isize) {
        let Layout { counts, output_strides, .. } = &self.layout;
        let ends = counts.iter().zip(output_strides).map(|(&count, stride)| (count as isize - 1) * stride);
        ends.fold((0, 0), |(least, most), end| (least + end.min(0), most + end.max(0)))
    }

    /// The same of the positions that are inside spans, if there are any.
    pub(super) fn output_range_within(&self, inside: &[Span]) -> Option<(isize, isize)> {
        let Layout { counts, output_strides, .. } = &self.layout;
        let (mut least, mut most) = (0, 0);
        for ((&count, stride), inside) in counts.iter().zip(output_strides).zip(inside) {
            let inside = inside.intersect(&Span { first: 0, count });
            if inside.count == 0 {
                return None;
            }
            let ends = [inside.first as isize * stride, (inside.end() as isize - 1) * stride];
            least += ends[0].min(ends[1]);
            most += ends[0].max(ends[1]);
        }
        Some((least, most))
    }

    /// Per position, how far its outputs lie from those of the first.
    pub(super) fn outputs(&self) -> &[isize] {
        self.outputs.get_or_init(|| self.distances(&self.layout.output_strides))
    }

    fn distances(&self, strides: &[isize]) -> Vec<isize> {
        let mut distances = Vec::with_capacity(self.len());
        self.for_each_whole_run(|index, along, count| {
            let first: isize =
                index.iter().zip(strides).map(|(&index, stride)| index as isize * stride).sum();
            distances.extend((0..count as isize).map(|step| first + step * strides[along]));
        });
        distances
    }

    /// How far the inputs of the piece after lie from those of a piece; nowhere after the last.
    pub(super) fn inputs_to_next(&self, piece: usize) -> isize {
        let Some([this, next]) = self.pieces.get(piece..piece + 2) else { return 0 };
        self.inputs()[next.first] - self.inputs()[this.first]
    }

    pub(super) fn tiles(&self) -> usize {
        self.pieces.last().map_or(0, |piece| piece.tile + 1)
    }

    /// The axes, slowest first.
    pub(super) fn order(&self) -> &[usize] {
        &self.layout.order
    }

    pub(super) fn laid_out(&self) -> &RefCell<LaidOut> {
        &self.laid_out
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
        let axes = self.axes();
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
        let along = *self.layout.order.last().expect("there is always the batch");
        let mut first = positions.start;
        while first < positions.end {
            let index = self.index(first);
            let behind = first + self.layout.counts[along] - index[along] as usize;
            let run = first..behind.min(positions.end);
            first = run.end;
            visit(run, index, along);
        }
    }

    /// The index of a position along every axis.
    pub(super) fn index(&self, position: usize) -> &[i64] {
        let axes = self.axes();
        let indices = self.indices.get_or_init(|| {
            let mut indices = Vec::with_capacity(self.len() * axes);
            self.for_each_whole_run(|index, along, count| {
                for step in 0..count {
                    let at = indices.len() + along;
                    indices.extend_from_slice(index);
                    indices[at] += step as i64;
                }
            });
            indices
        });
        &indices[position * axes..(position + 1) * axes]
    }

    /// Visits every run of positions along the fastest axis, given its first index, that axis and how many there are.
    fn for_each_whole_run(&self, mut visit: impl FnMut(&[i64], usize, usize)) {
        let Layout { counts, order, .. } = &self.layout;
        let mut index = vec![0; counts.len()];
        let (&along, slower) = order.split_last().expect("there is always the batch");
        let runs: usize = slower.iter().map(|&axis| counts[axis]).product();
        for _ in 0..runs {
            visit(&index, along, counts[along]);
            for &axis in slower.iter().rev() {
                index[axis] += 1;
                if index[axis] < counts[axis] as i64 {
                    break;
                }
                index[axis] = 0;
            }
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
    pub(super) fn new(counts: &[usize], order: &[usize], input_strides: &[isize], rows: usize) -> Self {
        // Axes whose positions follow each other without a gap.
        let mut strip = 1;
        let mut outer = order.iter().rev().peekable();
        while let Some(&axis) = outer.next_if(|&&axis| input_strides[axis] == strip as isize) {
            strip *= counts[axis];
        }
        // Of the next axis, the gap between runs may cost less than the unused rows of their last tiles.
        if let Some(&axis) = outer.next() {
            let (count, stride) = (counts[axis], input_strides[axis] as usize);
            let with_gaps = ((count - 1) * stride + strip).div_ceil(rows);
            if stride >= strip && with_gaps < count * strip.div_ceil(rows) {
                return Strips { strip, strips: count, pitch: stride };
            }
        }
        Strips { strip, strips: 1, pitch: 0 }
    }

    /// Rows that runs take which are cut into tiles together.
    fn len(&self) -> usize {
        (self.strips - 1) * self.pitch + self.strip
    }

    /// Tiles that so many positions are cut into.
    pub(super) fn tiles(&self, positions: usize, rows: usize) -> usize {
        positions / (self.strip * self.strips) * self.len().div_ceil(rows)
    }

    /// The most pieces that so many positions are cut into: a run may begin and end within a tile.
    pub(super) fn pieces(&self, positions: usize, rows: usize) -> usize {
        positions / self.strip * (self.strip.div_ceil(rows) + 1)
    }
}
