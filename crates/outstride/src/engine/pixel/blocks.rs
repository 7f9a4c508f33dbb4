//! What is computed and stored together on the pixel path. Blocks depend on the filter alone, so they are made once.

use std::ops::Range;

use outstride_kernels::{MAX_COLUMNS, Real};
use outstride_spec::Phase;

use super::super::axis::{EngineAxis, Span};
use super::super::pack::{Form, PackedFilter, Panel, Panels, Segment};

/// Phases of the last axis that are computed before their outputs are stored.
const LINES_AT_ONCE: usize = 8;

/// Output channels and phases that are stored together.
#[derive(Debug)]
pub(crate) struct Block {
    /// Of the batch and every spatial axis, the residues of the columns, each once.
    residues: Vec<Vec<usize>>,
    pub(super) lines: Vec<Line>,
    /// Every column of every line once, alone or with the column whose outputs lie between its own.
    pub(super) stores: Vec<Store>,
}

/// Columns that share their taps: one kernel call per stretch of a row.
#[derive(Debug)]
pub(super) struct Line {
    /// The residues of its columns along the last axis, each once.
    residues: Vec<usize>,
    /// Of the batch and every spatial axis, the deltas of the taps, rising.
    pub(super) deltas: Vec<Vec<usize>>,
    /// Every combination of one delta per axis, the last axis fastest.
    pub(super) taps: Vec<LineTap>,
    pub(super) weight_stride: usize,
    pub(super) columns: Vec<Column>,
    /// Of each of the columns, the first that has the same phase.
    pub(super) same_phase: Vec<usize>,
}

/// One output channel of one phase.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) channel: usize,
    /// Of the batch and every spatial axis.
    pub(super) residues: Vec<usize>,
}

/// A tap of a line.
#[derive(Debug)]
pub(super) struct LineTap {
    pub(super) weights: WeightsAt,
    /// Which columns it feeds; empty where it feeds all of them.
    pub(super) feeds: Vec<bool>,
}

/// Where a tap's weights begin.
#[derive(Clone, Copy, Debug)]
pub(super) enum WeightsAt {
    /// In a panel's weights, at this element.
    Panel { panel: usize, element: usize },
    /// In a depthwise filter, at this kernel element.
    Depthwise { element: usize },
}

/// A column, by line and number.
pub(super) type ColumnId = (usize, usize);

/// How the outputs of a column are stored.
#[derive(Debug)]
pub(super) enum Store {
    Alone(ColumnId),
    /// The outputs of the two lie in turns: with neighbouring elements next to each other, they are a run.
    Interleaved(ColumnId, ColumnId),
}

/// The blocks of a filter with these strides of its spatial axes.
pub(crate) fn of_filter<T: Real>(filter: &PackedFilter<T>) -> Vec<Block> {
    let blocks = match &filter.form {
        Form::Panels(panels) if panels.share_phases() => merged(filter, panels),
        Form::Panels(panels) => {
            let mut by_phase_panels = vec![Vec::new(); filter.phases.iter().map(Vec::len).product()];
            for (index, panel) in panels.panels.iter().enumerate() {
                by_phase_panels[panels.segments(panel)[0].phase].push(index);
            }
            by_phase(filter, |phase| panel_lines(filter, panels, phase, &by_phase_panels[phase]))
        }
        Form::Depthwise => by_phase(filter, |phase| vec![depthwise_line(filter, phase)]),
    };
    blocks.into_iter().map(|lines| Block::new(filter, lines)).collect()
}

impl Block {
    fn new<T: Real>(filter: &PackedFilter<T>, lines: Vec<Line>) -> Self {
        let residues = (0..=filter.phases.len())
            .map(|axis| {
                let columns = lines.iter().flat_map(|line| &line.columns);
                distinct(columns.map(|column| column.residues[axis]))
            })
            .collect();
        let stores = pair_stores(filter.strides.last() == Some(&2), &lines);
        Block { residues, lines, stores }
    }

    /// The positions of the batch and of all spatial axes but the last.
    pub(super) fn outer(&self, axes: &[EngineAxis<'_>]) -> Vec<Span> {
        (0..axes.len() - 1).map(|axis| hull(&axes[axis], &self.residues[axis])).collect()
    }
}

impl Line {
    fn new(deltas: Vec<Vec<usize>>, taps: Vec<LineTap>, weight_stride: usize, columns: Vec<Column>) -> Self {
        let last = |column: &Column| column.residues.last().copied().unwrap_or(0);
        let first_of = |column: &Column| columns.iter().position(|other| other.residues == column.residues);
        let same_phase = columns.iter().map(|column| first_of(column).unwrap_or(0)).collect();
        Line {
            residues: distinct(columns.iter().map(last)),
            deltas,
            taps,
            weight_stride,
            columns,
            same_phase,
        }
    }

