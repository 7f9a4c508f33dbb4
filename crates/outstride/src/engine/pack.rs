//! The weights in engine order, laid out once for inputs of every size.
//!
//! Dense filters become *panels*: blocks of columns, each an (output channel, phase) pair, that read the same inputs.
//! With many output channels a panel holds channels of one phase; with few, several phases share a panel so that
//! vectors are filled. Depthwise filters, which have one weight per channel and tap, keep one run of channels per tap.

use std::ops::Range;
use std::sync::OnceLock;

use outstride_kernels::{Kernels, Pieces, Real, Stored};
use outstride_spec::{FilterCall, Phase};

use super::panel::{Grain, MatrixWeights, WinogradWeights};
use super::pixel::{self, Block};
use crate::aligned::Aligned;
use crate::error::Error;
use crate::limits::Limits;
use crate::tensor::TensorView;

/// The weights and bias of an operator in engine order.
#[derive(Debug)]
pub(crate) struct PackedFilter<T: Real> {
    pub(crate) groups: usize,
    /// How many groups of the operator each of these is, one behind the other, with zeros between them.
    pub(crate) joined: usize,
    /// Input channels of one group.
    pub(crate) in_channels: usize,
    /// Output channels of one group.
    pub(crate) out_channels: usize,
    /// The kernel size of every spatial axis.
    pub(crate) kernel: Vec<usize>,
    /// The phases of every spatial axis.
    pub(crate) phases: Vec<Vec<Phase>>,
    /// What the form was chosen for.
    pub(crate) multiplier: Multiplier,
    pub(crate) form: Form,
    weights: Aligned<T>,
    /// Weights of one group, in elements.
    group_len: usize,
    /// One value per output channel; zeros without a bias.
    pub(crate) bias: Vec<T>,
    /// `[group][panel][column]`, as many columns as the widest panel has.
    panel_bias: Vec<T>,
    pub(crate) kernels: &'static Kernels<T>,
    blocks: OnceLock<Vec<Block>>,
    /// The weights in the order of matrix tiles, or why there are none.
    pub(crate) matrix: Result<MatrixWeights, &'static str>,
    /// The weights of the points of Winograd's filtering, or why there are none.
    pub(crate) winograd: Result<WinogradWeights<T>, &'static str>,
}

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
            Multiplier::Tiles(_) | Multiplier::Vectors => 1.0,
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
    /// Per spatial axis, the deltas its taps read at; the panel's taps are their product, last axis fastest.
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

    /// Weights of a group with so many input channels.
    fn group_len(&self, call: &FilterCall, lanes: usize) -> usize {
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
    pub(crate) fn taps(&self) -> usize {
        self.deltas.iter().map(Vec::len).product()
    }
}

impl<T: Real> PackedFilter<T> {
    /// Lays out a filter given in canonical order `(G, C/G, M/G, k…)`. If it has more groups than the call has, so many of them are
    /// joined.
    pub(crate) fn new<Q: Stored<T>>(
        call: &FilterCall,
        multiplier: Multiplier,
        filter: &TensorView<'_, Q>,
        bias: Option<&[T]>,
        kernels: &'static Kernels<T>,
        limits: &Limits,
    ) -> Result<Self, Error> {
        let groups = call.groups;
        let in_channels = call.in_channels / groups;
        let out_channels = call.out_channels / groups;
        let phases = call.phases();
        let form = Form::new(call, kernels.lanes(), multiplier);
        let group_len = form.group_len(call, kernels.lanes());
        let length = group_len.saturating_mul(groups);
        limits.check_bytes("the packed weights", length, size_of::<T>())?;
        let mut packed = PackedFilter {
            groups,
            joined: (filter.shape()[0] / groups.max(1)).max(1),
            in_channels,
            out_channels,
            kernel: call.kernel.clone(),
            phases,
            multiplier,
            form,
            weights: Aligned::zeros(length).map_err(|_| {
                let bytes = length.saturating_mul(size_of::<T>());
                Error::OutOfMemory { what: "the packed weights", bytes }
            })?,
            group_len,
            bias: bias.map_or_else(|| vec![T::default(); call.out_channels], <[T]>::to_vec),
            panel_bias: Vec::new(),
            kernels,
            blocks: OnceLock::new(),
            matrix: Err("the precision is strict"),
            winograd: Err("the precision is strict"),
        };
        packed.panel_bias = packed.lay_out(&packed.bias);
        if !filter.shape().contains(&0) {
            packed.fill(filter);
        }
        Ok(packed)
    }

