//! Storing panels into channels-first outputs: a tile holds one value per channel and position, whereas memory wants
//! runs of positions per channel.
//!
//! The phases of the last axis that interleave in memory form a *bundle*. Their tiles are computed for the same stretch
//! of a row and then woven together: per channel, the values of all phases in the order of the outputs.

use std::ops::Range;

use outstride_kernels::{MAX_ROWS, Real};

use super::super::axis::{EngineAxis, Span};
use super::super::gather::Rows;
use super::super::pack::{PackedFilter, Panels};
use super::rows::AxisTable;
use super::worker::{Prepared, Worker};
use super::{WEIGHT_BYTES, panels_of};

/// The most phases that are woven together.
const MAX_PHASES: usize = 16;

/// Tiles that wait to be woven: of so many rows that every phase's weights, once fetched, serve several tiles.
const WAITING_BYTES: usize = 1 << 18;

/// The phases of the last axis that share the phases of the other axes.
#[derive(Debug)]
pub(super) struct Bundle {
    /// The positions of all axes but the last.
    outer: Vec<Span>,
    /// The residues of all axes but the last.
    residues: Vec<usize>,
    phases: Vec<BundlePhase>,
}

#[derive(Debug)]
struct BundlePhase {
    /// Its positions along the last axis.
    span: Span,
    /// Of its first position, the output along the last axis.
    first_output: i64,
    deltas: Vec<Vec<usize>>,
    /// Its panels, by rising channel: cut alike for all phases.
    panels: Range<usize>,
}

impl Bundle {
    /// Positions of the longest phase along the last axis.
    pub(super) fn longest(&self) -> usize {
        self.phases.iter().map(|phase| phase.span.count).max().unwrap_or(0)
    }

    /// Panels per phase.
    pub(super) fn panels(&self) -> usize {
        self.phases[0].panels.len()
    }
}

/// The first positions of the bundles' phases along the last axis, from the least to the greatest.
pub(super) fn starts(bundles: &[Bundle]) -> (i64, i64) {
    let starts = bundles.iter().flat_map(|bundle| &bundle.phases).map(|phase| phase.span.first);
    (starts.clone().min().unwrap_or(0), starts.max().unwrap_or(0))
}

