//! Tiles of rows that are computed at once, and the taps that meet the input there.

use std::cell::OnceCell;
use std::ops::Range;

use outstride_kernels::{MatrixSession, Real, TILE_ROWS};

use super::super::super::axis::{Span, all_meet, meeting};
use super::super::bundle::Member;
use super::super::rows::Positions;
use super::super::run::Site;
use super::super::store::is_interior;
use super::{MOST_ROWS, MOST_TILES};

/// Tiles of a task's positions that are computed at once, so many of them.
#[derive(Debug)]
pub(in crate::engine::panel) struct Blocks {
    tiles: usize,
    blocks: Vec<RowBlock>,
    /// Per position, where its row begins among the sums of its block.
    rows: Vec<u16>,
    /// Found when somebody asks.
    extents: OnceCell<Vec<Span>>,
}

/// A block of tiles, the same for all members. Few bytes, for they are read again for every panel.
#[derive(Debug)]
struct RowBlock {
    /// The pieces that lie on its tiles.
    pieces: Range<usize>,
    positions: Range<usize>,
    /// How many rows of its tiles have positions, from the first row on.
    used: [u8; MOST_TILES],
    /// Between which of them all distances of their outputs are. Found when somebody asks.
    outputs: OnceCell<(isize, isize)>,
}

/// The blocks of a task for panels of one width, and what every member of the bundle does there.
#[derive(Default)]
pub(in crate::engine::panel) struct RowBlocks<'a> {
    blocks: Option<&'a Blocks>,
    members: Vec<OfMember>,
}

/// What differs from member to member.
struct OfMember {
    /// Different windows, of every axis each; those of all taps first.
    windows: Vec<Vec<Range<usize>>>,
    blocks: Vec<BlockOfMember>,
}

#[derive(Clone, Copy)]
struct BlockOfMember {
    /// Which of the windows are its own: per axis, the taps that meet the input at some of its positions.
    windows: usize,
    /// Whether all outputs of all positions lie inside the output.
    is_interior: bool,
}

/// The row blocks of a member.
#[derive(Clone, Copy)]
pub(super) struct MemberBlocks<'a> {
    all: &'a Blocks,
    own: &'a OfMember,
}

/// A block of rows of a member.
#[derive(Clone, Copy)]
pub(in crate::engine::panel) struct Rows<'a> {
    block: &'a RowBlock,
    /// Its first tile.
    pub(in crate::engine::panel) first: usize,
    /// Per position, where its row begins among the sums of the block.
    pub(in crate::engine::panel) rows: &'a [u16],
    pub(in crate::engine::panel) is_interior: bool,
}

impl Rows<'_> {
    pub(super) fn pieces(&self) -> Range<usize> {
        self.block.pieces.clone()
    }

    pub(super) fn positions(&self) -> Range<usize> {
        self.block.positions.clone()
    }

    /// The outputs of the block, of those of all positions, and between which of them they are.
    #[inline]
    pub(super) fn outputs<'o>(
        &self,
        all: &'o [isize],
        session: &MatrixSession,
    ) -> (&'o [isize], (isize, isize)) {
        let own = &all[self.block.positions.clone()];
        (own, *self.block.outputs.get_or_init(|| session.range_of(own)))
    }
}

impl Blocks {
    pub(in crate::engine::panel) fn new(positions: &Positions, tiles: usize) -> Self {
        let all = &positions.pieces;
        // The more tiles of rows, the fewer of columns.
        let columns = MOST_ROWS / tiles;
        let mut blocks = Vec::with_capacity(positions.tiles().div_ceil(tiles));
        let mut rows = Vec::with_capacity(positions.len());
        let mut start = 0;
        while start < all.len() {
            let first = blocks.len() * tiles;
            let count = all[start..].iter().take_while(|piece| piece.tile < first + tiles).count();
            let begin = rows.len();
            let mut used = [0; MOST_TILES];
            for piece in &all[start..start + count] {
                let tile = piece.tile - first;
                let row = tile * TILE_ROWS + piece.row;
                rows.extend((row..row + piece.count).map(|row| (row * columns) as u16));
                used[tile] = used[tile].max((piece.row + piece.count) as u8);
            }
            let (pieces, positions) = (start..start + count, begin..rows.len());
            blocks.push(RowBlock { pieces, positions, used, outputs: OnceCell::new() });
            start += count;
        }
        Blocks { tiles, blocks, rows, extents: OnceCell::new() }
    }

    /// Bytes that both numbers of tiles take of every position.
    pub(in crate::engine::panel) fn position_bytes() -> usize {
        2 * size_of::<u16>()
    }

    /// The most bytes that both take of every tile, of which there are at least two in a block, and of its extents along so many axes.
    pub(in crate::engine::panel) fn tile_bytes(axes: usize) -> usize {
        size_of::<RowBlock>() + axes * size_of::<Span>()
    }

    /// Per block and axis, from the least to the greatest index of its positions, which these are.
    fn extents(&self, positions: &Positions) -> &[Span] {
        self.extents.get_or_init(|| {
            let mut extents = Vec::with_capacity(self.blocks.len() * positions.axes());
            for block in &self.blocks {
                positions.extend_by_extent(block.positions.clone(), &mut extents);
            }
            extents
        })
    }
}

