//! What is computed and stored together on the pixel path. Blocks depend on the filter alone, so they are made once.

use std::ops::Range;

use outstride_kernels::{MAX_COLUMNS, Real};
use outstride_spec::Phase;

use super::super::pack::PackedFilter;
use super::super::panels::{Form, Panel, Panels, Segment};
use super::outputs::{Column, Outputs, distinct, phases_together, residues};

/// Columns of phases that share some of their inputs: the more there are, the more of them wait while others are fed.
const SHARING_SOME: usize = 4;

/// Output channels and phases that are stored together.
#[derive(Debug)]
pub(crate) struct Block {
    pub(super) lines: Vec<Line>,
    /// Those of the columns of all lines.
    pub(super) outputs: Outputs,
}

/// Columns that are computed together.
#[derive(Debug)]
pub(super) struct Line {
    /// Of the batch and every spatial axis, the deltas of the taps, rising.
    pub(super) deltas: Vec<Vec<usize>>,
    /// Every combination of one delta per axis, the last axis fastest.
    pub(super) taps: Vec<LineTap>,
    pub(super) weight_stride: usize,
    pub(super) columns: Vec<Column>,
}

impl Line {
    /// Multiply-adds of a position, per input channel.
    pub(super) fn multiply_adds(&self) -> usize {
        self.taps.iter().map(|tap| tap.feeds.count_ones() as usize).sum()
    }
}

/// A tap of a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineTap {
    /// Where its weights begin within those of a group.
    pub(super) weights: usize,
    /// Which columns it feeds, one bit each.
    pub(super) feeds: u32,
}

/// The blocks of a filter.
pub(crate) fn of_filter<T: Real>(filter: &PackedFilter<T>) -> Vec<Block> {
    let pieces = match &filter.form {
        Form::Panels(panels) => Pieces::new(panels),
        Form::Depthwise => Pieces(Vec::new()),
    };
    let mut blocks = Vec::new();
    for together in phases_together(filter) {
        match &filter.form {
            Form::Depthwise => {
                blocks.push(Block::new(together.map(|phase| depthwise_line(filter, phase)).collect()));
            }
            // A layer may have no output channels at all.
            Form::Panels(_) if filter.out_channels == 0 => {}
            Form::Panels(_) if 2 * filter.out_channels <= widest_tile(filter) => {
                blocks.push(Block::new(sharing_lines(filter, pieces.of_phases(together))));
            }
            Form::Panels(_) => blocks.extend(by_channels(filter, pieces.of_phases(together))),
        }
    }
    blocks
}

impl Block {
    /// Multiply-adds of a position, per input channel.
    pub(super) fn multiply_adds(&self) -> usize {
        self.lines.iter().map(Line::multiply_adds).sum()
    }

    fn new(lines: Vec<Line>) -> Self {
        Block { outputs: Outputs::of(lines.iter().flat_map(|line| &line.columns)), lines }
    }
}

/// The most columns of a tile.
fn widest_tile<T: Real>(filter: &PackedFilter<T>) -> usize {
    filter.kernels.pixel_shapes().map(|(columns, _)| columns).max().unwrap_or(1).min(MAX_COLUMNS)
}

