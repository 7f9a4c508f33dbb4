//! What becomes of sums before they are stored.

use outstride_kernels::{Kernels, Real};
use outstride_spec::Activation;

/// The steps after the sums, in their order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Finish<'a> {
    /// Integer sums become real numbers.
    pub(crate) scaling: Option<&'a Scaling>,
    pub(crate) activation: Activation,
    /// Real numbers become integers again: the scale and zero point of these.
    pub(crate) output: Option<(f32, f32)>,
}

impl Finish<'_> {
    pub(crate) fn activation(activation: Activation) -> Self {
        Finish { scaling: None, activation, output: None }
    }

    /// Finishes sums in rows of columns, given their scales.
    pub(crate) fn apply<T: Real>(&self, kernels: &Kernels<T>, sums: &mut [T], scales: Option<Scales<'_>>) {
        if let Some(Scales { scales, bias }) = scales {
            kernels.dequantize(sums, scales, bias);
        }
        kernels.activate(sums, &self.activation);
        if let Some((scale, zero_point)) = self.output {
            kernels.quantize(sums, scale, zero_point);
        }
    }
}

/// How integer sums become real numbers: `sum · scale + bias`.
#[derive(Debug)]
pub(crate) struct Scaling {
    /// Per output channel.
    scales: Vec<f32>,
    bias: Vec<f32>,
    /// As the bias of the packed filter lies.
    panel_scales: Vec<f32>,
    panel_bias: Vec<f32>,
}

/// The scales and biases of some columns.
#[derive(Clone, Copy)]
pub(crate) struct Scales<'a> {
    scales: &'a [f32],
    bias: &'a [f32],
}

impl Scaling {
    /// Of these values per output channel, given how values lie that go with the panels' columns.
    pub(crate) fn new(scales: Vec<f32>, bias: Vec<f32>, lay_out: impl Fn(&[f32]) -> Vec<f32>) -> Self {
        Scaling { panel_scales: lay_out(&scales), panel_bias: lay_out(&bias), scales, bias }
    }

    /// Those of some output channels.
    pub(crate) fn channels(&self, range: std::ops::Range<usize>) -> Scales<'_> {
        Scales { scales: &self.scales[range.clone()], bias: &self.bias[range] }
    }

    /// Those of a panel's columns.
    pub(crate) fn columns(&self, range: std::ops::Range<usize>) -> Scales<'_> {
        Scales { scales: &self.panel_scales[range.clone()], bias: &self.panel_bias[range] }
    }
}
