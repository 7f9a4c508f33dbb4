//! Computing the sums of a task, tile by tile.

use std::ops::Range;

use outstride_kernels::{Fetch, PanelKernels, PanelSums, PanelTile, Real, TilePanel, lines_fetched_by_tap};

use super::super::channels::{ChannelBlocks, Input};
use super::super::finish::Scales;
use super::super::pack::PackedFilter;
use super::super::panels::Panel;
use super::super::problem::Problem;
use super::super::weights::WeightRun;
use super::bundle::{Bundle, Member};
use super::exact::Exact;
use super::panels_of;
use super::run::Site;
use super::store::PositionStore;
use super::taps::TileTaps;
use crate::aligned::LINE;

/// Panels of a group, as every member of a bundle has them.
pub(super) struct PanelGroup<'a, T: 'static> {
    /// `[panel][member]`
    panels: Vec<Prepared<'a, T>>,
    members: usize,
    /// From a tile's sums to the next.
    tile_len: usize,
    /// Whose sums are kept; a single one if they are stored before those of the next.
    tiles: usize,
    /// Room behind these, for a row of what no tap reaches, if that is stored with them.
    tapless_len: usize,
}

/// A panel with its weights and bias in a group.
pub(super) struct Prepared<'a, T: 'static> {
    pub(super) panel: &'a Panel,
    weights: WeightRun<'a, T>,
    /// One value per column.
    pub(super) bias: &'a [T],
    /// Where sums are integers.
    pub(super) scales: Option<Scales<'a>>,
}

impl<T: Real> Prepared<'_, T> {
    /// Columns of a row.
    pub(super) fn width(&self) -> usize {
        self.bias.len()
    }

    /// The weight of a column at a row of `tap × channels + channel`.
    pub(super) fn weight(&self, row: usize, column: usize) -> T {
        self.weights.get(row * self.width() + column)
    }
}

/// Sums by multiply-adds of vectors.
pub(super) struct VectorSums<'a, T: Real> {
    pub(super) site: &'a Site<'a, T>,
    pub(super) input: &'a Input<'a, T>,
    pub(super) blocks: ChannelBlocks,
    /// Whether zeros around the input are multiplied rather than left out.
    pub(super) with_zeros: bool,
}

