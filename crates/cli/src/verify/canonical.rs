//! A call in canonical order and double precision, where it can be changed at will.

use std::rc::Rc;

use anyhow::{Context as _, Result};
use outstride::{
    Activation, Axis, Call, DataLayout, Epilogue, FilterLayout, Geometry, IntegerOverflow, Tensor,
    TensorView, reference,
};
use outstride_spec::Phase;

use crate::convolve::Tensors;
use crate::relayout::Order;

/// The operator's definition with its tensors, which copies share until one of them is changed.
#[derive(Clone, Debug)]
pub(super) struct Canonical {
    pub(super) batch: usize,
    pub(super) groups: usize,
    pub(super) in_channels: usize,
    pub(super) out_channels: usize,
    pub(super) axes: Vec<Axis>,
    /// `(N, C, X…)`
    pub(super) x: Rc<Vec<f64>>,
    /// `(G, C/G, M/G, k…)`
    pub(super) w: Rc<Vec<f64>>,
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
            x: Rc::new(input.gather(&doubles(tensors.input))),
            w: Rc::new(filter.gather(&doubles(tensors.filter))),
            bias: tensors.bias.map(doubles),
            activation: call.activation,
            layout: call.output.clone(),
        }
    }

    /// Whether the same is computed.
    pub(super) fn same(&self, other: &Self) -> bool {
        let equal = |a: &Rc<Vec<f64>>, b: &Rc<Vec<f64>>| Rc::ptr_eq(a, b) || a == b;
        self.axes == other.axes
            && self.activation == other.activation
            && self.layout == other.layout
            && self.bias == other.bias
            && equal(&self.w, &other.w)
            && equal(&self.x, &other.x)
    }

    /// `(N, M, Y…)`
    pub(super) fn output_shape(&self) -> Vec<usize> {
        let channels = [self.batch, self.out_channels];
        channels.into_iter().chain(self.axes.iter().map(|axis| axis.output)).collect()
    }

    fn geometry(&self) -> Result<Geometry> {
        Ok(Geometry::new(self.batch, self.groups, self.in_channels, self.out_channels, self.axes.clone())?)
    }

    /// How many products the fullest sum has.
    pub(super) fn products(&self) -> f64 {
        let fullest = |axis: &Axis| {
            let phases = Phase::of_axis(axis.kernel, axis.stride, axis.dilation);
            phases.iter().map(|phase| phase.taps.len()).max().unwrap_or(0)
        };
        let taps = |axis: &Axis| fullest(axis).min(axis.input.max(1)) as f64;
        (self.in_channels / self.groups) as f64 * self.axes.iter().map(taps).product::<f64>()
    }

    /// The result by the definition: shape and values in the layout of the output.
    pub(super) fn evaluate(&self) -> Result<(Vec<usize>, Vec<f64>)> {
        let geometry = self.geometry()?;
        let shape = geometry.output_shape();
        let count = shape.iter().try_fold(1usize, |count, &size| count.checked_mul(size));
        let count = count.context("the output has more elements than can be counted")?;
        let mut y = Tensor::from_vec(&shape, vec![0.0; count])?;
        reference::conv_transpose(
            &geometry,
            &self.epilogue(),
            TensorView::from_slice(&geometry.input_shape(), &self.x)?,
            TensorView::from_slice(&geometry.filter_shape(), &self.w)?,
            self.bias.as_deref(),
            y.view_mut(),
        )?;
        let outside = self.layout.arrange(&shape);
        let values = Order::of_data(&self.layout, &outside).scatter(y.data());
        Ok((outside, values))
    }

    /// One element of the result by the definition, at `(n, m, y…)`: a call of its own that has no other output.
    pub(super) fn element(&self, index: &[usize]) -> Result<f64> {
        let (channels, outputs) = (self.in_channels / self.groups, self.out_channels / self.groups);
        let (group, output) = (index[1] / outputs, index[1] % outputs);
        let axes: Vec<Axis> = self.axes.iter().zip(&index[2..]).map(|(axis, &at)| only(axis, at)).collect();
        let geometry = Geometry::new(1, 1, channels, 1, axes)?;
        let image = geometry.input_shape().iter().product::<usize>();
        let x = &self.x[(index[0] * self.groups + group) * image..][..image];
        let taps = self.axes.iter().map(|axis| axis.kernel).product::<usize>();
        let filter = outputs * channels * taps;
        let order = Order::of_filter(&FilterLayout::giox(self.axes.len()), &self.filter_shape(), self.groups);
        let w = &self.w[group * filter..][..filter];
        let w = TensorView::from_parts(w, output * taps, &geometry.filter_shape(), &order.strides)?;
        let mut y = Tensor::from_vec(&geometry.output_shape(), vec![0.0])?;
        let bias = self.bias.as_ref().map(|bias| &bias[index[1]..=index[1]]);
        let x = TensorView::from_slice(&geometry.input_shape(), x)?;
        reference::conv_transpose(&geometry, &self.epilogue(), x, w, bias, y.view_mut())?;
        Ok(y.data()[0])
    }

    /// `(G, C/G, M/G, k…)`
    fn filter_shape(&self) -> Vec<usize> {
        let channels = [self.groups, self.in_channels / self.groups, self.out_channels / self.groups];
        channels.into_iter().chain(self.axes.iter().map(|axis| axis.kernel)).collect()
    }

    fn epilogue(&self) -> Epilogue {
        Epilogue { activation: self.activation, overflow: IntegerOverflow::default() }
    }

    /// More than any finite sum of magnitudes, without computing one.
    pub(super) fn magnitude_limit(&self) -> f64 {
        let largest = |values: &[f64]| {
            let finite = values.iter().filter(|value| value.is_finite());
            finite.fold(0.0f64, |largest, value| largest.max(value.abs()))
        };
        self.products() * largest(&self.x) * largest(&self.w) + self.bias.as_deref().map_or(0.0, largest)
    }

    /// The same sums of magnitudes instead of values: what rounding errors are in proportion to.
    pub(super) fn magnitudes(&self) -> Result<Vec<f64>> {
        let absolute = |values: &[f64]| values.iter().map(|value| value.abs()).collect::<Vec<_>>();
        let magnitudes = Canonical {
            x: Rc::new(absolute(&self.x)),
            w: Rc::new(absolute(&self.w)),
            bias: self.bias.as_deref().map(absolute),
            activation: Activation::Identity,
            ..self.clone()
        };
        Ok(magnitudes.evaluate()?.1)
    }
}

/// The axis with this output alone.
fn only(axis: &Axis, output: usize) -> Axis {
    Axis { output: 1, pad_begin: axis.pad_begin.saturating_add(output as i64), ..*axis }
}

pub(super) fn doubles(tensor: &outstride_io::AnyTensor) -> Vec<f64> {
    (0..tensor.values().len()).filter_map(|index| tensor.values().get(index)).map(f64::from).collect()
}
