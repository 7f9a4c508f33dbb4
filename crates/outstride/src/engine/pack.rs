//! The weights in engine order, laid out once for inputs of every size.

use std::ops::Range;
use std::sync::OnceLock;

use bytemuck::Zeroable;
use outstride_kernels::{Kernels, Pieces, Real, Source, Stored};
use outstride_spec::{DType, FilterCall, Phase};

use super::cost::CACHED_BYTES;
use super::panel::{Grain, MatrixWeights, WinogradWeights};
use super::panels::{Form, Multiplier, Panel, Segment};
use super::pixel::{self, Block, FoldBlock, FoldWeights};
use super::weights::{WeightRun, Weights};
use crate::aligned::{Aligned, NoMemory};
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
    weights: Weights<T>,
    /// Weights of one group, in elements.
    group_len: usize,
    /// One value per output channel; zeros without a bias.
    pub(crate) bias: Vec<T>,
    /// `[group][panel][column]`, as many columns as the widest panel has.
    panel_bias: Vec<T>,
    pub(crate) kernels: &'static Kernels<T>,
    blocks: OnceLock<Vec<Block>>,
    fold_blocks: OnceLock<Vec<FoldBlock>>,
    /// The weights in the order of matrix tiles, or why there are none.
    pub(crate) matrix: Result<MatrixWeights, &'static str>,
    /// The weights of the points of Winograd's filtering, or why there are none.
    pub(crate) winograd: Result<WinogradWeights<T>, &'static str>,
    /// The weights of the whole kernel by columns of products, or why there are none.
    pub(crate) fold: Result<FoldWeights<T>, &'static str>,
}

impl<T: Real> PackedFilter<T> {
    /// Lays out a filter given in canonical order `(G, C/G, M/G, k…)`, in a form that was chosen for what multiplies with it. If it
    /// has more groups than the call has, so many of them are joined.
    pub(crate) fn new<Q: Stored<T>>(
        call: &FilterCall,
        (multiplier, form): (Multiplier, Form),
        filter: &TensorView<'_, Q>,
        bias: Option<&[T]>,
        kernels: &'static Kernels<T>,
        limits: &Limits,
    ) -> Result<Self, Error> {
        let groups = call.groups;
        let in_channels = call.in_channels / groups;
        let out_channels = call.out_channels / groups;
        let phases = call.phases();
        let group_len = form.group_len(call, kernels.lanes());
        let length = group_len.saturating_mul(groups);
        // Whatever they are kept in, a path may need them wide.
        limits.check_bytes("the packed weights", length, size_of::<T>())?;
        let mut packed = PackedFilter {
            groups,
            joined: filter.shape()[0] / groups,
            in_channels,
            out_channels,
            kernel: call.kernel.clone(),
            phases,
            multiplier,
            form,
            weights: Weights::new(Aligned::<T>::default(), kernels),
            group_len,
            bias: bias.map_or_else(|| vec![T::default(); call.out_channels], <[T]>::to_vec),
            panel_bias: Vec::new(),
            kernels,
            blocks: OnceLock::new(),
            fold_blocks: OnceLock::new(),
            matrix: Err("the precision is strict"),
            winograd: Err("the precision is strict"),
            fold: Err("a depthwise filter is not folded"),
        };
        packed.panel_bias = packed.lay_out(&packed.bias);
        packed.weights = if packed.are_kept_narrow::<Q>() {
            Weights::new(packed.laid_out(&Filling { filter, convert: |weight: Q| weight }, length)?, kernels)
        } else {
            Weights::new(packed.laid_out(&Filling { filter, convert: Q::widen }, length)?, kernels)
        };
        Ok(packed)
    }

    /// Whether weights stored as `Q` are kept as they are. Where they are too many to stay near, those that are read for a few
    /// positions only are on their way for half as long.
    fn are_kept_narrow<Q: Stored<T>>(&self) -> bool {
        let can_be_read = Source::new::<Q>(&[], self.kernels).panels().most_rows() > 0;
        size_of::<Q>() < size_of::<T>() && can_be_read && self.is_dense() && !self.stays_near()
    }

