//! Tiles of rows that are computed at once, and the taps that meet the input there.

use std::ops::Range;

use outstride_kernels::{MatrixSession, Real, TILE_ROWS};

use super::super::super::axis::{EngineAxis, Span, all_meet, meeting};
use super::super::run::Site;
use super::super::store::is_interior;

/// All row blocks of a member. The same for all of its panels of one width.
pub(super) struct RowBlocks {
    member: usize,
    /// Tiles of a block.
    tiles: usize,
    pub(super) blocks: Vec<RowBlock>,
    /// Per position, its row within its block.
    rows: Vec<u16>,
    /// Different windows, of every axis each.
    windows: Vec<Vec<Range<usize>>>,
}

/// A block of tiles. Few bytes, for they are read again for every panel.
pub(in crate::engine::panel) struct RowBlock {
    /// Its first tile.
    pub(in crate::engine::panel) first: usize,
    /// The pieces that lie on its tiles.
    pub(in crate::engine::panel) pieces: Range<usize>,
    pub(in crate::engine::panel) positions: Range<usize>,
    /// Between which of them all distances of their outputs are.
    pub(super) outputs: (isize, isize),
    /// Whether all outputs of all positions lie inside the output.
    pub(in crate::engine::panel) is_interior: bool,
    /// Which of the windows are its own: per axis, the taps that meet the input at some of its positions.
    pub(super) windows: usize,
}

/// The row blocks of every member of a bundle.
#[derive(Default)]
pub(in crate::engine::panel) struct RowBlocksOfBundle(Vec<RowBlocks>);

impl RowBlocksOfBundle {
    /// Finds those of every member, so many tiles each, unless they are known.
    pub(super) fn prepare<T: Real>(&mut self, site: &Site<'_, T>, tiles: usize, session: &MatrixSession) {
        if self.0.iter().all(|blocks| blocks.tiles == tiles) && !self.0.is_empty() {
            return;
        }
        let of_member = |member| RowBlocks::new(site, member, tiles, session);
        self.0 = (0..site.bundle.members.len()).map(of_member).collect();
    }

    pub(super) fn of_member(&self, member: usize) -> &RowBlocks {
        &self.0[member]
    }
}

impl RowBlocks {
    fn new<T: Real>(site: &Site<'_, T>, member: usize, tiles: usize, session: &MatrixSession) -> Self {
        let all = &site.positions.pieces;
        let mut blocks = RowBlocks {
            member,
            tiles,
            blocks: Vec::with_capacity(site.positions.tiles().div_ceil(tiles)),
            rows: Vec::with_capacity(site.positions.outputs.len()),
            windows: Vec::new(),
        };
        let everywhere = blocks.windows_everywhere(site);
        blocks.windows.extend(everywhere.clone());
        let mut start = 0;
        while start < all.len() {
            let first = blocks.blocks.len() * tiles;
            let count = all[start..].iter().take_while(|piece| piece.tile < first + tiles).count();
            let pieces = start..start + count;
            let begin = blocks.rows.len();
            for piece in &all[pieces.clone()] {
                let row = ((piece.tile - first) * TILE_ROWS + piece.row) as u16;
                blocks.rows.extend(row..row + piece.count as u16);
            }
            let windows =
                if everywhere.is_some() { 0 } else { blocks.number_of_windows(site, pieces.clone()) };
            let is_interior = |piece: usize| {
                is_interior(site.problem, &site.bundle.members[member], site.positions.extent(piece))
            };
            blocks.blocks.push(RowBlock {
                first,
                is_interior: pieces.clone().all(is_interior),
                pieces,
                positions: begin..blocks.rows.len(),
                outputs: session.range_of(&site.positions.outputs[begin..blocks.rows.len()]),
                windows,
            });
            start += count;
        }
        blocks
    }

    /// The windows of all blocks, if all taps meet the input at all positions.
    fn windows_everywhere<T: Real>(&self, site: &Site<'_, T>) -> Option<Vec<Range<usize>>> {
        let member = &site.bundle.members[self.member];
        let everywhere = |(axis, span): (usize, &Span)| {
            let deltas = &member.deltas[axis];
            let read = Span { first: span.first + member.spans[axis].first, ..*span };
            let inside = Span { first: 0, count: site.problem.axes[axis].input };
            all_meet(deltas, inside).contains(&read).then_some(0..deltas.len())
        };
        site.spans.iter().enumerate().map(everywhere).collect()
    }

    /// The number of the windows of some pieces.
    fn number_of_windows<T: Real>(&mut self, site: &Site<'_, T>, pieces: Range<usize>) -> usize {
        let member = &site.bundle.members[self.member];
        let window = |(axis, of): (usize, &EngineAxis<'_>)| {
            let empty = Span { first: 0, count: 0 };
            let hull =
                pieces.clone().fold(empty, |hull, piece| hull.hull(&site.positions.extent(piece)[axis]));
            let read = Span { first: hull.first + member.spans[axis].first, ..hull };
            meeting(&member.deltas[axis], read, Span { first: 0, count: of.input })
        };
        let windows: Vec<Range<usize>> = site.problem.axes.iter().enumerate().map(window).collect();
        // Most often those of the block before.
        let known = self.windows.iter().rposition(|known| *known == windows);
        known.unwrap_or_else(|| {
            self.windows.push(windows);
            self.windows.len() - 1
        })
    }

    /// A block, and per position of it, its row.
    pub(super) fn block(&self, index: usize) -> (&RowBlock, &[u16]) {
        let block = &self.blocks[index];
        (block, self.rows(block))
    }

    /// Per position of a block, its row.
    pub(super) fn rows(&self, block: &RowBlock) -> &[u16] {
        &self.rows[block.positions.clone()]
    }

    /// Per axis, the taps that meet the input at some positions of a block.
    pub(super) fn windows(&self, block: &RowBlock) -> &[Range<usize>] {
        &self.windows[block.windows]
    }
}
