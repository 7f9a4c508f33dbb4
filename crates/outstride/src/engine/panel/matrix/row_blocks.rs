//! Tiles of rows that are computed at once, and the taps that meet the input there.

use std::ops::Range;

use outstride_kernels::{Real, TILE_ROWS};

use super::super::super::axis::{Span, meeting};
use super::super::bundle::Member;
use super::super::rows::Positions;
use super::super::run::Site;

/// All row blocks of a member. The same for all of its panels of one width.
pub(super) struct RowBlocks {
    member: usize,
    /// Tiles of a block.
    tiles: usize,
    /// Per block, the pieces that lie on its tiles.
    pieces: Vec<Range<usize>>,
    /// Per position, its row within its block.
    rows: Vec<u16>,
    /// Per block and axis, the taps that meet the input at some of its positions. Axes are fastest.
    windows: Vec<Range<usize>>,
}

/// A block of tiles.
pub(in crate::engine::panel) struct RowBlock<'a> {
    /// Its first tile.
    pub(in crate::engine::panel) first: usize,
    pub(in crate::engine::panel) pieces: Range<usize>,
    /// The block's positions, and the row of each.
    pub(in crate::engine::panel) positions: Range<usize>,
    pub(in crate::engine::panel) rows: &'a [u16],
    pub(in crate::engine::panel) windows: &'a [Range<usize>],
}

/// The row blocks of a bundle, as far as they have been asked for.
#[derive(Default)]
pub(in crate::engine::panel) struct RowBlocksOfBundle(Vec<RowBlocks>);

impl RowBlocksOfBundle {
    /// Those of a member, so many tiles each.
    pub(super) fn of<T: Real>(&mut self, site: &Site<'_, T>, member: usize, tiles: usize) -> &RowBlocks {
        let known = self.0.iter().position(|blocks| blocks.member == member && blocks.tiles == tiles);
        let index = known.unwrap_or_else(|| {
            self.0.push(RowBlocks::new(site, member, tiles));
            self.0.len() - 1
        });
        &self.0[index]
    }
}

impl RowBlocks {
    fn new<T: Real>(site: &Site<'_, T>, member: usize, tiles: usize) -> Self {
        let rows = Vec::with_capacity(site.positions.outputs.len());
        let mut blocks = RowBlocks { member, tiles, pieces: Vec::new(), rows, windows: Vec::new() };
        let all = &site.positions.pieces;
        let mut start = 0;
        while start < all.len() {
            let end = blocks.pieces.len() * tiles + tiles;
            let count = all[start..].iter().take_while(|piece| piece.tile < end).count();
            let pieces = start..start + count;
            for piece in &all[pieces.clone()] {
                let first = (piece.tile % tiles * TILE_ROWS + piece.row) as u16;
                blocks.rows.extend(first..first + piece.count as u16);
            }
            blocks.push_windows(site, &site.bundle.members[member], pieces.clone());
            blocks.pieces.push(pieces);
            start += count;
        }
        blocks
    }

    fn push_windows<T: Real>(&mut self, site: &Site<'_, T>, member: &Member, pieces: Range<usize>) {
        for (axis, of) in site.problem.axes.iter().enumerate() {
            let empty = Span { first: 0, count: 0 };
            let hull =
                pieces.clone().fold(empty, |hull, piece| hull.hull(&site.positions.extent(piece)[axis]));
            let read = Span { first: hull.first + member.spans[axis].first, ..hull };
            self.windows.push(meeting(&member.deltas[axis], read, Span { first: 0, count: of.input }));
        }
    }

    pub(super) fn iter<'a>(&'a self, positions: &'a Positions) -> impl Iterator<Item = RowBlock<'a>> {
        let axes = self.windows.len() / self.pieces.len().max(1);
        self.pieces.iter().enumerate().map(move |(index, pieces)| {
            let positions = positions.of_pieces(pieces.clone());
            RowBlock {
                first: index * self.tiles,
                pieces: pieces.clone(),
                rows: &self.rows[positions.clone()],
                positions,
                windows: &self.windows[index * axes..(index + 1) * axes],
            }
        })
    }
}