    /// Whether there are panels.
    pub(crate) fn is_dense(&self) -> bool {
        matches!(self.form, Form::Panels(_))
    }

    /// The input channels that an output channel of a group is made of.
    pub(crate) fn channels_of(&self, out_channel: usize) -> Range<usize> {
        let each = self.in_channels / self.joined;
        let first = out_channel / (self.out_channels / self.joined) * each;
        first..first + each
    }

    /// The blocks of the pixel path.
    pub(crate) fn blocks(&self) -> &[Block] {
        self.blocks.get_or_init(|| pixel::blocks_of(self))
    }

    /// Lays the weights out in the order of matrix tiles, too, where those can compute with them.
    pub(crate) fn prepare_matrix_tiles(&mut self, grain: Grain, limits: &Limits) {
        self.matrix = MatrixWeights::new(self, grain, limits);
    }

    /// Makes the weights of the points of Winograd's filtering, too, where that is worth it or `wanted`.
    pub(crate) fn prepare_winograd(&mut self, wanted: bool, limits: &Limits) {
        self.winograd = WinogradWeights::new(self, wanted, limits);
    }

    /// Bytes of all channels of a position of the input, as matrix tiles read it.
    pub(crate) fn part_bytes(&self) -> usize {
        self.grain().position_bytes(self.in_channels)
    }

    /// What matrix tiles hold of numbers.
    pub(crate) fn grain(&self) -> Grain {
        self.matrix.as_ref().map_or(Grain::Pieces(Pieces::Bf16(1)), |weights| weights.grain)
    }

    /// The residues and taps of a phase given by its index.
    pub(crate) fn phase(&self, mut index: usize) -> Vec<&Phase> {
        let mut parts: Vec<&Phase> = self
            .phases
            .iter()
            .rev()
            .map(|axis| {
                let phase = &axis[index % axis.len()];
                index /= axis.len();
                phase
            })
            .collect();
        parts.reverse();
        parts
    }

    /// A panel by its number. Only dense filters have any.
    pub(crate) fn panel(&self, index: usize) -> &Panel {
        match &self.form {
            Form::Panels(panels) => &panels.panels[index],
            Form::Depthwise => unreachable!("a depthwise filter has no panels"),
        }
    }

    /// Panels of a group.
    pub(crate) fn panel_count(&self) -> usize {
        match &self.form {
            Form::Panels(panels) => panels.panels.len(),
            Form::Depthwise => 0,
        }
    }

    /// Vectors of the widest panel, which is the first; 1 where there are no panels.
    pub(crate) fn widest_panel(&self) -> usize {
        match &self.form {
            Form::Panels(panels) => panels.panels.first().map_or(1, |panel| panel.vectors),
            Form::Depthwise => 1,
        }
    }

    /// The weights of a panel in a group, `[tap][channel][column]`.
    pub(crate) fn panel_weights(&self, group: usize, panel: &Panel) -> &[T] {
        let start = group * self.group_len + panel.offset;
        &self.weights.as_slice()[start..start + panel.weights(self.in_channels, self.kernels.lanes())]
    }

    /// The bias of a panel in a group, one value per column.
    pub(crate) fn panel_bias(&self, group: usize, index: usize) -> &[T] {
        &self.panel_bias[self.panel_columns(group, index)]
    }

    /// Where the values of a panel's columns lie among those [laid out](Self::lay_out).
    pub(crate) fn panel_columns(&self, group: usize, index: usize) -> Range<usize> {
        let lanes = self.kernels.lanes();
        let panels = self.panel_bias.len() / self.groups.max(1) / (2 * lanes);
        let begin = (group * panels + index) * 2 * lanes;
        begin..begin + self.panel(index).vectors * lanes
    }

