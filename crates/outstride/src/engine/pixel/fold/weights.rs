//! The weights of the whole kernel, by the columns that products of an input are computed in.

use std::ops::Range;

use outstride_kernels::{Kernels, Real, Stored};
use outstride_spec::FilterCall;

use super::super::super::cost::CACHED_BYTES;
use crate::aligned::Aligned;
use crate::limits::Limits;
use crate::tensor::TensorView;

/// With fewer input channels, there is as much to add up as to multiply.
const FEWEST_CHANNELS: usize = 8;

/// With more output channels, it is hardly ever better than what fills vectors with them.
const MOST_OUT_CHANNELS: usize = 64;

/// So many columns, of as many output channels as that takes, are multiplied with an input while it is near.
const COLUMNS_OF_A_UNIT: usize = 48;

/// Per group: *units* of a few output channels, each in blocks of columns, `[channel][column]`. A column is a kernel element of an
/// output channel, the elements of a channel side by side.
#[derive(Debug)]
pub(crate) struct FoldWeights<T> {
    weights: Aligned<T>,
    /// Columns of a block; the last one of a unit may be filled by fewer.
    width: usize,
    /// Elements of the kernel.
    pub(super) elements: usize,
    /// Input and output channels of a group.
    channels: usize,
    out_channels: usize,
    /// Output channels of a unit, of which the last one may have fewer.
    pub(super) unit: usize,
}

impl<T: Real> FoldWeights<T> {
    /// Lays out a filter given in canonical order `(G, C/G, M/G, k…)`.
    pub(crate) fn new<Q: Stored<T>>(
        call: &FilterCall,
        filter: &TensorView<'_, Q>,
        wanted: bool,
        kernels: &Kernels<T>,
        limits: &Limits,
    ) -> Result<Self, &'static str> {
        let elements = call.kernel.iter().fold(1usize, |product, &size| product.saturating_mul(size));
        let (channels, out_channels) = (call.in_channels / call.groups, call.out_channels / call.groups);
        if elements == 0 || channels == 0 || out_channels == 0 {
            return Err("there is nothing to multiply");
        }
        if channels < FEWEST_CHANNELS && !wanted {
            return Err("there are too few products for each output to be added up");
        }
        if out_channels > MOST_OUT_CHANNELS && !wanted {
            return Err("there are enough output channels to fill vectors");
        }
        if elements.saturating_mul(channels * size_of::<T>()) > CACHED_BYTES {
            return Err("the weights of an output channel do not stay near");
        }
        let units = out_channels.div_ceil(COLUMNS_OF_A_UNIT.div_ceil(elements));
        let unit = out_channels.div_ceil(units);
        let width = best_width(kernels, unit * elements);
        let mut packed =
            FoldWeights { weights: Aligned::default(), width, elements, channels, out_channels, unit };
        let length = packed.group_len().saturating_mul(call.groups);
        let allowed = limits.check_bytes("the packed weights", length, size_of::<T>());
        let weights = allowed.ok().and_then(|()| Aligned::zeros(length).ok());
        packed.weights = weights.ok_or("there is no memory for more weights")?;
        packed.fill(filter);
        Ok(packed)
    }

    fn fill<Q: Stored<T>>(&mut self, filter: &TensorView<'_, Q>) {
        let (kernel, strides) = (&filter.shape()[3..], filter.strides());
        let place_of = |mut element: usize| {
            let mut place = 0;
            for (&size, &stride) in kernel.iter().zip(&strides[3..]).rev() {
                place += (element % size) as isize * stride;
                element /= size;
            }
            place
        };
        // Per column of a unit, where its weight of channel 0 comes from and goes to.
        let columns: Vec<(isize, usize)> = (0..self.unit * self.elements)
            .map(|column| (column / self.elements, column % self.elements))
            .map(|at| (at.0 as isize * strides[2] + place_of(at.1), self.index(0, 0, at)))
            .collect();
        let units = self.out_channels.div_ceil(self.unit);
        for (group, unit) in (0..filter.shape()[0] * units).map(|number| (number / units, number % units)) {
            let first_channel = unit * self.unit;
            let columns = &columns[..self.unit.min(self.out_channels - first_channel) * self.elements];
            let first =
                filter.offset() as isize + group as isize * strides[0] + first_channel as isize * strides[2];
            let target = self.index(group, 0, (first_channel, 0));
            for channel in 0..self.channels {
                let (first, target) = (first + channel as isize * strides[1], target + channel * self.width);
                for &(from, to) in columns {
                    self.weights.as_mut_slice()[target + to] = filter.data()[(first + from) as usize].widen();
                }
            }
        }
    }

    fn blocks_of_unit(&self) -> usize {
        (self.unit * self.elements).div_ceil(self.width)
    }

    /// Weights of a group.
    fn group_len(&self) -> usize {
        self.out_channels.div_ceil(self.unit) * self.unit_len()
    }

    fn unit_len(&self) -> usize {
        self.blocks_of_unit() * self.channels * self.width
    }

    fn index(&self, group: usize, channel: usize, (out_channel, element): (usize, usize)) -> usize {
        let column = out_channel % self.unit * self.elements + element;
        let row = column / self.width * self.channels + channel;
        group * self.group_len()
            + out_channel / self.unit * self.unit_len()
            + row * self.width
            + column % self.width
    }

    /// Columns of the widest block.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// The blocks of some output channels of a group, which are whole units: the first column, counted from the first channel's, how
    /// many there are, and the weights.
    pub(super) fn blocks(
        &self,
        group: usize,
        out_channels: Range<usize>,
    ) -> impl Iterator<Item = (usize, usize, &[T])> {
        let first = out_channels.start;
        out_channels.step_by(self.unit).flat_map(move |unit| {
            let columns = self.unit.min(self.out_channels - unit) * self.elements;
            let weights = &self.weights.as_slice()[self.index(group, 0, (unit, 0))..][..self.unit_len()];
            let blocks =
                (0..columns).step_by(self.width).zip(weights.chunks_exact(self.channels * self.width));
            blocks.map(move |(column, weights)| {
                ((unit - first) * self.elements + column, self.width.min(columns - column), weights)
            })
        })
    }

    /// The weight of an input channel at a kernel element of an output channel.
    pub(super) fn get(&self, group: usize, channel: usize, column: (usize, usize)) -> T {
        self.weights.as_slice()[self.index(group, channel, column)]
    }

    /// Bytes of all of them.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(self.weights.as_slice())
    }
}

/// How many columns blocks should have for all of them to be multiplied soonest.
fn best_width<T: Real>(kernels: &Kernels<T>, columns: usize) -> usize {
    // Per channel and vector: as many multiply-adds as there are columns, two a cycle, but weights and inputs have to be loaded.
    // What compilers make of the loop takes a quarter longer than one that is written by hand. Inputs of few vectors stay in the first-level
    // cache from block to block.
    let cost = |(most, vectors): (usize, usize)| {
        let blocks = columns.div_ceil(most);
        let width = columns.div_ceil(blocks);
        let multiply = (width * vectors) as f64 / 2.0;
        let load = (width + vectors) as f64 / 2.0 + 3.0;
        let share = if kernels.lacks_pixel_loop(width, vectors) { 0.8 } else { 1.0 };
        (multiply.max(load) / share * blocks as f64 / vectors as f64, vectors, width)
    };
    let best = kernels.pixel_shapes().map(cost).min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    best.map_or(1, |(_, _, width)| width)
}
