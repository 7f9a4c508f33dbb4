//! What is computed and stored together on the pixel path.

use std::ops::Range;

use outstride_kernels::{MAX_COLUMNS, Real};
use outstride_spec::Phase;

use super::super::axis::{EngineAxis, Span};
use super::super::pack::{Form, PackedFilter, Panel, Panels, Segment};

/// Phases of the last axis that are computed before their outputs are stored.
const LINES_AT_ONCE: usize = 8;

/// Output channels and phases that are stored together.
pub(super) struct Block {
    /// The positions of the batch and of all spatial axes but the last.
    pub(super) outer: Vec<Span>,
    pub(super) lines: Vec<Line>,
    /// Every column of every line once, alone or with the column whose outputs lie between its own.
    pub(super) stores: Vec<Store>,
}

/// Columns that share their taps: one kernel call per stretch of a row.
pub(super) struct Line {
    /// Positions along the last axis.
    pub(super) span: Span,
    pub(super) taps: Vec<LineTap>,
    pub(super) weight_stride: usize,
    pub(super) columns: Vec<Column>,
}

/// One output channel of one phase.
pub(super) struct Column {
    pub(super) channel: usize,
    /// Of the batch and every spatial axis.
    pub(super) residues: Vec<usize>,
}

/// A tap of a line.
pub(super) struct LineTap {
    /// Of the batch and every spatial axis.
    pub(super) deltas: Vec<usize>,
    pub(super) weights: WeightsAt,
    /// Which columns it feeds; empty where it feeds all of them.
    pub(super) feeds: Vec<bool>,
}

/// Where a tap's weights begin.
#[derive(Clone, Copy)]
pub(super) enum WeightsAt {
    /// In a panel's weights, at this element.
    Panel { panel: usize, element: usize },
    /// In a depthwise filter, at this kernel element.
    Depthwise { element: usize },
}

/// A column, by line and number.
pub(super) type ColumnId = (usize, usize);

/// How the outputs of a column are stored.
pub(super) enum Store {
    Alone(ColumnId),
    /// The outputs of the second lie one behind those of the first, stride 2: together they are a run.
    Interleaved(ColumnId, ColumnId),
}

