//! How the weights of a filter lie.
//!
//! Dense filters become *panels*: blocks of columns, each an (output channel, phase) pair, that read the same inputs.
//! With many output channels a panel holds channels of one phase; with few, several phases share a panel so that
//! vectors are filled. Depthwise filters, which have one weight per channel and tap, keep one run of channels per tap.

use std::ops::Range;

use outstride_spec::{FilterCall, Phase};

use super::panel::Grain;

/// What multiplies with weights, which decides how they are best laid out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Multiplier {
    Vectors,
    Tiles(Grain),
}

impl Multiplier {
    /// What a product costs in panels that several phases share, in terms of one in others. At the border of the output some of their
    /// phases are outside, and rows of tiles where that is so are stored one by one: that matters where little is multiplied.
    fn cost_of_shared(self) -> f64 {
        match self {
            Multiplier::Tiles(grain) if grain.products() <= 1.0 => 2.5,
            Multiplier::Tiles(_) | Multiplier::Vectors => 1.2,
        }
    }

    /// What it costs to store an output by itself, far from the next one, in terms of weights that are multiplied.
    fn cost_of_single_output(self) -> f64 {
        match self {
            Multiplier::Tiles(grain) => 3000.0 / grain.products(),
            Multiplier::Vectors => 300.0,
        }
    }

    /// What products of ten vectors cost in panels of a single one, in terms of one vector in wider panels: a row's input is loaded
    /// for half as many. Whole numbers, so that what costs the same is known to.
    fn cost_of_ten_narrow(self) -> usize {
        match self {
            Multiplier::Tiles(_) => 10,
            Multiplier::Vectors => 13,
        }
    }
}

/// How the weights lie.
#[derive(Debug, PartialEq)]
pub(crate) enum Form {
    /// Per group: panels, each `[tap][channel][column]`.
    Panels(Panels),
    /// `[kernel element][group]`: one input and one output channel per group.
    Depthwise,
}

/// The most phases of the innermost axes whose sums wait for each other, to be stored as rows of channels-first outputs, counting those
/// without taps.
pub(crate) const MOST_PHASES_OF_ROWS: usize = 32;

/// The panels of one group.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Panels {
    pub(crate) panels: Vec<Panel>,
    segments: Vec<Segment>,
}

/// A block of columns computed together from the same inputs.
#[derive(Debug, PartialEq)]
pub(crate) struct Panel {
    /// Vectors per row: 1 or 2.
    pub(crate) vectors: usize,
    /// Where the panel's weights begin within its group.
    pub(crate) offset: usize,
    /// Per spatial axis, the deltas its taps read at, [rising or falling](union_of_deltas); the panel's taps are their product, last axis
    /// fastest.
    pub(crate) deltas: Vec<Vec<usize>>,
    segments: Range<usize>,
}

/// Consecutive columns of a panel: some output channels of one phase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Segment {
    /// The phase, as an index into the product of the axes' phases, last axis fastest.
    pub(crate) phase: usize,
    pub(crate) first_channel: usize,
    pub(crate) channels: usize,
    /// The first of its columns.
    pub(crate) column: usize,
}

impl Form {
    /// The best one for a filter.
    pub(crate) fn new(call: &FilterCall, lanes: usize, multiplier: Multiplier) -> Self {
        if is_depthwise(call) {
            Form::Depthwise
        } else {
            Form::Panels(choose_panels(call, &call.phases(), lanes, multiplier))
        }
    }

    /// Vectors of weights that a channel has in all panels of a group.
    pub(crate) fn panel_vectors(&self) -> usize {
        match self {
            Form::Panels(panels) => panels.panels.iter().map(|panel| panel.taps() * panel.vectors).sum(),
            Form::Depthwise => 0,
        }
    }

    /// Weights of a group.
    pub(super) fn group_len(&self, call: &FilterCall, lanes: usize) -> usize {
        match self {
            Form::Panels(panels) => {
                let in_channels = call.in_channels / call.groups;
                panels.panels.last().map_or(0, |last| last.offset + last.weights(in_channels, lanes))
            }
            Form::Depthwise => call.kernel.iter().product(),
        }
    }
}

impl Panels {
    pub(crate) fn segments(&self, panel: &Panel) -> &[Segment] {
        &self.segments[panel.segments.clone()]
    }

