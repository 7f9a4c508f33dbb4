//! Computing the sums of a task, tile by tile.

use std::ops::Range;

use outstride_kernels::{PanelTile, Real};

use super::super::pack::{PackedFilter, Panel};
use super::super::problem::Problem;
use super::bundle::Bundle;
use super::exact::Exact;
use super::input::{ChannelBlocks, Input};
use super::panels_of;
use super::rows::Positions;
use super::store::store_positions;
use super::taps::Taps;

/// Panels of a group, as every member of a bundle has them.
pub(super) struct PanelGroup<'a, T> {
    /// `[panel][member]`
    panels: Vec<Prepared<'a, T>>,
    members: usize,
    /// From a tile's sums to the next.
    tile_len: usize,
    tiles: usize,
}

/// A panel with its weights and bias in a group.
pub(super) struct Prepared<'a, T> {
    pub(super) panel: &'a Panel,
    weights: &'a [T],
    /// One value per column.
    pub(super) bias: &'a [T],
}

impl<T: Copy> Prepared<'_, T> {
    /// Columns of a row.
    pub(super) fn width(&self) -> usize {
        self.bias.len()
    }

    /// The weight of a column at a row of `tap × channels + channel`.
    pub(super) fn weight(&self, row: usize, column: usize) -> T {
        self.weights[row * self.width() + column]
    }
}

/// What the sums of a task are made of, beside panels.
pub(super) struct Ingredients<'a, T: Real> {
    pub(super) problem: &'a Problem<'a, T>,
    pub(super) bundle: &'a Bundle,
    pub(super) positions: &'a Positions,
    pub(super) input: &'a Input<'a, T>,
    pub(super) blocks: ChannelBlocks,
    pub(super) group: usize,
}

impl<'a, T: Real> PanelGroup<'a, T> {
    /// The panels `range` of every member.
    pub(super) fn new(
        filter: &'a PackedFilter<T>,
        group: usize,
        bundle: &Bundle,
        range: Range<usize>,
        tiles: usize,
        tile_len: usize,
    ) -> Self {
        let prepare = |number: usize| {
            bundle.members.iter().map(move |member| {
                let index = member.panels.start + number;
                let panel = &panels_of(filter).panels[index];
                let weights = filter.panel_weights(group, panel);
                Prepared { panel, weights, bias: filter.panel_bias(group, index) }
            })
        };
        PanelGroup {
            panels: range.flat_map(prepare).collect(),
            members: bundle.members.len(),
            tile_len,
            tiles,
        }
    }

    /// Elements that the sums of all tiles take.
    pub(super) fn len(&self) -> usize {
        self.panels.len() * self.tiles * self.tile_len
    }

    pub(super) fn tile_len(&self) -> usize {
        self.tile_len
    }

    pub(super) fn panels(&self) -> usize {
        self.panels.len() / self.members
    }