/// The blocks of a filter.
pub(super) fn of_filter<T: Real>(axes: &[EngineAxis<'_>], filter: &PackedFilter<T>) -> Vec<Block> {
    let lines = match &filter.form {
        Form::Panels(panels) if panels.panels.iter().any(|panel| has_several_phases(panels, panel)) => {
            return merged(axes, filter, panels);
        }
        Form::Panels(panels) => by_phase(axes, filter, |phase| panel_lines(axes, filter, panels, phase)),
        Form::Depthwise => by_phase(axes, filter, |phase| vec![depthwise_line(axes, filter, phase)]),
    };
    lines.into_iter().map(|lines| Block::new(axes, lines)).collect()
}

fn has_several_phases(panels: &Panels, panel: &Panel) -> bool {
    panels.segments(panel).windows(2).any(|pair| pair[0].phase != pair[1].phase)
}

impl Block {
    /// All lines must have the same positions on the outer axes.
    fn new(axes: &[EngineAxis<'_>], lines: Vec<Line>) -> Self {
        let last = axes.len() - 1;
        let columns = || lines.iter().flat_map(|line| &line.columns);
        let outer = (0..last)
            .map(|axis| {
                let spans = columns().map(|column| axes[axis].span(column.residues[axis]));
                spans.fold(Span { first: 0, count: 0 }, |hull, span| hull.hull(&span))
            })
            .collect();
        let stores = pair_stores(&axes[last], &lines);
        Block { outer, lines, stores }
    }
}

/// Pairs the columns whose outputs interleave.
fn pair_stores(last: &EngineAxis<'_>, lines: &[Line]) -> Vec<Store> {
    let ids: Vec<ColumnId> = lines
        .iter()
        .enumerate()
        .flat_map(|(line, of_line)| (0..of_line.columns.len()).map(move |column| (line, column)))
        .collect();
    // The output of a line's first position, in the phase of a column.
    let first_output = |(line, column): ColumnId| {
        let residue = lines[line].columns[column].residues.last().copied().unwrap_or(0);
        last.output_at(lines[line].span.first, residue)
    };
    let column = |(line, column): ColumnId| &lines[line].columns[column];
    let same_row = |a: ColumnId, b: ColumnId| {
        let outer = |id| column(id).residues.split_last().map(|(_, outer)| outer);
        column(a).channel == column(b).channel && outer(a) == outer(b)
    };
    let mut taken = vec![false; ids.len()];
    let mut stores = Vec::new();
    for first in 0..ids.len() {
        if taken[first] {
            continue;
        }
        taken[first] = true;
        let distance = |second: usize| first_output(ids[second]) - first_output(ids[first]);
        let partner = (first + 1..ids.len()).find(|&second| {
            last.stride == 2
                && last.y_stride == 1
                && !taken[second]
                && distance(second).abs() == 1
                && same_row(ids[first], ids[second])
        });
        stores.push(match partner {
            Some(second) => {
                taken[second] = true;
                let (low, high) = if distance(second) > 0 { (first, second) } else { (second, first) };
                Store::Interleaved(ids[low], ids[high])
            }
            None => Store::Alone(ids[first]),
        });
    }
    stores
}

/// One line per phase: the phases of the last axis that belong together, times runs of output channels.
fn by_phase<T: Real>(
    axes: &[EngineAxis<'_>],
    filter: &PackedFilter<T>,
    lines_of_phase: impl Fn(usize) -> Vec<Line>,
) -> Vec<Vec<Line>> {
    let inner = axes[axes.len() - 1].phases.len();
    let phases: usize = filter.phases.iter().map(Vec::len).product();
    let mut blocks = Vec::new();
    for outer in (0..phases).step_by(inner) {
        for first in (outer..outer + inner).step_by(LINES_AT_ONCE) {
            // Every phase has its channels cut at the same places, so the n-th lines belong together.
            let mut together: Vec<Vec<Line>> = Vec::new();
            for phase in first..(outer + inner).min(first + LINES_AT_ONCE) {
                let lines = lines_of_phase(phase);
                together.resize_with(lines.len(), Vec::new);
                together.iter_mut().zip(lines).for_each(|(block, line)| block.push(line));
            }
            blocks.extend(together);
        }
    }
    blocks
}

/// The lines of one phase whose panels hold no other.
fn panel_lines<T: Real>(
    axes: &[EngineAxis<'_>],
    filter: &PackedFilter<T>,
    panels: &Panels,
    phase: usize,
) -> Vec<Line> {
    let parts = filter.phase(phase);
    let mut lines = Vec::new();
    for (index, panel) in panels.panels.iter().enumerate() {
        for segment in panels.segments(panel).iter().filter(|segment| segment.phase == phase) {
            for columns in cut(0..segment.channels, widest(filter)) {
                let taps = panel_taps(filter, index, panel, segment.column + columns.start);
                lines.push(Line {
                    span: last_span(axes, &parts),
                    taps,
                    weight_stride: panel.vectors * filter.kernels.lanes(),
                    columns: columns
                        .map(|column| Column {
                            channel: segment.first_channel + column,
                            residues: residues(&parts),
                        })
                        .collect(),
                });
            }
        }
    }
    lines
}

/// The line of one phase of a depthwise filter.
fn depthwise_line<T: Real>(axes: &[EngineAxis<'_>], filter: &PackedFilter<T>, phase: usize) -> Line {
    let parts = filter.phase(phase);
    let count: usize = parts.iter().map(|phase| phase.taps.len()).product();
    let taps = (0..count)
        .map(|number| {
            let mut rest = number;
            let mut taps: Vec<_> = parts
                .iter()
                .rev()
                .map(|phase| {
                    let tap = phase.taps[rest % phase.taps.len()];
                    rest /= phase.taps.len();
                    tap
                })
                .collect();
            taps.reverse();
            let element =
                taps.iter().zip(&filter.kernel).fold(0, |element, (tap, size)| element * size + tap.kernel);
            LineTap {
                deltas: std::iter::once(0).chain(taps.iter().map(|tap| tap.delta)).collect(),
                weights: WeightsAt::Depthwise { element },
                feeds: Vec::new(),
            }
        })
        .collect();
    let columns = vec![Column { channel: 0, residues: residues(&parts) }];
    Line { span: last_span(axes, &parts), taps, weight_stride: 0, columns }
}

/// Blocks of one line each, whose columns are those of a panel that holds several phases.
fn merged<T: Real>(axes: &[EngineAxis<'_>], filter: &PackedFilter<T>, panels: &Panels) -> Vec<Block> {
    let last = axes.len() - 1;
    let mut blocks = Vec::new();
    for (index, panel) in panels.panels.iter().enumerate() {
        let of_column: Vec<&Segment> = panels
            .segments(panel)
            .iter()
            .flat_map(|segment| std::iter::repeat_n(segment, segment.channels))
            .collect();
        for range in cut(0..of_column.len(), widest(filter)) {
            let mut taps = panel_taps(filter, index, panel, range.start);
            for (number, tap) in taps.iter_mut().enumerate() {
                tap.feeds = of_column[range.clone()]
                    .iter()
                    .map(|segment| panel.tap_feeds(number, &filter.phase(segment.phase)))
                    .collect();
            }
            let columns: Vec<Column> = range
                .map(|column| {
                    let segment = of_column[column];
                    Column {
                        channel: segment.first_channel + column - segment.column,
                        residues: residues(&filter.phase(segment.phase)),
                    }
                })
                .collect();
            let spans = columns.iter().map(|column| axes[last].span(column.residues[last]));
            let span = spans.fold(Span { first: 0, count: 0 }, |hull, span| hull.hull(&span));
            let weight_stride = panel.vectors * filter.kernels.lanes();
            blocks.push(Block::new(axes, vec![Line { span, taps, weight_stride, columns }]));
        }
    }
    blocks
}

/// All taps of a panel, for the columns from `column` on.
fn panel_taps<T: Real>(filter: &PackedFilter<T>, index: usize, panel: &Panel, column: usize) -> Vec<LineTap> {
    let tap_len = filter.in_channels * panel.vectors * filter.kernels.lanes();
    (0..panel.taps())
        .map(|number| LineTap {
            deltas: std::iter::once(0).chain(panel.deltas_of(number)).collect(),
            weights: WeightsAt::Panel { panel: index, element: number * tap_len + column },
            feeds: Vec::new(),
        })
        .collect()
}

fn last_span(axes: &[EngineAxis<'_>], parts: &[&Phase]) -> Span {
    axes[parts.len()].span(parts[parts.len() - 1].residue)
}

fn residues(parts: &[&Phase]) -> Vec<usize> {
    std::iter::once(0).chain(parts.iter().map(|phase| phase.residue)).collect()
}

fn widest<T: Real>(filter: &PackedFilter<T>) -> usize {
    filter.kernels.pixel_shapes().map(|(columns, _)| columns).max().unwrap_or(1).min(MAX_COLUMNS)
}

/// Cuts a range into as few parts as possible, none wider than `widest`, of nearly the same width.
fn cut(range: Range<usize>, widest: usize) -> impl Iterator<Item = Range<usize>> {
    let parts = range.len().div_ceil(widest);
    let at = move |part: usize| range.start + range.len() * part / parts;
    (0..parts).map(move |part| at(part)..at(part + 1))
}