    /// Whether every panel holds all of so many phases of the last axis, of the same channels each.
    pub(crate) fn hold_rows(&self, phases: usize) -> bool {
        let is_row = |row: &[Segment]| {
            let same = |segment: &Segment| (segment.first_channel, segment.channels);
            let follow =
                |pair: &[Segment]| pair[0].phase + 1 == pair[1].phase && same(&pair[0]) == same(&pair[1]);
            row.len() == phases && row[0].phase.is_multiple_of(phases) && row.windows(2).all(follow)
        };
        let holds_rows = |panel: &Panel| {
            let segments = self.segments(panel);
            let same = |segment: &Segment| segment.first_channel == segments[0].first_channel;
            segments.iter().all(same) && segments.chunks(phases.max(1)).all(is_row)
        };
        self.panels.iter().all(holds_rows)
    }

    /// Whether every panel holds all phases of the last axis, which are so few that turning them around costs less than the width of
    /// panels gains.
    fn hold_short_rows(&self, phases: &[Vec<Phase>]) -> bool {
        let last = phases.last().map_or(1, Vec::len);
        last <= 2 && self.hold_rows(last)
    }

    /// Whether columns of a channel are side by side, so that phases of the last axis are runs of channels-first outputs.
    pub(crate) fn hold_runs(&self) -> bool {
        self.segments.iter().all(|segment| segment.channels == 1)
    }

    /// Whether sums become channels-first outputs one by one: neither runs nor rows of as many phases as there are along the last axis,
    /// given its stride as well.
    fn are_scattered(&self, phases: usize, stride: usize) -> bool {
        let are_rows = stride <= MOST_PHASES_OF_ROWS && (!self.share_phases() || self.hold_rows(phases));
        let are_runs = self.share_phases() && self.hold_runs();
        !(are_rows || are_runs)
    }

    /// Segments of the panel that has most.
    pub(crate) fn most_segments(&self) -> usize {
        self.panels.iter().map(|panel| panel.segments.len()).max().unwrap_or(0)
    }

    /// Whether some panel holds columns of several phases.
    pub(crate) fn share_phases(&self) -> bool {
        let several =
            |panel: &Panel| self.segments(panel).windows(2).any(|pair| pair[0].phase != pair[1].phase);
        self.panels.iter().any(several)
    }
}

impl Panel {
    /// One that reads at some deltas, without columns.
    #[cfg(test)]
    pub(crate) fn of_deltas(deltas: Vec<Vec<usize>>) -> Self {
        Panel { vectors: 1, offset: 0, deltas, segments: 0..0 }
    }

    pub(crate) fn taps(&self) -> usize {
        self.deltas.iter().map(Vec::len).product()
    }

    pub(super) fn weights(&self, in_channels: usize, lanes: usize) -> usize {
        self.taps() * in_channels * self.vectors * lanes
    }

    /// Whether one of the panel's taps is a tap of the phase, and not only of others in the panel.
    pub(crate) fn tap_feeds(&self, tap: usize, phase: &[&Phase]) -> bool {
        let has = |(phase, delta): (&&Phase, usize)| phase.tap_at(delta).is_some();
        phase.iter().zip(self.deltas_of(tap)).all(has)
    }

    /// The number of the panel's tap of these deltas, which must be its own.
    pub(crate) fn tap_at(&self, deltas: &[usize]) -> usize {
        let axes = self.deltas.iter().zip(deltas);
        axes.fold(0, |tap, (of_axis, delta)| {
            let falls = of_axis.first() > of_axis.last();
            let before = of_axis.partition_point(|of| if falls { of > delta } else { of < delta });
            tap * of_axis.len() + before
        })
    }

    /// The deltas of one of the panel's taps.
    pub(crate) fn deltas_of(&self, mut tap: usize) -> Vec<usize> {
        let mut deltas: Vec<usize> = self
            .deltas
            .iter()
            .rev()
            .map(|axis| {
                let delta = axis[tap % axis.len()];
                tap /= axis.len();
                delta
            })
            .collect();
        deltas.reverse();
        deltas
    }
}

