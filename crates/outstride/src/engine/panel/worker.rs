//! Computing the tiles of a task.

use std::ops::Range;

use outstride_kernels::{MAX_ROWS, PanelTap, PanelTile, Real};

use super::super::axis::Span;
use super::super::gather::Rows;
use super::super::pack::Panel;
use super::super::problem::Problem;
use super::rows::{AxisTable, Row};
use super::store::Run;
use super::{Class, panels_of};

/// The buffers with which a task computes its tiles.
pub(super) struct Worker<'a, T: Real> {
    pub(super) problem: &'a Problem<'a, T>,
    pub(super) group: usize,
    pub(super) taps: Vec<PanelTap<T>>,
    /// Of each of `taps`, its number among the panel's taps.
    pub(super) numbers: Vec<usize>,
    pub(super) tile: Vec<T>,
    pub(super) zeros: Vec<T>,
    pub(super) rows: Vec<Row>,
    /// Of each of `rows`, its index along every axis.
    pub(super) indices: Vec<usize>,
    /// The offsets of one row's taps while they are summed axis by axis.
    pub(super) offsets: Vec<isize>,
    /// Per axis, the taps that the current rows can meet the input with.
    pub(super) windows: Vec<Range<usize>>,
}

/// What storing a panel's tiles needs, computed once for many tiles.
pub(super) struct Prepared<'a, T> {
    pub(super) panel: &'a Panel,
    pub(super) weights: &'a [T],
    /// One value per column.
    pub(super) bias: Vec<T>,
    pub(super) runs: Vec<Run>,
}

impl<'a, T: Real> Worker<'a, T> {
    pub(super) fn new(problem: &'a Problem<'a, T>, group: usize) -> Self {
        let lanes = problem.filter.kernels.lanes();
        Worker {
            problem,
            group,
            taps: Vec::new(),
            numbers: Vec::new(),
            tile: vec![T::default(); MAX_ROWS * 2 * lanes],
            zeros: vec![T::default(); problem.filter.in_channels],
            rows: Vec::new(),
            indices: Vec::new(),
            offsets: Vec::new(),
            windows: Vec::new(),
        }
    }

    /// Computes the panels `range` of a class at the positions `spans`.
    pub(super) fn run(
        &mut self,
        class: &Class,
        spans: &[Span],
        range: Range<usize>,
        rows: &Rows<'_, T>,
        batch_innermost: bool,
    ) {
        let filter = self.problem.filter;
        let tables: Vec<AxisTable> = (0..spans.len())
            .map(|axis| {
                AxisTable::new(&self.problem.axes[axis], &spans[axis], &class.deltas[axis], rows.stride(axis))
            })
            .collect();
        let positions: usize = spans.iter().map(|span| span.count).product();
        let tiles = positions.div_ceil(filter.kernels.panel_rows());
        let per_tile = positions.div_ceil(tiles);
        let mut order: Vec<usize> = (0..spans.len()).collect();
        if batch_innermost {
            order.rotate_left(1);
        }
        let panels: Vec<Prepared<'_, T>> =
            panels_of(filter).panels[range].iter().map(|panel| self.prepare(panel)).collect();
        let mut index = vec![0usize; spans.len()];
        let mut done = 0;
        while done < positions {
            let count = per_tile.min(positions - done);
            self.collect_rows(&tables, spans, &order, &mut index, count, rows.origin());
            done += count;
            for panel in &panels {
                self.tile(panel, spans);
            }
        }
    }

    pub(super) fn prepare(&self, panel: &'a Panel) -> Prepared<'a, T> {
        let filter = self.problem.filter;
        let mut bias = vec![T::default(); panel.vectors * filter.kernels.lanes()];
        for segment in panels_of(filter).segments(panel) {
            let first = self.group * filter.out_channels + segment.first_channel;
            let values = &filter.bias[first..first + segment.channels];
            bias[segment.column..segment.column + segment.channels].copy_from_slice(values);
        }
        Prepared { panel, weights: filter.panel_weights(self.group, panel), bias, runs: self.runs(panel) }
    }

    /// Computes, activates and stores one tile.
    fn tile(&mut self, prepared: &Prepared<'_, T>, spans: &[Span]) {
        let mut tile = std::mem::take(&mut self.tile);
        self.compute(prepared, &mut tile);
        self.tile = tile;
        self.store(prepared, spans);
    }

    /// Computes and activates the tile of the current rows, `[row][column]`.
    pub(super) fn compute(&mut self, prepared: &Prepared<'_, T>, out: &mut [T]) {
        let rows = self.rows.len();
        let filter = self.problem.filter;
        let width = prepared.bias.len();
        let tap_len = filter.in_channels * width;
        for (tap, &number) in self.taps.iter_mut().zip(&self.numbers) {
            tap.weights = prepared.weights[number * tap_len..].as_ptr();
        }
        let tile = PanelTile { taps: &self.taps, channels: filter.in_channels, bias: &prepared.bias };
        let kernel_rows = filter.kernels.panel_rows_for(rows);
        // SAFETY: every row pointer is either the run of zeros or an input position inside the tensor (or its copy),
        // which has `in_channels` neighbours; the weights of each tap are `in_channels × width` long.
        let finite = unsafe { filter.kernels.panel(kernel_rows, prepared.panel.vectors, &tile, out) };
        if !finite {
            self.rescue(prepared, rows, out);
        }
        filter.kernels.activate(&mut out[..rows * width], &self.problem.activation);
    }

    /// Sums a tile again, product by product, leaving out what is only padding: zero rows and weights that stand in
    /// for taps a phase does not have. Those multiply to NaN where a real value is infinite or NaN.
    fn rescue(&self, prepared: &Prepared<'_, T>, rows: usize, out: &mut [T]) {
        let Prepared { panel, weights, bias, .. } = prepared;
        let filter = self.problem.filter;
        let width = bias.len();
        let zeros = self.zeros.as_ptr();
        for segment in panels_of(filter).segments(panel) {
            let phase = filter.phase(segment.phase);
            for row in 0..rows {
                for column in segment.column..segment.column + segment.channels {
                    let mut sum = T::default();
                    for (tap, &number) in self.taps.iter().zip(&self.numbers) {
                        if tap.rows[row] == zeros || !panel.tap_feeds(number, &phase) {
                            continue;
                        }
                        for channel in 0..filter.in_channels {
                            // SAFETY: as for the kernel: a row has `in_channels` readable elements.
                            let value = unsafe { tap.rows[row].add(channel).read() };
                            let at = (number * filter.in_channels + channel) * width + column;
                            sum = sum.plus_product(value, weights[at]);
                        }
                    }
                    out[row * width + column] = sum.plus(bias[column]);
                }
            }
        }
    }
}