    /// Whether the weights of a group, in the type that is computed with, stay in the caches near a core until they are needed again.
    pub(crate) fn stays_near(&self) -> bool {
        self.group_len.saturating_mul(size_of::<T>()) <= CACHED_BYTES
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

    /// The weights by columns of products. Only the path that reads them may ask.
    pub(crate) fn folded(&self) -> &FoldWeights<T> {
        self.fold.as_ref().expect("planned with them")
    }

    /// The blocks of folded products.
    pub(crate) fn fold_blocks(&self) -> &[FoldBlock] {
        self.fold_blocks.get_or_init(|| pixel::fold_blocks_of(self))
    }

    /// Lays the weights out by columns of products, too, where folding these is worth it or `wanted`, given the filter that they come
    /// from once more.
    pub(crate) fn prepare_fold<Q: Stored<T>>(
        &mut self,
        call: &FilterCall,
        filter: &TensorView<'_, Q>,
        wanted: bool,
        limits: &Limits,
    ) {
        if self.is_dense() {
            self.fold = FoldWeights::new(call, filter, wanted, self.kernels, limits);
        }
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

    /// The residues and taps of a phase given by its index, per axis.
    pub(crate) fn phase(&self, index: usize) -> Vec<&Phase> {
        let mut parts: Vec<&Phase> = self.phase_from_last(index).collect();
        parts.reverse();
        parts
    }

    /// The same, the last axis first.
    pub(crate) fn phase_from_last(&self, mut index: usize) -> impl Iterator<Item = &Phase> {
        self.phases.iter().rev().map(move |axis| {
            let phase = &axis[index % axis.len()];
            index /= axis.len();
            phase
        })
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

    /// The weights of a panel in a group, `[tap][channel][column]`, as they are kept.
    pub(crate) fn panel_weights(&self, group: usize, panel: &Panel) -> WeightRun<'_, T> {
        self.run_of_panel(self.weights.kept(), group, panel)
    }

    /// The same in the type that is computed with. Narrow ones must have been [widened](Self::widen).
    pub(crate) fn computed_panel_weights(&self, group: usize, panel: &Panel) -> WeightRun<'_, T> {
        self.run_of_panel(Source::new(self.weights.computed(), self.kernels), group, panel)
    }

    fn run_of_panel<'a>(&self, source: Source<'a, T>, group: usize, panel: &Panel) -> WeightRun<'a, T> {
        let first = group * self.group_len + panel.offset;
        WeightRun { source, first, len: panel.weights(self.in_channels, self.kernels.lanes()) }
    }

    /// The type that weights are kept in.
    pub(crate) fn weight_type(&self) -> DType {
        self.weights.kept().dtype()
    }

    /// Whether weights are kept in a narrower type than what is computed with.
    pub(crate) fn is_narrow(&self) -> bool {
        self.weights.are_narrow()
    }

    /// The most rows of tiles of panels, with weights as they are kept.
    pub(crate) fn panel_rows(&self) -> usize {
        self.weights.kept().panels().most_rows()
    }

    /// Has weights in the type that is computed with, for paths that read them so.
    pub(crate) fn widen(&self) -> Result<(), NoMemory> {
        self.weights.widen()
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
        &self.weights.computed()[first..]
    }

    /// The weights of a depthwise filter at one kernel element, one per group.
    pub(crate) fn depthwise_weights(&self, kernel_element: usize) -> &[T] {
        &self.weights.computed()[kernel_element * self.groups..][..self.groups]
    }

    /// Bytes of the packed weights.
    pub(crate) fn bytes(&self) -> usize {
        self.weights.bytes()
    }

    /// Bytes of the packed weights, in the type that is computed with.
    pub(crate) fn computed_bytes(&self) -> usize {
        self.weights.computed_bytes()
    }

    /// Bytes of the weights in other forms: in the order of matrix tiles, and those of points.
    pub(crate) fn further_bytes(&self) -> usize {
        self.matrix.as_ref().map_or(0, MatrixWeights::bytes)
            + self.winograd.as_ref().map_or(0, WinogradWeights::bytes)
            + self.fold.as_ref().map_or(0, FoldWeights::bytes)
    }

    /// The weights in engine order, so many of them.
    fn laid_out<Q: Copy, E: Zeroable>(
        &self,
        filling: &Filling<'_, Q, E>,
        length: usize,
    ) -> Result<Aligned<E>, Error> {
        let mut laid_out = Aligned::zeros(length).map_err(|_| {
            let bytes = length.saturating_mul(size_of::<E>());
            Error::OutOfMemory { what: "the packed weights", bytes }
        })?;
        if filling.filter.shape().contains(&0) {
            return Ok(laid_out);
        }
        let weights = laid_out.as_mut_slice();
        match &self.form {
            Form::Depthwise => self.fill_depthwise(filling, weights),
            Form::Panels(panels) => {
                for (group, weights) in weights.chunks_exact_mut(self.group_len).enumerate() {
                    for panel in &panels.panels {
                        let segments = panels.segments(panel);
                        self.fill_panel(filling, group, panel, segments, &mut weights[panel.offset..]);
                    }
                }
            }
        }
        Ok(laid_out)
    }

    /// Lays out the weights of a depthwise filter, one per group at every kernel element.
    fn fill_depthwise<Q: Copy, E>(&self, filling: &Filling<'_, Q, E>, weights: &mut [E]) {
        let filter = filling.filter;
        let (kernel, strides) = (&filter.shape()[3..], filter.strides());
        for (element, run) in weights.chunks_exact_mut(self.groups).enumerate() {
            let at = filter.offset() as isize + offset_of(element, kernel, &strides[3..]);
            for (group, weight) in run.iter_mut().enumerate() {
                *weight = filling.weight(at + group as isize * strides[0]);
            }
        }
    }

    /// Lays out the weights of a panel in a group, tap by tap.
    fn fill_panel<Q: Copy, E>(
        &self,
        filling: &Filling<'_, Q, E>,
        group: usize,
        panel: &Panel,
        segments: &[Segment],
        weights: &mut [E],
    ) {
        let width = panel.vectors * self.kernels.lanes();
        for (tap, rows) in weights.chunks_exact_mut(self.in_channels * width).take(panel.taps()).enumerate() {
            let deltas = panel.deltas_of(tap);
            for segment in segments {
                let phase = self.phase(segment.phase);
                if let Some(kernel) = kernel_offset(&phase, &deltas, &filling.filter.strides()[3..]) {
                    self.fill_segment(filling, group, kernel, segment, rows, width);
                }
            }
        }
    }

    /// Lays out the weights of a segment at one kernel element, one row of so many columns per channel.
    fn fill_segment<Q: Copy, E>(
        &self,
        filling: &Filling<'_, Q, E>,
        group: usize,
        kernel_offset: isize,
        segment: &Segment,
        rows: &mut [E],
        width: usize,
    ) {
        let strides = filling.filter.strides();
        let (each_in, each_out) = (self.in_channels / self.joined, self.out_channels / self.joined);
        let last = segment.first_channel + segment.channels;
        for (channel, row) in rows.chunks_exact_mut(width).enumerate() {
            let (of_joined, within) = (channel / each_in, channel % each_in);
            let made = of_joined * each_out..(of_joined + 1) * each_out;
            let base = filling.filter.offset() as isize
                + kernel_offset
                + (group * self.joined + of_joined) as isize * strides[0]
                + within as isize * strides[1];
            for out_channel in made.start.max(segment.first_channel)..made.end.min(last) {
                let at = base + (out_channel - made.start) as isize * strides[2];
                row[segment.column + out_channel - segment.first_channel] = filling.weight(at);
            }
        }
    }
}

/// A filter, and what becomes of its weights.
struct Filling<'a, Q, E> {
    filter: &'a TensorView<'a, Q>,
    convert: fn(Q) -> E,
}

impl<Q: Copy, E> Filling<'_, Q, E> {
    /// The weight at a place in memory.
    fn weight(&self, at: isize) -> E {
        (self.convert)(self.filter.data()[at as usize])
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
