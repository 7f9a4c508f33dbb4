//! The panel path: tiles of positions × (output channels, phases). Inputs are broadcast, weights fill vectors.

mod rows;
mod store;
mod worker;
mod woven;

use std::ops::Range;

use outstride_kernels::Real;

use super::Strides;
use super::axis::{EngineAxis, Span};
use super::boxes::Boxes;
use super::gather::{self, input_positions};
use super::pack::{Form, PackedFilter, Panel, Panels};
use super::problem::Problem;
use worker::Worker;
use woven::Bundle;

/// Weights of one panel group: what stays in the second-level cache while the positions of a box pass by.
const WEIGHT_BYTES: usize = 1 << 19;

/// Input of one box where all weights stay in the second-level cache anyway.
const INPUT_BYTES: usize = 1 << 19;

/// From this share of zeros on, rows are arranged so that whole taps fall on them.
const WORTHWHILE_BORDER_SHARE: f64 = 0.1;

/// Panels that read the same inputs at the same positions: their row pointers are computed once.
#[derive(Debug)]
struct Class {
    panels: Range<usize>,
    /// Per axis, the batch included.
    spans: Vec<Span>,
    deltas: Vec<Vec<usize>>,
}

/// How the panel path cuts a problem into tasks.
#[derive(Debug)]
pub(crate) struct PanelPlan {
    classes: Vec<Class>,
    boxes: Boxes,
    /// Into how many parts the panels are dealt, where there are too few boxes for the threads.
    splits: usize,
    /// Per axis, the largest delta.
    reach: Vec<usize>,
    /// Whether input channels are side by side, so that nothing is copied.
    in_place: bool,
    /// Where output channels are planes: the phases that are stored together. Boxes then count the positions of the last
    /// axis from the start of each phase.
    bundles: Option<Vec<Bundle>>,
    /// Whether neighbouring rows are the same position of different batch elements: on small maps their borders
    /// coincide, and whole taps can be skipped.
    batch_innermost: bool,
}

fn panels_of<T: Real>(filter: &PackedFilter<T>) -> &Panels {
    match &filter.form {
        Form::Panels(panels) => panels,
        Form::Depthwise => unreachable!("the planner sends depthwise filters elsewhere"),
    }
}