/// Whether every group has one input and one output channel.
pub(crate) fn is_depthwise(call: &FilterCall) -> bool {
    call.groups > 1 && call.in_channels == call.groups && call.out_channels == call.groups
}

/// Chooses how many of the innermost axes share their phases within a panel: what multiplies least, in the fewest
/// phases per panel. For channels-first outputs, panels that have all of these phases come before others: theirs are rows.
fn choose_panels(call: &FilterCall, phases: &[Vec<Phase>], lanes: usize, multiplier: Multiplier) -> Panels {
    let (in_channels, out_channels) = (call.in_channels / call.groups, call.out_channels / call.groups);
    let with = |merged: usize, at_once: usize, by_channel: bool| {
        panels_with(phases, merged, PanelSizes { out_channels, at_once, by_channel, in_channels, lanes })
    };
    // With so many phases that hardly two channels have room, those of a channel are stored as a run. Others are turned around.
    let stride = call.strides.last().copied().unwrap_or(1);
    let are_long =
        stride > MOST_PHASES_OF_ROWS || phases.last().is_some_and(|last| 3 * last.len() > 2 * lanes);
    let candidates = |merged: usize| {
        let inner: usize = phases[phases.len() - merged..].iter().map(Vec::len).product();
        let of_all_phases = match 2 * lanes / inner.max(1) {
            _ if call.channels_last => 0,
            // Of more phases than columns, runs of a channel fill panels as well.
            0 if merged == 1 => 1,
            channels => channels,
        };
        let for_rows = (of_all_phases > 0).then(|| with(merged, of_all_phases, merged > 0 && are_long));
        for_rows.into_iter().chain([with(merged, out_channels, false)])
    };
    // Phases of one tap each have the same positions, so that none of them is outside where others are not. A single axis has two
    // ends, not two in every row.
    let have_borders = phases.len() > 1 && phases.iter().flatten().any(|phase| phase.taps.len() > 1);
    let cost_of_shared = if call.channels_last && have_borders { multiplier.cost_of_shared() } else { 1.0 };
    let cost = |panels: &Panels| {
        let may_be_wide = call.channels_last || !panels.share_phases() || panels.hold_short_rows(phases);
        let products = |panel: &Panel| {
            let is_wide = panel.vectors > 1 && may_be_wide;
            let cost = if is_wide { 10 } else { multiplier.cost_of_ten_narrow() };
            panel.weights(in_channels.max(1), lanes).saturating_mul(cost)
        };
        let all = panels.panels.iter().map(products).fold(0, usize::saturating_add) as f64;
        let last = phases.last().map_or(1, Vec::len);
        if !call.channels_last && panels.are_scattered(last, stride) {
            let outputs: f64 = panels.segments.iter().map(|segment| segment.channels as f64).sum();
            return all + 10.0 * outputs * multiplier.cost_of_single_output();
        }
        if panels.share_phases() { cost_of_shared * all } else { all }
    };
    (0..=phases.len()).flat_map(candidates).min_by(|a, b| cost(a).total_cmp(&cost(b))).unwrap_or_default()
}

/// What panels are made of.
#[derive(Clone, Copy)]
struct PanelSizes {
    out_channels: usize,
    /// Output channels whose phases are in the same panels.
    at_once: usize,
    /// Whether the columns of an output channel are side by side, rather than those of a phase.
    by_channel: bool,
    in_channels: usize,
    lanes: usize,
}