/// Blocks of some phases, each with as many output channels as a line takes.
fn by_channels<T: Real>(filter: &PackedFilter<T>, pieces: &[Piece<'_>]) -> Vec<Block> {
    let parts = filter.out_channels.div_ceil(widest_tile(filter));
    let at = |part: usize| filter.out_channels * part / parts;
    let of_part = |part: usize| {
        let channels = at(part)..at(part + 1);
        let lines = pieces.iter().filter_map(|(panel, segment)| {
            let first = channels.start.max(segment.first_channel);
            let end = channels.end.min(segment.first_channel + segment.channels);
            let piece = Segment {
                first_channel: first,
                channels: end.saturating_sub(first),
                column: segment.column + first.saturating_sub(segment.first_channel),
                ..**segment
            };
            (first < end).then(|| panel_line(filter, panel, &[piece]))
        });
        Block::new(lines.collect())
    };
    (0..parts).map(of_part).collect()
}

/// The lines of some phases of few channels, whose columns are next to each other in a panel: inputs are loaded once for all of them.
fn sharing_lines<T: Real>(filter: &PackedFilter<T>, pieces: &[Piece<'_>]) -> Vec<Line> {
    let mut lines: Vec<(&Panel, Vec<Segment>)> = Vec::new();
    for &(panel, segment) in pieces {
        let beside = lines.last_mut().filter(|(other, segments)| {
            let columns: usize = segments.iter().map(|segment| segment.channels).sum();
            let end = segments.last().map_or(0, |last| last.column + last.channels);
            let share_all = segments.iter().all(|other| has_same_taps(filter, other.phase, segment.phase));
            let most = if share_all { widest_tile(filter) } else { SHARING_SOME };
            std::ptr::eq(*other, panel) && end == segment.column && columns + segment.channels <= most
        });
        match beside {
            Some((_, segments)) => segments.push(*segment),
            None => lines.push((panel, vec![*segment])),
        }
    }
    lines.into_iter().map(|(panel, segments)| panel_line(filter, panel, &segments)).collect()
}

/// Whether two phases read the same inputs at every position.
fn has_same_taps<T: Real>(filter: &PackedFilter<T>, one: usize, other: usize) -> bool {
    let same = |(one, other): (&Phase, &Phase)| {
        one.taps.iter().map(|tap| tap.delta).eq(other.taps.iter().map(|tap| tap.delta))
    };
    filter.phase(one).into_iter().zip(filter.phase(other)).all(same)
}

/// Columns of one phase in a panel.
type Piece<'a> = (&'a Panel, &'a Segment);

/// All segments of all panels, by phase and channel.
struct Pieces<'a>(Vec<Piece<'a>>);

impl<'a> Pieces<'a> {
    fn new(panels: &'a Panels) -> Self {
        let of_panel = |panel| panels.segments(panel).iter().map(move |segment| (panel, segment));
        let mut pieces: Vec<Piece<'a>> = panels.panels.iter().flat_map(of_panel).collect();
        pieces.sort_by_key(|(_, segment)| (segment.phase, segment.first_channel));
        Pieces(pieces)
    }

    fn of_phases(&self, phases: Range<usize>) -> &[Piece<'a>] {
        let before = |phase: usize| self.0.partition_point(|(_, segment)| segment.phase < phase);
        &self.0[before(phases.start)..before(phases.end)]
    }
}

/// The line of neighbouring columns of a panel.
fn panel_line<T: Real>(filter: &PackedFilter<T>, panel: &Panel, segments: &[Segment]) -> Line {
    let of_segments: Vec<Vec<&Phase>> = segments.iter().map(|segment| filter.phase(segment.phase)).collect();
    let deltas_of_axis = |axis: usize| {
        let taps = of_segments.iter().flat_map(|phases| &phases[axis].taps);
        distinct(taps.map(|tap| tap.delta))
    };
    let spatial: Vec<Vec<usize>> = (0..filter.phases.len()).map(deltas_of_axis).collect();
    let columns: Vec<Column> = segments
        .iter()
        .zip(&of_segments)
        .flat_map(|(segment, phases)| {
            let residues = residues(phases);
            let channels = segment.first_channel..segment.first_channel + segment.channels;
            channels.map(move |channel| Column { channel, residues: residues.clone() })
        })
        .collect();
    let weight_stride = panel.vectors * filter.kernels.lanes();
    let first_column = segments.first().map_or(0, |segment| segment.column);
    let tap = |deltas: &[usize]| {
        let mut feeds = 0;
        for (segment, phases) in segments.iter().zip(&of_segments) {
            if phases.iter().zip(deltas).all(|(phase, &delta)| phase.tap_at(delta).is_some()) {
                feeds |= ((1 << segment.channels) - 1) << (segment.column - first_column);
            }
        }
        let number = panel.tap_at(deltas);
        LineTap { weights: panel.offset + number * filter.in_channels * weight_stride + first_column, feeds }
    };
    let taps = combinations(&spatial, tap);
    let deltas = std::iter::once(vec![0]).chain(spatial).collect();
    Line { deltas, taps, weight_stride, columns }
}

/// The line of one phase of a depthwise filter.
fn depthwise_line<T: Real>(filter: &PackedFilter<T>, phase: usize) -> Line {
    let phases = filter.phase(phase);
    let spatial: Vec<Vec<usize>> =
        phases.iter().map(|phase| phase.taps.iter().map(|tap| tap.delta).collect()).collect();
    let tap = |deltas: &[usize]| {
        let kernel =
            phases.iter().zip(deltas).map(|(phase, &delta)| phase.tap_at(delta).map_or(0, |tap| tap.kernel));
        let element = kernel.zip(&filter.kernel).fold(0, |element, (index, size)| element * size + index);
        LineTap { weights: element * filter.groups, feeds: 1 }
    };
    let taps = combinations(&spatial, tap);
    let deltas = std::iter::once(vec![0]).chain(spatial).collect();
    Line { deltas, taps, weight_stride: 0, columns: vec![Column { channel: 0, residues: residues(&phases) }] }
}

/// What is made of every combination of one delta per axis, the last axis fastest.
fn combinations(deltas: &[Vec<usize>], mut make: impl FnMut(&[usize]) -> LineTap) -> Vec<LineTap> {
    let count = deltas.iter().map(Vec::len).product();
    let mut combination = vec![0; deltas.len()];
    let of_number = |mut number: usize| {
        for (delta, of_axis) in combination.iter_mut().zip(deltas).rev() {
            *delta = of_axis[number % of_axis.len()];
            number /= of_axis.len();
        }
        make(&combination)
    };
    (0..count).map(of_number).collect()
}