    /// One value per column of every panel, given one per output channel.
    pub(crate) fn lay_out<V: Copy + Default>(&self, of_channels: &[V]) -> Vec<V> {
        let Form::Panels(panels) = &self.form else { return Vec::new() };
        let width = 2 * self.kernels.lanes();
        let mut laid_out = vec![V::default(); self.groups * panels.panels.len() * width];
        for (number, columns) in laid_out.chunks_exact_mut(width).enumerate() {
            let (group, panel) = (number / panels.panels.len(), number % panels.panels.len());
            for segment in panels.segments(&panels.panels[panel]) {
                let first = group * self.out_channels + segment.first_channel;
                let values = &of_channels[first..first + segment.channels];
                columns[segment.column..segment.column + segment.channels].copy_from_slice(values);
            }
        }
        laid_out
    }

    /// What the weights of a group are counted from, of which those of a depthwise filter lie `groups` apart.
    pub(crate) fn group_weights(&self, group: usize) -> &[T] {
        let first = match self.form {
            Form::Panels(_) => group * self.group_len,
            Form::Depthwise => group,
        };
        &self.weights.as_slice()[first..]
    }

    /// The weights of a depthwise filter at one kernel element, one per group.
    pub(crate) fn depthwise_weights(&self, kernel_element: usize) -> &[T] {
        &self.weights.as_slice()[kernel_element * self.groups..][..self.groups]
    }

    /// Bytes of the packed weights.
    pub(crate) fn bytes(&self) -> usize {
        self.weights.len() * size_of::<T>()
    }

    /// Bytes of the weights in other forms: in the order of matrix tiles, and those of points.
    pub(crate) fn further_bytes(&self) -> usize {
        self.matrix.as_ref().map_or(0, MatrixWeights::bytes)
            + self.winograd.as_ref().map_or(0, WinogradWeights::bytes)
    }

    fn fill<Q: Stored<T>>(&mut self, filter: &TensorView<'_, Q>) {
        let mut weights = std::mem::take(&mut self.weights);
        let source = filter.data();
        let strides = filter.strides();
        let kernel_strides = &strides[3..];
        let target = weights.as_mut_slice();
        match &self.form {
            Form::Depthwise => {
                let kernel = &filter.shape()[3..];
                for (element, run) in target.chunks_exact_mut(self.groups).enumerate() {
                    let at = filter.offset() as isize + offset_of(element, kernel, kernel_strides);
                    for (group, weight) in run.iter_mut().enumerate() {
                        *weight = source[(at + group as isize * strides[0]) as usize].widen();
                    }
                }
            }
            Form::Panels(panels) => {
                for group in 0..self.groups {
                    for panel in &panels.panels {
                        let width = panel.vectors * self.kernels.lanes();
                        let start = group * self.group_len + panel.offset;
                        for tap in 0..panel.taps() {
                            let deltas = panel.deltas_of(tap);
                            let rows = &mut target[start + tap * self.in_channels * width..];
                            for segment in panels.segments(panel) {
                                let phase = self.phase(segment.phase);
                                if let Some(kernel) = kernel_offset(&phase, &deltas, kernel_strides) {
                                    self.fill_segment(filter, group, kernel, segment, rows, width);
                                }
                            }
                        }
                    }
                }
            }
        }
        self.weights = weights;
    }

