//! A call in canonical order and double precision, where it can be changed at will.

use anyhow::{Context as _, Result};
use outstride::{
    Activation, Axis, Call, DataLayout, Epilogue, Geometry, IntegerOverflow, Tensor, TensorView, reference,
};

use crate::convolve::Tensors;
use crate::relayout::Order;

/// The operator's definition with its tensors.
#[derive(Clone, Debug)]
pub(super) struct Canonical {
    pub(super) batch: usize,
    pub(super) groups: usize,
    pub(super) in_channels: usize,
    pub(super) out_channels: usize,
    pub(super) axes: Vec<Axis>,
    /// `(N, C, X…)`
    pub(super) x: Vec<f64>,
    /// `(G, C/G, M/G, k…)`
    pub(super) w: Vec<f64>,
    pub(super) bias: Option<Vec<f64>>,
    pub(super) activation: Activation,
    /// The layout of the input as it was given, and of the output as it is wanted.
    pub(super) layout: DataLayout,
}

impl Canonical {
    pub(super) fn new(call: &Call, tensors: &Tensors<'_>) -> Self {
        let geometry = &call.geometry;
        let input = Order::of_data(&call.input, tensors.input.shape());
        let filter = Order::of_filter(&call.filter, tensors.filter.shape(), geometry.groups());
        Canonical {
            batch: geometry.batch(),
            groups: geometry.groups(),
            in_channels: geometry.in_channels(),
            out_channels: geometry.out_channels(),
            axes: geometry.axes().to_vec(),
            x: input.gather(&doubles(tensors.input)),
            w: filter.gather(&doubles(tensors.filter)),
            bias: tensors.bias.map(doubles),
            activation: call.activation,
            layout: call.output.clone(),
        }
    }

    fn geometry(&self) -> Result<Geometry> {
        Ok(Geometry::new(self.batch, self.groups, self.in_channels, self.out_channels, self.axes.clone())?)
    }

    /// How many products the fullest sum has.
    pub(super) fn products(&self) -> f64 {
        let taps = |axis: &Axis| axis.kernel.div_ceil(axis.stride).min(axis.input.max(1)) as f64;
        (self.in_channels / self.groups) as f64 * self.axes.iter().map(taps).product::<f64>()
    }

    /// The result by the definition: shape and values in the layout of the output.
    pub(super) fn evaluate(&self) -> Result<(Vec<usize>, Vec<f64>)> {
        let geometry = self.geometry()?;
        let shape = geometry.output_shape();
        let count = shape.iter().try_fold(1usize, |count, &size| count.checked_mul(size));
        let count = count.context("the output has more elements than can be counted")?;
        let mut y = Tensor::from_vec(&shape, vec![0.0; count])?;
        let epilogue = Epilogue { activation: self.activation, overflow: IntegerOverflow::default() };
        reference::conv_transpose(
            &geometry,
            &epilogue,
            TensorView::from_slice(&geometry.input_shape(), &self.x)?,
            TensorView::from_slice(&geometry.filter_shape(), &self.w)?,
            self.bias.as_deref(),
            y.view_mut(),
        )?;
        let outside = self.layout.arrange(&shape);
        let values = Order::of_data(&self.layout, &outside).scatter(y.data());
        Ok((outside, values))
    }

    /// The same sums of magnitudes instead of values: what rounding errors are in proportion to.
    pub(super) fn magnitudes(&self) -> Result<Vec<f64>> {
        let absolute = |values: &[f64]| values.iter().map(|value| value.abs()).collect::<Vec<_>>();
        let magnitudes = Canonical {
            x: absolute(&self.x),
            w: absolute(&self.w),
            bias: self.bias.as_deref().map(absolute),
            activation: Activation::Identity,
            ..self.clone()
        };
        Ok(magnitudes.evaluate()?.1)
    }
}

pub(super) fn doubles(tensor: &outstride_io::AnyTensor) -> Vec<f64> {
    (0..tensor.values().len()).filter_map(|index| tensor.values().get(index)).map(f64::from).collect()
}
