//! What becomes of sums before they are stored.

use std::ops::Range;

use outstride_kernels::{ByteOutput, Kernels, MatrixSession, Real, Requantization, UNBOUNDED};
use outstride_spec::Activation;

use super::pack::PackedFilter;
use super::panels::Multiplier;

/// The steps after the sums, in their order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finish<'a> {
    /// Integer sums become real numbers.
    pub(crate) scaling: Option<&'a Scaling>,
    pub(crate) activation: Activation,
    /// Real numbers become bytes again.
    pub(crate) output: Option<ByteOutput>,
}

impl Finish<'_> {
    pub(crate) fn activation(activation: Activation) -> Self {
        Finish { scaling: None, activation, output: None }
    }

    /// The bounds that the activation brings values into, if it does nothing else.
    pub(crate) fn bounds(&self) -> Option<(f32, f32)> {
        match self.activation {
            Activation::Identity => Some(UNBOUNDED),
            Activation::Relu => Some((0.0, UNBOUNDED.1)),
            Activation::Clip { min, max } => Some((min, max)),
            _ => None,
        }
    }

    /// Finishes sums in rows of columns, given their scales.
    pub(crate) fn apply<T: Real>(&self, kernels: &Kernels<T>, sums: &mut [T], scales: Option<Scales<'_>>) {
        match scales {
            Some(scales) => self.requantize(kernels, sums, scales, |sums, to| kernels.requantize(sums, to)),
            None => kernels.activate(sums, &self.activation),
        }
    }

    /// Finishes the integers that tiles of bytes left.
    pub(crate) fn apply_to_integers<T: Real>(
        &self,
        kernels: &Kernels<T>,
        sums: &mut [T],
        scales: Scales<'_>,
        session: &MatrixSession,
    ) {
        self.requantize(kernels, sums, scales, |sums, to| match T::as_f32_mut(sums) {
            Some(sums) => session.requantize(sums, to),
            None => unreachable!("matrix tiles compute 32-bit numbers"),
        });
    }

    /// Where the activation is no more than bounds, in one pass.
    fn requantize<T: Real>(
        &self,
        kernels: &Kernels<T>,
        sums: &mut [T],
        Scales { scales, bias }: Scales<'_>,
        requantize: impl FnOnce(&mut [T], &Requantization<'_>),
    ) {
        if let Some(bounds) = self.bounds() {
            requantize(sums, &Requantization { scales, bias, bounds, output: self.output });
            return;
        }
        requantize(sums, &Requantization { scales, bias, bounds: UNBOUNDED, output: None });
        kernels.activate(sums, &self.activation);
        if self.output.is_some() {
            let (scales, bias) = (&[1.0], &[0.0]);
            kernels
                .requantize(sums, &Requantization { scales, bias, bounds: UNBOUNDED, output: self.output });
        }
    }
}

/// How integer sums become real numbers: `sum · scale + bias`.
#[derive(Debug)]
pub(crate) struct Scaling {
    of_channels: ScaleLists,
    /// Per column of the panels of every packed filter, by what multiplies with it and how many groups it joins.
    of_panels: Vec<((Multiplier, usize), ScaleLists)>,
}

/// Scales and biases, of all output channels or as the bias of a packed filter lies.
#[derive(Debug)]
struct ScaleLists {
    scales: Vec<f32>,
    bias: Vec<f32>,
}

impl ScaleLists {
    fn get(&self, range: Range<usize>) -> Scales<'_> {
        Scales { scales: &self.scales[range.clone()], bias: &self.bias[range] }
    }
}

/// The scales and biases of some channels or columns.
#[derive(Clone, Copy)]
pub(crate) struct Scales<'a> {
    scales: &'a [f32],
    bias: &'a [f32],
}

impl<'a> Scales<'a> {
    /// What becomes of the integers of some of the columns.
    pub(crate) fn requantization(
        &self,
        columns: Range<usize>,
        bounds: (f32, f32),
        output: Option<ByteOutput>,
    ) -> Requantization<'a> {
        Requantization { scales: &self.scales[columns.clone()], bias: &self.bias[columns], bounds, output }
    }
}

impl Scaling {
    /// Of these values per output channel, for these filters.
    pub(crate) fn new<'a, T: Real + 'a>(
        scales: Vec<f32>,
        bias: Vec<f32>,
        filters: impl Iterator<Item = &'a PackedFilter<T>>,
    ) -> Self {
        let of_panels = |filter: &PackedFilter<T>| {
            let lists = ScaleLists { scales: filter.lay_out(&scales), bias: filter.lay_out(&bias) };
            ((filter.multiplier, filter.joined), lists)
        };
        Scaling { of_panels: filters.map(of_panels).collect(), of_channels: ScaleLists { scales, bias } }
    }

    /// The bytes with such a scale and zero point that sums become.
    pub(crate) fn output(&self, scale: f32, zero_point: f32) -> ByteOutput {
        ByteOutput::new((scale, zero_point), &self.of_channels.scales, &self.of_channels.bias)
    }

    /// Those of some output channels.
    pub(crate) fn channels(&self, range: Range<usize>) -> Scales<'_> {
        self.of_channels.get(range)
    }

    /// Those of the columns of a panel of a filter.
    pub(crate) fn columns<T: Real>(
        &self,
        filter: &PackedFilter<T>,
        group: usize,
        panel: usize,
    ) -> Scales<'_> {
        let key = (filter.multiplier, filter.joined);
        let of_filter = self.of_panels.iter().find(|(of, _)| *of == key);
        let (_, lists) = of_filter.expect("made for all filters");
        lists.get(filter.panel_columns(group, panel))
    }
}