    /// Its positions along the last axis.
    pub(super) fn span(&self, last: &EngineAxis<'_>) -> Span {
        hull(last, &self.residues)
    }
}

/// The positions at which any of the residues has outputs.
fn hull(axis: &EngineAxis<'_>, residues: &[usize]) -> Span {
    let spans = residues.iter().map(|&residue| axis.span(residue));
    spans.fold(Span { first: 0, count: 0 }, |hull, span| hull.hull(&span))
}

fn distinct(values: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut values: Vec<usize> = values.collect();
    values.sort_unstable();
    values.dedup();
    values
}

/// Pairs the columns whose outputs lie in turns: the two phases of a last axis of stride 2.
fn pair_stores(stride_is_two: bool, lines: &[Line]) -> Vec<Store> {
    let ids: Vec<ColumnId> = lines
        .iter()
        .enumerate()
        .flat_map(|(line, of_line)| (0..of_line.columns.len()).map(move |column| (line, column)))
        .collect();
    let column = |index: usize| &lines[ids[index].0].columns[ids[index].1];
    let same_row = |a: usize, b: usize| {
        let outer = |index| column(index).residues.split_last().map(|(_, outer)| outer);
        column(a).channel == column(b).channel && outer(a) == outer(b)
    };
    let mut taken = vec![false; ids.len()];
    let mut stores = Vec::new();
    for first in 0..ids.len() {
        if taken[first] {
            continue;
        }
        let partner =
            (first + 1..ids.len()).find(|&second| stride_is_two && !taken[second] && same_row(first, second));
        stores.push(match partner {
            Some(second) => {
                taken[second] = true;
                Store::Interleaved(ids[first], ids[second])
            }
            None => Store::Alone(ids[first]),
        });
    }
    stores
}

/// One line per phase: the phases of the last axis that belong together, times runs of output channels.
fn by_phase<T: Real>(
    filter: &PackedFilter<T>,
    lines_of_phase: impl Fn(usize) -> Vec<Line>,
) -> Vec<Vec<Line>> {
    let inner = filter.phases.last().map_or(1, Vec::len);
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
    filter: &PackedFilter<T>,
    panels: &Panels,
    phase: usize,
    own_panels: &[usize],
) -> Vec<Line> {
    let residues = residues(&filter.phase(phase));
    let mut lines = Vec::new();
    for &index in own_panels {
        let panel = &panels.panels[index];
        for segment in panels.segments(panel) {
            for columns in cut(0..segment.channels, widest(filter)) {
                let taps = panel_taps(filter, index, panel, segment.column + columns.start);
                let channels = columns.map(|column| segment.first_channel + column);
                let columns =
                    channels.map(|channel| Column { channel, residues: residues.clone() }).collect();
                lines.push(Line::new(
                    deltas_of(panel),
                    taps,
                    panel.vectors * filter.kernels.lanes(),
                    columns,
                ));
            }
        }
    }
    lines
}

/// The line of one phase of a depthwise filter.
fn depthwise_line<T: Real>(filter: &PackedFilter<T>, phase: usize) -> Line {
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
            LineTap { weights: WeightsAt::Depthwise { element }, feeds: Vec::new() }
        })
        .collect();
    let of_axis = |phase: &&Phase| phase.taps.iter().map(|tap| tap.delta).collect();
    let deltas = std::iter::once(vec![0]).chain(parts.iter().map(of_axis)).collect();
    Line::new(deltas, taps, 0, vec![Column { channel: 0, residues: residues(&parts) }])
}

/// Blocks of one line each, whose columns are those of a panel that holds several phases.
fn merged<T: Real>(filter: &PackedFilter<T>, panels: &Panels) -> Vec<Vec<Line>> {
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
            let weight_stride = panel.vectors * filter.kernels.lanes();
            blocks.push(vec![Line::new(deltas_of(panel), taps, weight_stride, columns)]);
        }
    }
    blocks
}

/// All taps of a panel, for the columns from `column` on.
fn panel_taps<T: Real>(filter: &PackedFilter<T>, index: usize, panel: &Panel, column: usize) -> Vec<LineTap> {
    let tap_len = filter.in_channels * panel.vectors * filter.kernels.lanes();
    (0..panel.taps())
        .map(|number| LineTap {
            weights: WeightsAt::Panel { panel: index, element: number * tap_len + column },
            feeds: Vec::new(),
        })
        .collect()
}

/// The panel's deltas, with one for the batch in front.
fn deltas_of(panel: &Panel) -> Vec<Vec<usize>> {
    std::iter::once(vec![0]).chain(panel.deltas.iter().cloned()).collect()
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