/// The bundles of a filter whose panels hold one phase each, if its outputs along the last axis are whole runs.
pub(super) fn bundles<T: Real>(
    axes: &[EngineAxis<'_>],
    filter: &PackedFilter<T>,
    panels: &Panels,
) -> Option<Vec<Bundle>> {
    let (last, outer_axes) = axes.split_last()?;
    let inner = last.phases.len();
    if panels.share_phases() || !last.is_covered() || inner > MAX_PHASES || panels.panels.is_empty() {
        return None;
    }
    let phases: usize = filter.phases.iter().map(Vec::len).product();
    let per_phase = panels.panels.len() / phases;
    let bundle = |first: usize| {
        let residues: Vec<usize> =
            std::iter::once(0).chain(filter.phase(first).iter().map(|phase| phase.residue)).collect();
        let phases = (first..first + inner).map(|phase| {
            let own = phase * per_phase..(phase + 1) * per_phase;
            let residue = last.phases[phase - first].residue;
            let span = last.span(residue);
            let deltas = &panels.panels[own.start].deltas;
            BundlePhase {
                span,
                first_output: last.output_at(span.first, residue),
                deltas: std::iter::once(vec![0]).chain(deltas.iter().cloned()).collect(),
                panels: own,
            }
        });
        Bundle {
            outer: outer_axes.iter().zip(&residues).map(|(axis, &residue)| axis.span(residue)).collect(),
            phases: phases.collect(),
            residues,
        }
    };
    Some((0..phases).step_by(inner).map(bundle).collect())
}

/// How the waiting tiles of a panel lie in memory.
struct Place {
    /// Columns of a row.
    width: usize,
    /// Rows of a tile that are in use.
    per_tile: usize,
    tile_len: usize,
    /// All tiles of one phase.
    phase_len: usize,
}

impl Place {
    /// Where a row of a phase begins.
    fn of(&self, phase: usize, row: usize) -> i32 {
        let (tile, row) = (row / self.per_tile, row % self.per_tile);
        (phase * self.phase_len + tile * self.tile_len + row * self.width) as i32
    }
}

/// Rows that follow each other along the last axis: their outputs are one run per channel.
struct Stretch {
    /// Where the run of channel 0 begins.
    target: isize,
    /// Which of the weave's distances are its own.
    distances: Range<usize>,
}

impl<'a, T: Real> Worker<'a, T> {
    /// Computes the panels `share` of every phase of a bundle at the positions `spans`.
    pub(super) fn run_bundle(
        &mut self,
        bundle: &Bundle,
        spans: &[Span],
        share: Range<usize>,
        rows: &Rows<'_, T>,
    ) {
        let last = spans.len() - 1;
        let mut own: Vec<Span> = bundle.outer.iter().zip(spans).map(|(a, b)| a.intersect(b)).collect();
        own.push(spans[last].intersect(&Span { first: 0, count: bundle.longest() }));
        if own.iter().any(|span| span.count == 0) || share.is_empty() {
            return;
        }
        let tables: Vec<Vec<AxisTable>> =
            bundle.phases.iter().map(|phase| self.tables(phase, &own, rows)).collect();
        let filter = self.problem.filter;
        let panel_bytes: usize = bundle
            .phases
            .iter()
            .map(|phase| {
                let panel = filter.panel(phase.panels.start + share.start);
                size_of_val(filter.panel_weights(self.group, panel))
            })
            .sum();
        let at_once = (WEIGHT_BYTES / panel_bytes.max(1)).max(1);
        let mut first = share.start;
        while first < share.end {
            let end = share.end.min(first + at_once);
            self.run_panels(bundle, &own, first..end, &tables, rows.origin());
            first = end;
        }
    }

    fn tables(&self, phase: &BundlePhase, spans: &[Span], rows: &Rows<'_, T>) -> Vec<AxisTable> {
        let last = spans.len() - 1;
        (0..spans.len())
            .map(|axis| {
                let mut span = spans[axis];
                if axis == last {
                    span.first += phase.span.first;
                }
                AxisTable::new(&self.problem.axes[axis], &span, &phase.deltas[axis], rows.stride(axis))
            })
            .collect()
    }

    /// Computes the panels `range` of every phase: they stay in the cache while the positions pass by.
    fn run_panels(
        &mut self,
        bundle: &Bundle,
        spans: &[Span],
        range: Range<usize>,
        tables: &[Vec<AxisTable>],
        origin: *const T,
    ) {
        let filter = self.problem.filter;
        let width = 2 * filter.kernels.lanes();
        let prepared: Vec<Vec<Prepared<'a, T>>> = bundle
            .phases
            .iter()
            .map(|phase| {
                let own = phase.panels.start + range.start..phase.panels.start + range.end;
                panels_of(filter).panels[own].iter().map(|panel| self.prepare(panel)).collect()
            })
            .collect();
        let phases = bundle.phases.len();
        let tile_len = MAX_ROWS * width;
        let positions: usize = spans.iter().map(|span| span.count).product();
        let tile_count = positions.div_ceil(filter.kernels.panel_rows());
        let per_tile = positions.div_ceil(tile_count);
        let waiting = WAITING_BYTES / (range.len() * phases * tile_len * size_of::<T>());
        let waiting = waiting.clamp(1, tile_count.min(8));
        // `[panel][phase][tile][row][column]`
        let mut tiles = vec![T::default(); range.len() * phases * waiting * tile_len];
        let order: Vec<usize> = (0..spans.len()).collect();
        let mut index = vec![0usize; spans.len()];
        let mut rows = Vec::new();
        let mut distances = Vec::new();
        let mut done = 0;
        while done < positions {
            let chunk = (waiting * per_tile).min(positions - done);
            let start = index.clone();
            for (phase, of_phase) in prepared.iter().enumerate() {
                index.copy_from_slice(&start);
                rows.clear();
                for tile in 0..chunk.div_ceil(per_tile) {
                    let count = per_tile.min(chunk - tile * per_tile);
                    self.collect_rows(&tables[phase], spans, &order, &mut index, count, origin);
                    rows.extend_from_slice(&self.indices);
                    for (number, panel) in of_phase.iter().enumerate() {
                        let at = ((number * phases + phase) * waiting + tile) * tile_len;
                        self.compute(panel, &mut tiles[at..at + tile_len]);
                    }
                }
            }
            done += chunk;
            for (number, panel) in prepared[0].iter().enumerate() {
                let place =
                    Place { width: panel.bias.len(), per_tile, tile_len, phase_len: waiting * tile_len };
                let stretches = self.stretches(bundle, spans, &rows, &place, &mut distances);
                let own = phases * waiting * tile_len;
                self.weave(panel, &tiles[number * own..(number + 1) * own], &stretches, &distances);
            }
        }
    }

    /// Cuts rows into stretches, and finds for each output of a stretch where its value lies.
    fn stretches(
        &self,
        bundle: &Bundle,
        spans: &[Span],
        rows: &[usize],
        place: &Place,
        distances: &mut Vec<i32>,
    ) -> Vec<Stretch> {
        let problem = self.problem;
        let last = spans.len() - 1;
        let stride = problem.axes[last].stride;
        let rows: Vec<&[usize]> = rows.chunks_exact(spans.len()).collect();
        // By rising output within a position.
        let mut phases: Vec<usize> = (0..bundle.phases.len()).collect();
        phases.sort_by_key(|&phase| bundle.phases[phase].first_output);
        distances.clear();
        let mut stretches = Vec::new();
        let mut first = 0;
        while first < rows.len() {
            let outer = &rows[first][..last];
            let len = rows[first..].iter().take_while(|row| &row[..last] == outer).count();
            let from = spans[last].first + rows[first][last] as i64;
            let base: isize = (0..last)
                .map(|axis| {
                    let of_axis = &problem.axes[axis];
                    let q = spans[axis].first + outer[axis] as i64;
                    of_axis.output_at(q, bundle.residues[axis]) as isize * of_axis.y_stride
                })
                .sum();
            let start = distances.len();
            for row in first..first + len {
                let position = from + (row - first) as i64;
                let there = phases.iter().filter(|&&phase| position < bundle.phases[phase].span.count as i64);
                distances.extend(there.map(|&phase| place.of(phase, row)));
            }
            stretches
                .push(Stretch { target: base + (from * stride) as isize, distances: start..distances.len() });
            first += len;
        }
        stretches
    }

    /// Stores the tiles of all phases of a panel's channels.
    fn weave(&self, panel: &Prepared<'_, T>, tiles: &[T], stretches: &[Stretch], distances: &[i32]) {
        let filter = self.problem.filter;
        for segment in panels_of(filter).segments(panel.panel) {
            for column in 0..segment.channels {
                let channel = self.problem.y_channel(self.group, segment.first_channel + column);
                for stretch in stretches {
                    let distances = &distances[stretch.distances.clone()];
                    // SAFETY: every distance is the place of a row within the tiles of the bundle's phases, and a row
                    // has the panel's columns. Each output belongs to one position of one phase, and each task has
                    // its own positions and panels.
                    unsafe {
                        filter.kernels.write_woven(
                            &self.problem.y,
                            channel + stretch.target,
                            tiles,
                            segment.column + column,
                            distances,
                        );
                    }
                }
            }
        }
    }
}
