//! Computing the sums of a task, tile by tile.

use std::ops::Range;

use outstride_kernels::{PanelTile, Real};

use super::super::channels::{ChannelBlocks, Input};
use super::super::finish::Scales;
use super::super::pack::Panel;
use super::super::problem::Problem;
use super::bundle::Bundle;
use super::exact::Exact;
use super::panels_of;
use super::run::Site;
use super::store::PositionStore;
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
    /// Where sums are integers.
    pub(super) scales: Option<Scales<'a>>,
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

/// Sums by multiply-adds of vectors.
pub(super) struct VectorSums<'a, T: Real> {
    pub(super) site: &'a Site<'a, T>,
    pub(super) input: &'a Input<'a, T>,
    pub(super) blocks: ChannelBlocks,
}

impl<'a, T: Real> PanelGroup<'a, T> {
    /// The panels `range` of every member.
    pub(super) fn new(
        problem: &'a Problem<'_, T>,
        group: usize,
        bundle: &Bundle,
        range: Range<usize>,
        tiles: usize,
        tile_len: usize,
    ) -> Self {
        let filter = problem.filter;
        let prepare = |number: usize| {
            bundle.members.iter().map(move |member| {
                let index = member.panels.start + number;
                let panel = &panels_of(filter).panels[index];
                let weights = filter.panel_weights(group, panel);
                let scaling = problem.finish.scaling;
                let scales = scaling.map(|scaling| scaling.columns(filter.panel_columns(group, index)));
                Prepared { panel, weights, bias: filter.panel_bias(group, index), scales }
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

    /// Where the sums go if they are stored position by position, `[panel][member]`.
    pub(super) fn position_stores<'s>(&self, site: &'s Site<'s, T>) -> Vec<PositionStore<'s, T>> {
        let store = |(index, prepared)| {
            let member: usize = index;
            PositionStore::new(site, &site.bundle.members[member % self.members], prepared)
        };
        self.panels.iter().enumerate().map(store).collect()
    }
}

impl<T: Real> VectorSums<'_, T> {
    /// Computes and activates the sums of every tile of a panel group, `[row][column]` each, and stores them at once if
    /// there are `stores` for every panel and member. Meanwhile it has the weights of its next step fetched, and at last
    /// those of the group `after`.
    pub(super) fn compute(
        &self,
        panels: &PanelGroup<'_, T>,
        after: Option<&PanelGroup<'_, T>>,
        taps: &mut Taps<T>,
        stores: &[PositionStore<'_, T>],
        sums: &mut [T],
    ) {
        let Site { problem, bundle, positions, .. } = *self.site;
        let steps = bundle.members.len() * self.blocks.iter().len();
        for step in 0..steps {
            let (member, block) = self.member_and_block(step);
            if block == 0 {
                taps.aim(&problem.axes, &bundle.members[member], self.input);
            }
            for tile in 0..positions.tiles() {
                taps.point(&problem.axes, &bundle.members[member], positions, tile, self.input, block);
                for panel in 0..panels.panels() {
                    let next = if step + 1 < steps {
                        Some((panels, step + 1))
                    } else {
                        after.filter(|after| panel < after.panels()).map(|after| (after, 0))
                    };
                    let next = next.map(|(group, step)| self.weights_of_step(group, panel, step));
                    let place = panels.place(panel, member, tile);
                    let out = &mut sums[place..place + panels.tile_len];
                    let finished = self.compute_tile(panels, (panel, step, tile), next, taps, out);
                    if let Some(store) = stores.get(panel * panels.members + member).filter(|_| finished) {
                        store.store(tile..tile + 1, tile, out, panels.tile_len);
                    }
                }
            }
        }
    }

    fn member_and_block(&self, step: usize) -> (usize, usize) {
        let blocks = self.blocks.iter().len();
        (step / blocks, step % blocks)
    }

    /// The weights of a panel from the first channel of a step's block on, and the elements from a tap's to the next's.
    fn weights_of_step<'a>(&self, panels: &PanelGroup<'a, T>, panel: usize, step: usize) -> (&'a [T], usize) {
        let (member, block) = self.member_and_block(step);
        let prepared = panels.panel(panel, member);
        let width = prepared.width();
        let first = (block * self.blocks.size * width).min(prepared.weights.len());
        (&prepared.weights[first..], self.site.problem.filter.in_channels * width)
    }

    /// Computes one step of a tile. Returns whether it was the last.
    fn compute_tile(
        &self,
        panels: &PanelGroup<'_, T>,
        (panel, step, tile): (usize, usize, usize),
        next: Option<(&[T], usize)>,
        taps: &mut Taps<T>,
        out: &mut [T],
    ) -> bool {
        let kernels = self.site.problem.filter.kernels;
        let (member, block) = self.member_and_block(step);
        let channels = self.blocks.channels(block);
        let prepared = panels.panel(panel, member);
        let (weights, tap_len) = self.weights_of_step(panels, panel, step);
        let rows = self.site.positions.pieces[tile].count;
        // A kernel fetches a vector per channel: two tiles fetch the whole of a panel two vectors wide.
        let fetched = tile * channels * kernels.lanes();
        let fetch = |tap: usize| match next {
            Some((next, tap_len)) if tile < 2 => next.as_ptr().wrapping_add(tap * tap_len + fetched),
            _ => weights.as_ptr(),
        };
        let last = block + 1 == self.blocks.iter().len();
        let step = PanelTile {
            taps: taps.with_weights(|tap| weights[tap * tap_len..].as_ptr(), fetch),
            channels,
            resume: block > 0,
            bias: last.then_some(prepared.bias),
        };
        // SAFETY: every row pointer is either a run of zeros or a position that can be read, which has the block's
        // channels side by side; each tap's weights are `channels × width` long.
        let finite =
            unsafe { kernels.panel(kernels.panel_rows_for(rows), prepared.panel.vectors, &step, out) };
        if last {
            if !finite {
                let member = &self.site.bundle.members[member];
                let exact = Exact { site: self.site, member, prepared };
                exact.replace_what_is_not_finite(&self.site.positions.pieces[tile], out);
            }
            let sums = &mut out[..rows * prepared.width()];
            self.site.problem.finish.apply(kernels, sums, prepared.scales);
        }
        last
    }
}