impl<'a> RowBlocks<'a> {
    /// Bytes of a member for so many tiles, of which there are at least two in a block.
    pub(in crate::engine::panel) fn bytes_of_member(tiles: usize) -> usize {
        tiles.div_ceil(2) * size_of::<BlockOfMember>()
    }

    /// Finds the blocks of so many tiles, unless they are known.
    pub(super) fn prepare<T: Real>(&mut self, site: &Site<'a, T>, tiles: usize) {
        if self.blocks.is_some_and(|blocks| blocks.tiles == tiles) {
            return;
        }
        let blocks = site.positions.blocks(tiles);
        let of_member = |member| {
            OfMember::with_equal_blocks(site, member, blocks.blocks.len())
                .unwrap_or_else(|| OfMember::new(site, member, blocks.extents(site.positions)))
        };
        self.members = site.bundle.members.iter().map(of_member).collect();
        self.blocks = Some(blocks);
    }

    pub(super) fn of_member(&self, member: usize) -> MemberBlocks<'_> {
        let all = self.blocks.expect("they were prepared");
        MemberBlocks { all, own: &self.members[member] }
    }
}

impl OfMember {
    /// If all taps meet the input at all positions, and all outputs lie inside: most boxes are at no border.
    fn with_equal_blocks<T: Real>(site: &Site<'_, T>, member: &Member, blocks: usize) -> Option<Self> {
        let meet = |(axis, span): (usize, &Span)| {
            let inside = site.problem.axes[axis].whole_input();
            all_meet(&member.deltas[axis], inside).contains(&read(member, axis, *span))
        };
        let equal = site.spans.iter().enumerate().all(meet) && is_interior(site.problem, member, site.spans);
        let block = BlockOfMember { windows: 0, is_interior: true };
        equal.then(|| OfMember { windows: vec![all_taps(member)], blocks: vec![block; blocks] })
    }

    /// One block after the other, given the extents of each. Blocks that follow each other differ along few axes.
    fn new<T: Real>(site: &Site<'_, T>, member: &Member, extents: &[Span]) -> Self {
        let axes = &site.problem.axes;
        let mut before: Vec<Span> = vec![Span::EMPTY; axes.len()];
        let mut windows = vec![all_taps(member)];
        let (mut own, mut number, mut inside) = (windows[0].clone(), 0, vec![true; axes.len()]);
        let block = |extent: &[Span]| {
            let mut same = true;
            for (axis, of) in axes.iter().enumerate() {
                if before[axis] == extent[axis] {
                    continue;
                }
                let task = site.spans[axis];
                let span = Span { first: task.first + extent[axis].first, ..extent[axis] };
                let window = meeting(&member.deltas[axis], read(member, axis, span), of.whole_input());
                same &= own[axis] == window;
                own[axis] = window;
                inside[axis] = !member.shared || member.inside(axis, of).contains(&span);
                before[axis] = extent[axis];
            }
            if !same {
                number = windows.iter().position(|known| *known == own).unwrap_or_else(|| {
                    windows.push(own.clone());
                    windows.len() - 1
                });
            }
            BlockOfMember { windows: number, is_interior: inside.iter().all(|&inside| inside) }
        };
        let blocks = extents.chunks_exact(axes.len()).map(block).collect();
        OfMember { windows, blocks }
    }
}

/// What positions of an axis read, in terms of taps.
fn read(member: &Member, axis: usize, span: Span) -> Span {
    Span { first: span.first + member.spans[axis].first, ..span }
}

/// The windows of all taps.
fn all_taps(member: &Member) -> Vec<Range<usize>> {
    member.deltas.iter().map(|deltas| 0..deltas.len()).collect()
}

impl<'a> MemberBlocks<'a> {
    pub(super) fn len(self) -> usize {
        self.all.blocks.len()
    }

    /// The first tile of a block.
    pub(super) fn first_tile(self, index: usize) -> usize {
        index * self.all.tiles
    }

    #[inline]
    pub(super) fn block(self, index: usize) -> Rows<'a> {
        let block = &self.all.blocks[index];
        let rows = &self.all.rows[block.positions.clone()];
        Rows { block, first: self.first_tile(index), rows, is_interior: self.is_interior(index) }
    }

    /// How many rows of the tiles of a block have positions, from the first row of each on.
    pub(super) fn used(self, index: usize) -> [u8; MOST_TILES] {
        self.all.blocks[index].used
    }

    /// Whether all outputs of all positions of a block lie inside the output.
    pub(super) fn is_interior(self, index: usize) -> bool {
        self.own.blocks[index].is_interior
    }

    /// The number of the windows of a block.
    pub(super) fn windows_of(self, index: usize) -> usize {
        self.own.blocks[index].windows
    }

    /// Per axis, the taps that meet the input at some positions.
    pub(super) fn windows(self, number: usize) -> &'a [Range<usize>] {
        &self.own.windows[number]
    }
}
