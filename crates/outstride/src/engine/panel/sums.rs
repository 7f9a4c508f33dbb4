//! Computing the sums of a task, tile by tile.

use std::ops::Range;

use outstride_kernels::{PanelSums, PanelTile, Real};

use super::super::channels::{ChannelBlocks, Input};
use super::super::finish::Scales;
use super::super::pack::Panel;
use super::super::problem::Problem;
use super::bundle::{Bundle, Member};
use super::exact::Exact;
use super::panels_of;
use super::run::Site;
use super::store::PositionStore;
use super::taps::TileTaps;

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

/// One step of the sums of a panel: what is the same for all tiles.
struct Step<'a, T: Real> {
    prepared: &'a Prepared<'a, T>,
    /// The channels that are summed over.
    block: usize,
    weights: StepWeights<'a, T>,
    /// The weights of the step after.
    next: Option<StepWeights<'a, T>>,
    store: Option<&'a PositionStore<'a, T>>,
}

/// The weights of a panel from the first channel of a block on.
#[derive(Clone, Copy)]
struct StepWeights<'a, T> {
    from: &'a [T],
    /// Elements from a tap's to the next's.
    tap_len: usize,
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

    /// The same of one panel of one member.
    pub(super) fn len_of_one(&self) -> usize {
        self.tiles * self.tile_len
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
    /// there are `stores` for every panel and member. Meanwhile it has the weights of its next step fetched, at last those of
    /// the group `after`, and the input of the next tile.
    pub(super) fn compute(
        &self,
        panels: &PanelGroup<'_, T>,
        after: Option<&PanelGroup<'_, T>>,
        taps: &mut TileTaps<T>,
        stores: &[PositionStore<'_, T>],
        sums: &mut [T],
    ) {
        let Site { problem, bundle, positions, .. } = *self.site;
        let steps = bundle.members.len() * self.blocks.iter().len();
        for number in 0..steps {
            let (member, block) = self.member_and_block(number);
            if block == 0 {
                taps.aim(self.site, &bundle.members[member], self.input);
            }
            let next =
                if number + 1 < steps { Some((panels, number + 1)) } else { after.map(|after| (after, 0)) };
            let step_of = |panel: usize| Step {
                prepared: panels.panel(panel, member),
                block,
                weights: self.weights_of_step(panels, panel, number),
                next: next
                    .filter(|(group, _)| panel < group.panels())
                    .map(|(group, number)| self.weights_of_step(group, panel, number)),
                store: stores.get(panel * panels.members + member),
            };
            let of_panels: Vec<Step<'_, T>> = (0..panels.panels()).map(step_of).collect();
            for tile in 0..positions.tiles() {
                taps.point(&problem.axes, &bundle.members[member], positions, tile, self.input, block);
                let rows = problem.filter.kernels.panel_rows_for(positions.pieces[tile].count);
                for (panel, step) in of_panels.iter().enumerate() {
                    let place = panels.place(panel, member, tile);
                    let out = &mut sums[place..place + panels.tile_len];
                    self.compute_tile(step, (tile, rows), &bundle.members[member], taps, out);
                }
            }
        }
    }

    fn member_and_block(&self, step: usize) -> (usize, usize) {
        let blocks = self.blocks.iter().len();
        (step / blocks, step % blocks)
    }

    /// The weights of a panel in a step.
    fn weights_of_step<'a>(
        &self,
        panels: &PanelGroup<'a, T>,
        panel: usize,
        step: usize,
    ) -> StepWeights<'a, T> {
        let (member, block) = self.member_and_block(step);
        let prepared = panels.panel(panel, member);
        let width = prepared.width();
        let first = (block * self.blocks.size * width).min(prepared.weights.len());
        StepWeights {
            from: &prepared.weights[first..],
            tap_len: self.site.problem.filter.in_channels * width,
        }
    }

    /// Computes one step of a tile of so many rows, and stores the sums after the last.
    fn compute_tile(
        &self,
        step: &Step<'_, T>,
        (tile, rows): (usize, usize),
        member: &Member,
        taps: &mut TileTaps<T>,
        out: &mut [T],
    ) {
        let &Step { prepared, block, weights, next, store } = step;
        let kernels = self.site.problem.filter.kernels;
        let channels = self.blocks.channels(block);
        let piece = &self.site.positions.pieces[tile];
        // A kernel fetches a vector per channel: two tiles fetch the whole of a panel two vectors wide.
        let fetched = tile * channels * kernels.lanes();
        let fetch = |tap: usize| {
            let next = next.filter(|_| tile < 2)?;
            Some(next.from.as_ptr().wrapping_add(tap * next.tap_len + fetched))
        };
        let last = block + 1 == self.blocks.iter().len();
        let panel_tile = PanelTile {
            taps: taps.with_weights(|tap| weights.from[tap * weights.tap_len..].as_ptr(), fetch),
            channels,
            resume: block > 0,
            bias: last.then_some(prepared.bias),
            rows: store.filter(|_| last).and_then(|store| store.rows_of_tile(tile)),
        };
        // SAFETY: every row pointer is either a run of zeros or a position that can be read, which has the block's
        // channels side by side; each tap's weights are `channels × width` long. Rows go to some of the positions that the
        // store was made for; each output belongs to one position of one phase, and each task has its own positions and
        // panels.
        let sums = unsafe { kernels.panel(rows, prepared.panel.vectors, &panel_tile, out) };
        if !last || sums == PanelSums::Written {
            return;
        }
        if sums == PanelSums::NotFinite {
            let exact = Exact { site: self.site, member, prepared };
            exact.replace_what_is_not_finite(piece, out);
        }
        let finish = &self.site.problem.finish;
        finish.apply(kernels, &mut out[..piece.count * prepared.width()], prepared.scales);
        if let Some(store) = store {
            store.store(tile..tile + 1, tile, out, out.len());
        }
    }
}