    /// Lays out the weights of a segment at one kernel element, one row of so many columns per channel.
    fn fill_segment<Q: Stored<T>>(
        &self,
        filter: &TensorView<'_, Q>,
        group: usize,
        kernel_offset: isize,
        segment: &Segment,
        rows: &mut [T],
        width: usize,
    ) {
        let strides = filter.strides();
        let (each_in, each_out) = (self.in_channels / self.joined, self.out_channels / self.joined);
        let last = segment.first_channel + segment.channels;
        for (channel, row) in rows.chunks_exact_mut(width).enumerate().take(self.in_channels) {
            let (of_joined, within) = (channel / each_in, channel % each_in);
            let made = of_joined * each_out..(of_joined + 1) * each_out;
            let base = filter.offset() as isize
                + kernel_offset
                + (group * self.joined + of_joined) as isize * strides[0]
                + within as isize * strides[1];
            for out_channel in made.start.max(segment.first_channel)..made.end.min(last) {
                let at = base + (out_channel - made.start) as isize * strides[2];
                row[segment.column + out_channel - segment.first_channel] =
                    filter.data()[at as usize].widen();
            }
        }
    }
}

/// Whether every group has one input and one output channel.
pub(crate) fn is_depthwise(call: &FilterCall) -> bool {
    call.groups > 1 && call.in_channels == call.groups && call.out_channels == call.groups
}

impl Panel {
    fn weights(&self, in_channels: usize, lanes: usize) -> usize {
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
        axes.fold(0, |tap, (of_axis, delta)| tap * of_axis.len() + of_axis.partition_point(|of| of < delta))
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

/// Where the kernel element lies that reads at these deltas, if the phase has one.
fn kernel_offset(phase: &[&Phase], deltas: &[usize], strides: &[isize]) -> Option<isize> {
    let parts = phase.iter().zip(deltas).zip(strides);
    parts
        .map(|((phase, &delta), &stride)| {
            let tap = phase.tap_at(delta)?;
            Some(tap.kernel as isize * stride)
        })
        .sum()
}

/// The memory offset of an element given by its row-major index.
fn offset_of(mut index: usize, shape: &[usize], strides: &[isize]) -> isize {
    let mut offset = 0;
    for (&size, &stride) in shape.iter().zip(strides).rev() {
        offset += (index % size) as isize * stride;
        index /= size;
    }
    offset
}

/// Chooses how many of the innermost axes share their phases within a panel: what multiplies least, in the fewest
/// phases per panel. For channels-first outputs, panels that have all of these phases come before others: theirs are rows.
fn choose_panels(call: &FilterCall, phases: &[Vec<Phase>], lanes: usize, multiplier: Multiplier) -> Panels {
    let (in_channels, out_channels) = (call.in_channels / call.groups, call.out_channels / call.groups);
    let with = |merged: usize, at_once: usize| {
        panels_with(phases, merged, PanelSizes { out_channels, at_once, in_channels, lanes })
    };
    let candidates = |merged: usize| {
        let inner: usize = phases[phases.len() - merged..].iter().map(Vec::len).product();
        let of_all_phases = if call.channels_last { 0 } else { 2 * lanes / inner.max(1) };
        let for_rows = (of_all_phases > 0).then(|| with(merged, of_all_phases));
        for_rows.into_iter().chain([with(merged, out_channels)])
    };
    // Phases of one tap each have the same positions, so that none of them is outside where others are not. A single axis has two
    // ends, not two in every row.
    let have_borders = phases.len() > 1 && phases.iter().flatten().any(|phase| phase.taps.len() > 1);
    let cost_of_shared = if call.channels_last && have_borders { multiplier.cost_of_shared() } else { 1.0 };
    let cost = |panels: &Panels| {
        let weights = |panel: &Panel| panel.weights(in_channels.max(1), lanes) as f64;
        let all: f64 = panels.panels.iter().map(weights).sum();
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
    in_channels: usize,
    lanes: usize,
}

/// Panels whose columns run over the phases of the `merged` innermost axes, and over some output channels within each.
fn panels_with(phases: &[Vec<Phase>], merged: usize, sizes: PanelSizes) -> Panels {
    let PanelSizes { out_channels, at_once, in_channels, lanes } = sizes;
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
                let (inner_phase, channel) = (column / of_channels.len(), column % of_channels.len());
                let channels = (of_channels.len() - channel).min(end - column);
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

/// Per axis, the deltas that any of the segments' phases reads at, rising.
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
    deltas.reverse();
    deltas
}
