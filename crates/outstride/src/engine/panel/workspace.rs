//! How much memory a task needs beside tensors and weights.

use outstride_kernels::{Real, TILE_ROWS};

use super::super::axis::{EngineAxis, Span};
use super::super::pack::PackedFilter;
use super::bundle::Bundle;
use super::matrix::{self, RowBlocks, line_len, parts_len};
use super::planes::LaidOut;
use super::reads::positions_in;
use super::rows::KeptPositions;
use super::sums::PanelGroup;
use super::taps::TileTaps;
use super::winograd::Tiles;
use super::{Arithmetic, PanelPlan, panels_of};

impl PanelPlan {
    /// An upper bound of the scratch bytes of one thread.
    pub(crate) fn workspace<T: Real>(&self, axes: &[EngineAxis<'_>], filter: &PackedFilter<T>) -> usize {
        if self.boxes.len() == 0 {
            return 0;
        }
        let spans = self.boxes.get(0);
        let needed = self.most_needed(axes, &spans);
        self.bytes_of_sums(&needed, filter, &spans)
            + self.bytes_of_input(&needed, filter, &spans)
            + self.bytes_of_lists(axes, &needed, filter, &spans)
    }

    /// The most bytes of sums, and of products that they are made of, that wait to be stored.
    fn bytes_of_sums<T: Real>(&self, needed: &[Span], filter: &PackedFilter<T>, spans: &[Span]) -> usize {
        let positions = positions_in(spans);
        let row_bytes = 2 * filter.kernels.lanes() * size_of::<T>();
        let tapless_rows = usize::from(self.stores_planes());
        if self.arithmetic == Arithmetic::Tiles {
            let tiles = self.strips(needed, spans).tiles(positions, TILE_ROWS);
            let rows = (matrix::padded_tiles(tiles) * TILE_ROWS + tapless_rows) * self.waiting_members();
            return (rows * row_bytes).max(matrix::WAITING_SUMS * size_of::<T>());
        }
        let tile = self.tile_rows(filter);
        let rows = self.waiting_tiles(positions.div_ceil(tile)) * tile;
        let of_bundle = |bundle: &Bundle| {
            let of_panel = self.rows_of_panel(bundle, rows, self.transformed_tiles(spans)) * row_bytes;
            let tapless = tapless_rows * bundle.members.len() * row_bytes;
            // Smaller boxes may have more panels at once, within the same limit.
            let panels = self.near_panels(filter, bundle);
            (panels * of_panel).min(self.sum_bytes().max(of_panel)) + panels * tapless
        };
        self.bundles.iter().map(of_bundle).max().unwrap_or(0)
    }

    /// The most bytes of a box of the input, as it is copied and transformed.
    fn bytes_of_input<T: Real>(&self, needed: &[Span], filter: &PackedFilter<T>, spans: &[Span]) -> usize {
        let positions = positions_in(needed);
        match self.arithmetic {
            Arithmetic::Vectors if self.in_place => 0,
            Arithmetic::Vectors => positions * self.blocks.size * self.blocks.iter().len() * size_of::<T>(),
            Arithmetic::Tiles => {
                parts_len(positions, filter) * size_of::<u16>() + line_len(filter) * size_of::<T>()
            }
            Arithmetic::Winograd => {
                (positions * filter.in_channels + self.points_of_box(filter, spans)) * size_of::<T>()
            }
        }
    }

    /// The most bytes of lists that have entries for every position of a box, tap of a phase, or panel that is computed.
    fn bytes_of_lists<T: Real>(
        &self,
        axes: &[EngineAxis<'_>],
        needed: &[Span],
        filter: &PackedFilter<T>,
        spans: &[Span],
    ) -> usize {
        let positions = positions_in(spans);
        let members = self.bundles.iter().map(|bundle| bundle.members.len()).max().unwrap_or(1);
        let in_turns = match self.row_axes() {
            0 => 0,
            row_axes => axes[axes.len() - row_axes..].iter().map(|axis| axis.residues().len()).product(),
        };
        let stores = if self.stores_planes() {
            LaidOut::most_bytes_to_find(positions, in_turns, self.row_axes())
        } else {
            0
        };
        let rows = self.tile_rows(filter);
        let (pieces, of_positions) = match self.arithmetic {
            Arithmetic::Vectors => (positions.div_ceil(rows), 0),
            Arithmetic::Winograd => {
                let (tiles, outputs) = (
                    self.transformed_tiles(spans),
                    self.tilings.iter().map(|tiling| tiling.outputs).product(),
                );
                (positions.div_ceil(rows), Tiles::most_bytes(tiles, outputs, spans.len()))
            }
            Arithmetic::Tiles => {
                let strips = self.strips(needed, spans);
                let of_member = RowBlocks::bytes_of_member(strips.tiles(positions, TILE_ROWS));
                (strips.pieces(positions, TILE_ROWS), members * of_member)
            }
        };
        let panel = PanelGroup::<T>::bytes_of_panel(panels_of(filter).most_segments(), spans.len());
        let of_panels = |bundle: &Bundle| {
            let taps = bundle.most_taps();
            let (panels, of_panel, of_taps) = match self.arithmetic {
                Arithmetic::Vectors => (
                    self.near_panels(filter, bundle),
                    panel,
                    TileTaps::<T>::most_bytes(taps, self.blocks.size),
                ),
                Arithmetic::Winograd => (self.near_panels(filter, bundle), panel, 0),
                Arithmetic::Tiles => (bundle.panels(), panel + matrix::bytes_of_job(filter, taps), 0),
            };
            panels * bundle.members.len() * of_panel + of_taps
        };
        let of_panels = self.bundles.iter().map(of_panels).max().unwrap_or(0);
        let mut counts: Vec<&[usize]> = self.bundles.iter().map(|bundle| &*bundle.counts).collect();
        counts.sort_unstable();
        counts.dedup();
        let shapes = counts.len() * self.boxes.shapes();
        KeptPositions::most_bytes(shapes, positions, pieces, spans.len(), in_turns)
            + stores
            + of_positions
            + of_panels
    }
}