    pub(super) fn panel(&self, panel: usize, member: usize) -> &Prepared<'a, T> {
        &self.panels[panel * self.members + member]
    }

    /// Where a tile's sums begin.
    pub(super) fn place(&self, panel: usize, member: usize, tile: usize) -> usize {
        ((panel * self.members + member) * self.tiles + tile) * self.tile_len
    }

    /// Computes and activates the sums of every tile, `[row][column]` each. Meanwhile it has the weights of its next
    /// step fetched, and at last those of the group `after`.
    pub(super) fn compute(
        &self,
        from: &Ingredients<'_, T>,
        after: Option<&PanelGroup<'_, T>>,
        taps: &mut Taps<T>,
        sums: &mut [T],
    ) {
        let steps = from.bundle.members.len() * from.blocks.iter().len();
        for step in 0..steps {
            for tile in 0..from.positions.tiles() {
                let (member, block) = (step / from.blocks.iter().len(), step % from.blocks.iter().len());
                let of = &from.bundle.members[member];
                taps.point(&from.problem.axes, of, from.positions, tile, from.input, block);
                for panel in 0..self.panels() {
                    let next = if step + 1 < steps {
                        Some((self, step + 1))
                    } else {
                        after.filter(|after| panel < after.panels()).map(|after| (after, 0))
                    };
                    let next = next.map(|(group, step)| group.weights_of_step(from, panel, step));
                    let place = self.place(panel, member, tile);
                    let out = &mut sums[place..place + self.tile_len];
                    self.compute_tile(from, (panel, step, tile), next, taps, out);
                }
            }
        }
    }

    /// The weights of a panel from the first channel of a step's block on, and the elements from a tap's to the next's.
    fn weights_of_step(&self, from: &Ingredients<'_, T>, panel: usize, step: usize) -> (&'a [T], usize) {
        let (member, block) = (step / from.blocks.iter().len(), step % from.blocks.iter().len());
        let prepared = self.panel(panel, member);
        let width = prepared.width();
        let first = (block * from.blocks.size * width).min(prepared.weights.len());
        (&prepared.weights[first..], from.problem.filter.in_channels * width)
    }

    fn compute_tile(
        &self,
        from: &Ingredients<'_, T>,
        (panel, step, tile): (usize, usize, usize),
        next: Option<(&[T], usize)>,
        taps: &mut Taps<T>,
        out: &mut [T],
    ) {
        let kernels = from.problem.filter.kernels;
        let block_count = from.blocks.iter().len();
        let (member, block) = (step / block_count, step % block_count);
        let channels = from.blocks.channels(block);
        let prepared = self.panel(panel, member);
        let (weights, tap_len) = self.weights_of_step(from, panel, step);
        let rows = from.positions.pieces[tile].count;
        // A kernel fetches a vector per channel: two tiles fetch the whole of a panel two vectors wide.
        let fetched = tile * channels * kernels.lanes();
        let fetch = |tap: usize| match next {
            Some((next, tap_len)) if tile < 2 => next.as_ptr().wrapping_add(tap * tap_len + fetched),
            _ => weights.as_ptr(),
        };
        let last = block + 1 == block_count;
        let step = PanelTile {
            taps: taps.with_weights(|tap| weights[tap * tap_len..].as_ptr(), fetch),
            channels,
            resume: block > 0,
            bias: last.then_some(prepared.bias),
        };
        let kernel_rows = kernels.panel_rows_for(rows);
        // SAFETY: every row pointer is either a run of zeros or a position that can be read, which has the block's
        // channels side by side; each tap's weights are `channels × width` long.
        let finite = unsafe { kernels.panel(kernel_rows, prepared.panel.vectors, &step, out) };
        if last {
            if !finite {
                self.rescue(from, member, prepared, tile, out);
            }
            kernels.activate(&mut out[..rows * prepared.width()], &from.problem.activation);
        }
    }

    /// Stores every panel position by position.
    pub(super) fn store_positions(
        &self,
        problem: &Problem<'_, T>,
        group: usize,
        bundle: &Bundle,
        positions: &Positions,
        sums: &[T],
    ) {
        for panel in 0..self.panels() {
            for (number, member) in bundle.members.iter().enumerate() {
                let prepared = self.panel(panel, number);
                let sums = &sums[self.place(panel, number, 0)..];
                store_positions(problem, group, member, prepared, positions, sums, self.tile_len);
            }
        }
    }

    /// Sums again what is not finite.
    #[cold]
    fn rescue(
        &self,
        from: &Ingredients<'_, T>,
        member: usize,
        prepared: &Prepared<'_, T>,
        tile: usize,
        out: &mut [T],
    ) {
        let Ingredients { problem, group, blocks, .. } = *from;
        let exact = Exact { problem, group, member: &from.bundle.members[member], prepared, blocks };
        let piece = &from.positions.pieces[tile];
        for (row, sums) in out.chunks_exact_mut(prepared.width()).enumerate().take(piece.count) {
            // The bias was added already; it may itself be what is not finite.
            let doubtful: Vec<bool> = sums.iter().map(|sum| !sum.is_finite()).collect();
            if !doubtful.contains(&true) {
                continue;
            }
            exact.replace(from.positions.index(piece.first + row), sums, |sum| !sum.is_finite());
            for ((sum, &bias), doubtful) in sums.iter_mut().zip(prepared.bias).zip(doubtful) {
                if doubtful {
                    *sum = sum.plus(bias);
                }
            }
        }
    }
}