/// A part of the sums of a member: those over a block of channels.
#[derive(Clone, Copy)]
struct Step {
    member: usize,
    block: usize,
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
                let scales = scaling.map(|scaling| scaling.columns(filter, group, index));
                Prepared { panel, weights, bias: filter.panel_bias(group, index), scales }
            })
        };
        PanelGroup {
            panels: range.flat_map(prepare).collect(),
            members: bundle.members.len(),
            tile_len,
            tiles,
            tapless_len: if bundle.row_axes > 0 { 2 * filter.kernels.lanes() } else { 0 },
        }
    }

    /// The same, with weights in the type that is computed with.
    pub(super) fn widened(mut self, filter: &'a PackedFilter<T>, group: usize) -> Self {
        for prepared in &mut self.panels {
            prepared.weights = filter.computed_panel_weights(group, prepared.panel);
        }
        self
    }

    /// The panel kernels that can read their weights.
    fn kernels(&self) -> PanelKernels<T> {
        self.panels[0].weights.panels()
    }

    /// Bytes of the weights of a tap at so many channels, of the widest panel.
    fn tap_bytes(&self, channels: usize) -> usize {
        let width = self.panels.iter().map(Prepared::width).max().unwrap_or(0);
        channels * width * self.panels[0].weights.source.dtype().size()
    }

    /// The most bytes that a panel of a member takes while it is computed, of so many segments in so many axes: in this group, in
    /// the one behind it, where it is stored, and as kernels see it.
    pub(super) fn bytes_of_panel(segments: usize, axes: usize) -> usize {
        let store = PositionStore::<T>::most_bytes(segments, axes);
        2 * size_of::<Prepared<'_, T>>() + store + size_of::<TilePanel<'_, T>>()
    }

    /// Elements that the sums of all tiles take.
    pub(super) fn len(&self) -> usize {
        self.panels.len() * self.len_of_one()
    }

    /// The same of one panel of one member.
    pub(super) fn len_of_one(&self) -> usize {
        self.place_of_tapless() + self.tapless_len
    }

    /// Where a row of what no tap reaches begins among these.
    pub(super) fn place_of_tapless(&self) -> usize {
        self.tiles * self.tile_len
    }

    pub(super) fn tile_len(&self) -> usize {
        self.tile_len
    }

    pub(super) fn panels(&self) -> usize {
        self.panels.len() / self.members
    }

    pub(super) fn panel(&self, panel: usize, member: usize) -> &Prepared<'a, T> {
        &self.panels[self.index(panel, member)]
    }

    /// Where a tile's sums begin.
    pub(super) fn place(&self, panel: usize, member: usize, tile: usize) -> usize {
        self.index(panel, member) * self.len_of_one() + self.place_of_tile(tile)
    }

    /// The same among those of one panel of one member.
    fn place_of_tile(&self, tile: usize) -> usize {
        if self.tiles == 1 { 0 } else { tile * self.tile_len }
    }

    /// Of a panel of a member, among those of all.
    fn index(&self, panel: usize, member: usize) -> usize {
        panel * self.members + member
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
        let kernels = panels.kernels();
        let steps = bundle.members.len() * self.blocks.iter().len();
        for number in 0..steps {
            let step = self.step(number);
            let next =
                if number + 1 < steps { Some((panels, number + 1)) } else { after.map(|after| (after, 0)) };
            let next = next.map(|(group, number)| (group, self.step(number)));
            let member = &bundle.members[step.member];
            if step.block == 0 {
                taps.aim(self.site, member, self.input, self.with_zeros);
            }
            let lines_of_next = next
                .map_or(0, |(group, next)| group.tap_bytes(self.blocks.channels(next.block)).div_ceil(LINE));
            let mut of_panels = self.tile_panels(panels, step, next, sums);
            for (tile, piece) in positions.pieces.iter().enumerate() {
                taps.point(&problem.axes, member, positions, tile, self.input, step.block);
                let place = panels.place_of_tile(tile);
                let panel_tile = self.panel_tile(step, tile, place, lines_of_next, taps);
                let rows = kernels.rows_for(piece.count);
                if self.is_last(step) {
                    for (number, of_panel) in of_panels.iter_mut().enumerate() {
                        let store = stores.get(panels.index(number, step.member));
                        of_panel.to = store.and_then(|store| store.output_rows(tile));
                    }
                }
                // SAFETY: every row pointer is either a run of zeros or a position that can be read, which has the block's
                // channels side by side; a panel's weights are `channels × width` long at every tap. Rows go to some of the
                // positions that the stores were made for; each output belongs to one position of one phase, and each task has
                // its own positions and panels.
                unsafe { kernels.compute(rows, &panel_tile, &mut of_panels) };
                if !self.is_last(step) {
                    continue;
                }
                for (number, of_panel) in of_panels.iter_mut().enumerate() {
                    if of_panel.became != PanelSums::Written {
                        let prepared = panels.panel(number, step.member);
                        let sums = &mut of_panel.sums[place..][..panels.tile_len];
                        self.finish_tile(member, prepared, tile, of_panel.became, sums);
                        if let Some(store) = stores.get(panels.index(number, step.member)) {
                            store.store(tile..tile + 1, tile, sums, panels.tile_len);
                        }
                    }
                }
            }
        }
    }

    fn step(&self, number: usize) -> Step {
        let blocks = self.blocks.iter().len();
        Step { member: number / blocks, block: number % blocks }
    }

    fn is_last(&self, step: Step) -> bool {
        step.block + 1 == self.blocks.iter().len()
    }

    /// What kernels need to know of the panels of a group in a step, and of the one after it.
    fn tile_panels<'s>(
        &self,
        panels: &PanelGroup<'s, T>,
        step: Step,
        next: Option<(&PanelGroup<'_, T>, Step)>,
        sums: &'s mut [T],
    ) -> Vec<TilePanel<'s, T>> {
        let len = panels.len_of_one();
        let of_panel = |(number, sums): (usize, &'s mut [T])| {
            let prepared = panels.panel(number, step.member);
            let weights = self.weights_of_step(prepared, step.block);
            let next = next.filter(|(group, _)| number < group.panels());
            let next =
                next.map(|(group, next)| self.weights_of_step(group.panel(number, next.member), next.block));
            TilePanel {
                vectors: prepared.panel.vectors,
                weights,
                next: next.unwrap_or(weights),
                sums: &mut sums[step.member * len..][..len],
                bias: self.is_last(step).then_some(prepared.bias),
                to: None,
                became: PanelSums::Kept,
            }
        };
        sums.chunks_exact_mut(panels.members * len).take(panels.panels()).enumerate().map(of_panel).collect()
    }

    /// The weights of a panel from the first channel of a block on.
    fn weights_of_step(&self, prepared: &Prepared<'_, T>, block: usize) -> *const u8 {
        prepared.weights.pointer(block * self.blocks.size * prepared.width())
    }

    /// What kernels need to know of a tile that the taps are pointed at. Of the next step's weights, there are so many lines of
    /// every tap.
    fn panel_tile<'t>(
        &'t self,
        step: Step,
        tile: usize,
        place: usize,
        lines_of_next: usize,
        taps: &'t TileTaps<T>,
    ) -> PanelTile<'t, T> {
        let Site { problem, positions, .. } = *self.site;
        let channels = self.blocks.channels(step.block);
        let piece = &positions.pieces[tile];
        let fetched = tile * lines_fetched_by_tap(channels);
        PanelTile {
            rows: taps.rows(),
            taps: taps.taps(),
            channels,
            channels_of_tap: problem.filter.in_channels,
            resume: step.block > 0,
            chain: usize::MAX,
            place,
            distances: &positions.outputs()[piece.first..piece.first + piece.count],
            fetch: if fetched < lines_of_next {
                Fetch::Weights(fetched)
            } else {
                Fetch::Inputs(taps.next_inputs(positions, tile), piece.count * channels)
            },
        }
    }

    /// Activates the sums of a tile, all steps of which are done.
    fn finish_tile(
        &self,
        member: &Member,
        prepared: &Prepared<'_, T>,
        tile: usize,
        became: PanelSums,
        sums: &mut [T],
    ) {
        let Site { problem, positions, .. } = *self.site;
        let piece = &positions.pieces[tile];
        if became == PanelSums::NotFinite {
            let exact = Exact { site: self.site, member, prepared };
            exact.replace_what_is_not_finite(piece, sums);
        }
        let sums = &mut sums[..piece.count * prepared.width()];
        problem.finish.apply(problem.filter.kernels, sums, prepared.scales);
    }
}