impl PanelPlan {
    pub(crate) fn new<T: Real>(
        axes: &[EngineAxis<'_>],
        filter: &PackedFilter<T>,
        strides: &Strides,
        threads: usize,
    ) -> Self {
        let panels = panels_of(filter);
        let mut classes: Vec<Class> = Vec::new();
        for (index, panel) in panels.panels.iter().enumerate() {
            let spans = panel_spans(axes, filter, panels, panel);
            let deltas: Vec<Vec<usize>> =
                std::iter::once(vec![0]).chain(panel.deltas.iter().cloned()).collect();
            match classes.last_mut() {
                Some(class) if class.spans == spans && class.deltas == deltas => class.panels.end = index + 1,
                _ => classes.push(Class { panels: index..index + 1, spans, deltas }),
            }
        }
        let mut space: Vec<Span> = (0..axes.len())
            .map(|axis| {
                let empty = Span { first: 0, count: 0 };
                classes.iter().fold(empty, |hull, class| hull.hull(&class.spans[axis]))
            })
            .collect();
        let reach: Vec<usize> = axes.iter().map(EngineAxis::reach).collect();
        let batch_innermost = axes[0].output > 1 && border_share(axes) >= WORTHWHILE_BORDER_SHARE;
        let last = &axes[axes.len() - 1];
        let planes = strides.y_channel != 1 && last.y_stride == 1 && !batch_innermost;
        let bundles = if planes { woven::bundles(axes, filter, panels) } else { None };
        if let (Some(bundles), Some(last)) = (&bundles, space.last_mut()) {
            *last = Span { first: 0, count: bundles.iter().map(Bundle::longest).max().unwrap_or(0) };
        }
        let in_place = strides.x_channel == 1 || filter.in_channels == 1;
        let row_bytes = filter.in_channels * size_of::<T>();
        let weights = filter.bytes() / filter.groups;
        let input_bytes = if weights > 2 * WEIGHT_BYTES { gather::INPUT_BYTES_PER_PASS } else { INPUT_BYTES };
        let rows = filter.kernels.panel_rows();
        let wanted = 4 * threads;
        let boxes = Boxes::cut(space.clone(), &vec![1; axes.len()], |chunk, boxes| {
            let input = input_positions(axes, chunk, &reach);
            let positions: usize = chunk.iter().product();
            let fits = input.saturating_mul(row_bytes) <= input_bytes || positions <= rows;
            // Where weights dominate, threads share them out rather than each passing over all of them.
            let by_panels = weights > 2 * WEIGHT_BYTES && panels.panels.len() >= wanted;
            fits && (threads == 1 || by_panels || boxes >= wanted || positions <= 4 * rows)
        });
        let items = (boxes.len() * filter.groups).max(1);
        let splits = if threads == 1 || items >= wanted {
            1
        } else {
            wanted.div_ceil(items).min(panels.panels.len()).max(1)
        };
        PanelPlan { classes, boxes, splits, reach, in_place, bundles, batch_innermost }
    }

    /// How often the weights are passed over.
    pub(crate) fn passes(&self) -> usize {
        self.boxes.len()
    }

    pub(crate) fn tasks<T: Real>(&self, filter: &PackedFilter<T>) -> usize {
        filter.groups * self.boxes.len() * self.splits
    }

    /// An upper bound of the scratch bytes of one thread.
    pub(crate) fn workspace<T: Real>(&self, axes: &[EngineAxis<'_>], filter: &PackedFilter<T>) -> usize {
        if self.in_place || self.boxes.len() == 0 {
            return 0;
        }
        gather::positions_of_first(axes, &self.boxes, &self.reach) * filter.in_channels * size_of::<T>()
    }

    /// Multiply-adds executed, those with padded columns and zero borders included.
    pub(crate) fn executed<T: Real>(&self, filter: &PackedFilter<T>) -> u128 {
        let panels = panels_of(filter);
        let of_class = |class: &Class| {
            let positions: u128 = class.spans.iter().map(|span| span.count as u128).product();
            let columns: u128 = panels.panels[class.panels.clone()]
                .iter()
                .map(|panel| (panel.taps() * panel.vectors * filter.kernels.lanes()) as u128)
                .sum();
            positions * columns
        };
        let executed: u128 = self.classes.iter().map(of_class).sum();
        executed * (filter.in_channels * filter.groups) as u128
    }

    /// Whether outputs of several phases, or of a row, are stored as runs.
    pub(crate) fn stores_runs(&self) -> bool {
        self.bundles.is_some()
    }

    pub(crate) fn is_in_place(&self) -> bool {
        self.in_place
    }

    /// Runs one task.
    pub(crate) fn run<T: Real>(&self, problem: &Problem<'_, T>, task: usize) {
        let split = task % self.splits;
        let index = task / self.splits % self.boxes.len();
        let group = task / self.splits / self.boxes.len();
        let spans = self.boxes.get(index);
        let filter = problem.filter;
        let mut scratch = Vec::new();
        let rows = if self.in_place {
            gather::in_place(problem.x, problem.x_group(group), &problem.axes)
        } else {
            gather::copied(
                problem.x,
                problem.x_group(group),
                &problem.axes,
                &self.needed(&problem.axes, &spans),
                filter.in_channels,
                problem.x_channel_stride,
                &mut scratch,
            )
        };
        let mut worker = Worker::new(problem, group);
        let panels = &panels_of(filter).panels;
        if let Some(bundles) = &self.bundles {
            for bundle in bundles {
                let share = self.share(&(0..bundle.panels()), split);
                worker.run_bundle(bundle, &spans, share, &rows);
            }
            return;
        }
        for class in &self.classes {
            let spans: Vec<Span> = spans.iter().zip(&class.spans).map(|(a, b)| a.intersect(b)).collect();
            if spans.iter().any(|span| span.count == 0) {
                continue;
            }
            let share = self.share(&class.panels, split);
            let mut first = share.start;
            while first < share.end {
                let mut bytes = 0;
                let mut end = first;
                while end < share.end && (end == first || bytes < WEIGHT_BYTES) {
                    bytes += size_of_val(filter.panel_weights(group, &panels[end]));
                    end += 1;
                }
                worker.run(class, &spans, first..end, &rows, self.batch_innermost);
                first = end;
            }
        }
    }

    /// The input positions that a box reads.
    fn needed(&self, axes: &[EngineAxis<'_>], spans: &[Span]) -> Vec<Span> {
        let mut positions = spans.to_vec();
        if let (Some(bundles), Some(last)) = (&self.bundles, positions.last_mut()) {
            let (least, greatest) = woven::starts(bundles);
            *last = Span { first: last.first + least, count: last.count + (greatest - least) as usize };
        }
        gather::needed(axes, &positions, &self.reach)
    }

    /// The part of a class's panels that belongs to a split.
    fn share(&self, panels: &Range<usize>, split: usize) -> Range<usize> {
        let at = |part: usize| panels.start + panels.len() * part / self.splits;
        at(split)..at(split + 1)
    }
}

/// The share of multiplications by zeros around the input, if every tap of every position is computed.
fn border_share(axes: &[EngineAxis<'_>]) -> f64 {
    let real = |axis: &EngineAxis<'_>| {
        let (mut inside, mut all) = (0.0, 0.0);
        for phase in axis.phases {
            let span = axis.span(phase.residue);
            for tap in &phase.taps {
                let read = Span { first: span.first - tap.delta as i64, count: span.count };
                inside += read.intersect(&Span { first: 0, count: axis.input }).count as f64;
                all += span.count as f64;
            }
        }
        if all > 0.0 { inside / all } else { 1.0 }
    };
    1.0 - axes.iter().map(real).product::<f64>()
}

/// Per axis, the positions at which any of the panel's phases has outputs.
fn panel_spans<T: Real>(
    axes: &[EngineAxis<'_>],
    filter: &PackedFilter<T>,
    panels: &Panels,
    panel: &Panel,
) -> Vec<Span> {
    let mut spans = vec![Span { first: 0, count: 0 }; axes.len()];
    spans[0] = axes[0].span(0);
    for segment in panels.segments(panel) {
        for (axis, phase) in filter.phase(segment.phase).into_iter().enumerate() {
            let span = axes[axis + 1].span(phase.residue);
            spans[axis + 1] = spans[axis + 1].hull(&span);
        }
    }
    spans
}
