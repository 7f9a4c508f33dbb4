//! Counting what a plan will do.

use outstride_kernels::{Real, TILE_ROWS};

use super::super::axis::{EngineAxis, Span};
use super::super::pack::PackedFilter;
use super::borders::Borders;
use super::bundle::{Bundle, Member};
use super::winograd::transforms;
use super::{Arithmetic, PanelPlan, panels_of};

/// Elements that Winograd's transforms make.
pub(crate) struct Transformed {
    /// Of inputs.
    pub(crate) points: f64,
    /// That outputs are made of.
    pub(crate) products: f64,
}

impl PanelPlan {
    /// Multiply-adds executed, those with padded columns, unused rows and most of the zero borders included.
    pub(crate) fn executed<T: Real>(&self, axes: &[EngineAxis<'_>], filter: &PackedFilter<T>) -> f64 {
        let of_member = |member: &Member| self.rows_of_member(filter, member) * columns_of(filter, member);
        let executed: f64 = self.bundles.iter().flat_map(|bundle| &bundle.members).map(of_member).sum();
        let (channels, rows) = match self.arithmetic {
            Arithmetic::Vectors | Arithmetic::Winograd => (filter.in_channels, 1.0),
            Arithmetic::Tiles => {
                let row = filter.grain().row_channels();
                (filter.in_channels.next_multiple_of(row), self.rows_of_tiles(axes))
            }
        };
        executed * rows * self.share_of_taps(axes) * (channels * filter.groups) as f64
    }

    /// The share of taps that are computed, because they meet the input at some of the rows that are computed at once.
    fn share_of_taps(&self, axes: &[EngineAxis<'_>]) -> f64 {
        let Borders { share, outer_share, multiplies_zeros, .. } = self.borders;
        let is_all = |count: usize| (count as f64 / self.rows_at_once as f64).min(1.0);
        let last = &axes[axes.len() - 1];
        match self.arithmetic {
            Arithmetic::Winograd => 1.0,
            Arithmetic::Vectors if multiplies_zeros => 1.0,
            // Only rows of the same position meet the input at the same taps for certain.
            _ if self.batch_is_fastest() => 1.0 - share * is_all(axes[0].output),
            // Or those of positions along the last axis, if it is not for that: few of them are all outside.
            _ => {
                (1.0 - outer_share * is_all(last.positions().count))
                    * last.share_met_together(self.rows_at_once)
            }
        }
    }

    /// Rows of panels that phases share, of which each is stored by itself, those at the border piece by piece. Where a single panel
    /// has all phases, its rows follow each other in the output, and count a third.
    pub(crate) fn shared_rows<T: Real>(&self, filter: &PackedFilter<T>) -> f64 {
        if self.stores_planes() {
            return 0.0;
        }
        let of_member = |member: &Member| {
            let positions: f64 = member.spans.iter().map(|span| span.count as f64).product();
            let rows = if member.panels.len() == 1 { 1.0 / 3.0 } else { member.panels.len() as f64 };
            positions * rows * filter.groups as f64
        };
        let members = self.bundles.iter().flat_map(|bundle| &bundle.members);
        members.filter(|member| member.shared).map(of_member).sum()
    }

    /// How often the sums of a panel are computed, each time with lists of its own: those of every box and phase.
    pub(crate) fn jobs<T: Real>(&self, filter: &PackedFilter<T>) -> usize {
        let of_box: usize = self.bundles.iter().map(Bundle::jobs).sum();
        of_box.saturating_mul(self.boxes.len()).saturating_mul(filter.groups)
    }

    /// How often the weights are loaded, each time for as many rows as kernels compute at once.
    pub(crate) fn sweeps<T: Real>(&self, filter: &PackedFilter<T>) -> usize {
        if self.boxes.len() == 0 {
            return 0;
        }
        let rows = self.transformed_tiles(&self.boxes.get(0));
        self.passes().saturating_mul(rows.div_ceil(filter.kernels.panel_rows()))
    }

    /// What the transforms make of inputs, and outputs of.
    pub(crate) fn transformed<T: Real>(&self, filter: &PackedFilter<T>) -> Transformed {
        let mut transformed = Transformed { points: 0.0, products: 0.0 };
        for bundle in self.bundles.iter() {
            let spans: Vec<Span> = bundle.counts.iter().map(|&count| Span { first: 0, count }).collect();
            let rows = self.transformed_tiles(&spans) as f64 * (self.points * filter.groups) as f64;
            transformed.points += rows * (transforms(bundle) * filter.in_channels) as f64;
            let columns: f64 = bundle.members.iter().map(|member| columns_of(filter, member)).sum();
            transformed.products += rows * columns;
        }
        transformed
    }

    /// Rows that a member multiplies by weights: those of every tap of a position, or of every point of a tile.
    fn rows_of_member<T: Real>(&self, filter: &PackedFilter<T>, member: &Member) -> f64 {
        match &filter.winograd {
            Ok(weights) if self.arithmetic == Arithmetic::Winograd => {
                let points = weights.points(member.panels.start).len();
                self.transformed_tiles(&member.spans) as f64 * points as f64
            }
            _ => {
                let positions: f64 = member.spans.iter().map(|span| span.count as f64).product();
                let taps = match &filter.matrix {
                    Ok(weights) if self.arithmetic == Arithmetic::Tiles => {
                        weights.steps_of_taps(&member.deltas)
                    }
                    _ => member.taps(),
                };
                positions * taps as f64
            }
        }
    }

    /// Of the tiles of a box, the rows per position.
    fn rows_of_tiles(&self, axes: &[EngineAxis<'_>]) -> f64 {
        if self.boxes.len() == 0 {
            return 1.0;
        }
        let spans = self.boxes.get(0);
        let tiles = self.tiles_of_box(axes, &spans);
        let positions: usize = spans.iter().map(|span| span.count).product();
        (tiles.next_multiple_of(2) * TILE_ROWS) as f64 / positions.max(1) as f64
    }

    /// Cycles spent on pointing taps and on calling kernels.
    pub(crate) fn overhead<T: Real>(&self, filter: &PackedFilter<T>) -> f64 {
        let rows = filter.kernels.panel_rows();
        let of_bundle = |bundle: &Bundle| {
            let tiles = self.waiting_tiles(self.positions_of_box().div_ceil(rows));
            let waiting = tiles * rows * bundle.members.len();
            let passes = bundle.panels().div_ceil(self.panels_at_once(filter, bundle, waiting));
            let of_member = |member: &Member| {
                let positions: f64 = member.spans.iter().map(|span| span.count as f64).product();
                let pointing = (100.0 + 25.0 * member.taps() as f64) * passes as f64;
                positions / rows as f64 * (pointing + 40.0 * member.panels.len() as f64)
            };
            bundle.members.iter().map(of_member).sum::<f64>()
        };
        let once = self.bundles.iter().map(of_bundle).sum::<f64>();
        once * (self.blocks.iter().len() * filter.groups) as f64
    }
}

/// Columns of all panels of a member.
fn columns_of<T: Real>(filter: &PackedFilter<T>, member: &Member) -> f64 {
    let panels = &panels_of(filter).panels[member.panels.clone()];
    panels.iter().map(|panel| panel.vectors * filter.kernels.lanes()).sum::<usize>() as f64
}