/// Panels whose columns run over the phases of the `merged` innermost axes, and over some output channels within each.
fn panels_with(phases: &[Vec<Phase>], merged: usize, sizes: PanelSizes) -> Panels {
    let PanelSizes { out_channels, at_once, by_channel, in_channels, lanes } = sizes;
    let inner: usize = phases[phases.len() - merged..].iter().map(Vec::len).product();
    let outer: usize = phases[..phases.len() - merged].iter().map(Vec::len).product();
    let mut result = Panels::default();
    let mut offset = 0;
    let channels = (0..out_channels).step_by(at_once.max(1));
    let some_channels = channels.map(|first| first..out_channels.min(first + at_once));
    for (outer_phase, of_channels) in
        (0..outer).flat_map(|outer| some_channels.clone().map(move |channels| (outer, channels)))
    {
        let columns = inner * of_channels.len();
        let mut first = 0;
        while first < columns {
            let left = columns - first;
            let vectors = if left <= lanes { 1 } else { 2 };
            let end = columns.min(first + vectors * lanes);
            let start = result.segments.len();
            let mut column = first;
            while column < end {
                let (inner_phase, channel, channels) = if by_channel {
                    (column % inner, column / inner, 1)
                } else {
                    let channel = column % of_channels.len();
                    (column / of_channels.len(), channel, (of_channels.len() - channel).min(end - column))
                };
                result.segments.push(Segment {
                    phase: outer_phase * inner + inner_phase,
                    first_channel: of_channels.start + channel,
                    channels,
                    column: column - first,
                });
                column += channels;
            }
            let segments = start..result.segments.len();
            let deltas = union_of_deltas(phases, &result.segments[segments.clone()]);
            let panel = Panel { vectors, offset, deltas, segments };
            offset += panel.weights(in_channels, lanes);
            result.panels.push(panel);
            first = end;
        }
    }
    result
}

/// Per axis, the deltas that any of the segments' phases reads at. Along the last axis they fall, so that inputs that lie behind each
/// other are read in their order; along the others they rise, so that of inputs those come first that no position has read before.
fn union_of_deltas(phases: &[Vec<Phase>], segments: &[Segment]) -> Vec<Vec<usize>> {
    let mut stride = 1;
    let mut deltas: Vec<Vec<usize>> = phases
        .iter()
        .rev()
        .map(|axis| {
            let mut of_axis: Vec<usize> = segments
                .iter()
                .flat_map(|segment| &axis[segment.phase / stride % axis.len()].taps)
                .map(|tap| tap.delta)
                .collect();
            of_axis.sort_unstable();
            of_axis.dedup();
            stride *= axis.len();
            of_axis
        })
        .collect();
    if let Some(last) = deltas.first_mut() {
        last.reverse();
    }
    deltas.reverse();
    deltas
}

#[cfg(test)]
mod tests {
    use outstride_kernels::Pieces;
    use outstride_spec::FilterLayout;

    use super::*;

    const LANES: usize = 16;
    const TILES: Multiplier = Multiplier::Tiles(Grain::Pieces(Pieces::Bf16(1)));

    /// The panels of a filter of so many output channels, whose kernel is its stride in two dimensions.
    fn panels(out_channels: usize, stride: usize, channels_last: bool, multiplier: Multiplier) -> Panels {
        let call = FilterCall {
            groups: 1,
            in_channels: 32,
            out_channels,
            kernel: vec![stride; 2],
            strides: vec![stride; 2],
            dilations: vec![1; 2],
            layout: FilterLayout::iox(2),
            channels_last,
        };
        choose_panels(&call, &call.phases(), LANES, multiplier)
    }

    fn are_wide(panels: &Panels) -> bool {
        panels.panels.iter().all(|panel| panel.vectors == 2)
    }

    #[test]
    fn phases_share_panels_that_would_be_narrow() {
        assert!(are_wide(&panels(16, 2, true, Multiplier::Vectors)));
        let rows = panels(16, 2, false, Multiplier::Vectors);
        assert!(are_wide(&rows) && rows.hold_rows(2));
    }

    #[test]
    fn channels_first_panels_stay_narrow_rather_than_hold_parts_of_rows() {
        assert!(!panels(16, 3, false, Multiplier::Vectors).share_phases());
        assert!(panels(16, 3, true, Multiplier::Vectors).share_phases());
    }

    #[test]
    fn channels_first_outputs_are_not_stored_one_by_one() {
        for multiplier in [Multiplier::Vectors, TILES] {
            for (out_channels, stride) in
                [(21, 8), (12, 8), (19, 4), (64, 20), (40, 24), (5, 32), (2, 40), (64, 48)]
            {
                let panels = panels(out_channels, stride, false, multiplier);
                assert!(
                    !panels.are_scattered(stride, stride),
                    "{out_channels} channels, stride {stride}, {multiplier:?}"
                );
            }
        }
    }

    #[test]
    fn wide_panels_and_those_of_tiles_hold_a_phase() {
        assert!(!panels(32, 2, true, Multiplier::Vectors).share_phases());
        assert!(!panels(16, 2, true, TILES).share_phases());
    }
}
