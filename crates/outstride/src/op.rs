//! The prepared operator.

use std::sync::Arc;

use outstride_spec::{Activation, Call, Dialect, FilterCall, Operands, Policy, TensorType};

use crate::element::Element;
use crate::epilogue::Epilogue;
use crate::error::Error;
use crate::limits::Limits;
use crate::reference;
use crate::tensor::{Tensor, TensorView, TensorViewMut};

/// A transposed convolution with its weights, ready to run on inputs of any size.
///
/// ```
/// use outstride::{Activation, ConvTranspose, Tensor, torch};
///
/// let weight = Tensor::from_vec(&[2, 1, 2], vec![1.0f32, -1.0, 2.0, -2.0])?;
/// let attributes = torch::ConvTranspose { stride: vec![2], ..Default::default() };
/// let op = ConvTranspose::new(&attributes, weight.view(), Some(&[0.5]))?.with_activation(Activation::Relu);
///
/// let x = Tensor::from_vec(&[1, 2, 2], vec![1.0, 2.0, 10.0, 20.0])?;
/// assert_eq!(op.run(x.view())?.data(), [21.5, 0.0, 42.5, 0.0]);
/// # Ok::<(), outstride::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ConvTranspose<T> {
    dialect: Arc<dyn Dialect>,
    policy: Policy,
    limits: Limits,
    activation: Option<Activation>,
    filter_call: FilterCall,
    filter_shape: Vec<usize>,
    /// `(G, C/G, M/G, k…)`, row-major.
    filter: Tensor<T>,
    bias: Option<Vec<T>>,
}

impl<T: Element> ConvTranspose<T> {
    /// Checks the filter against the attributes and copies it into the engine's order.
    pub fn new<D: Dialect + Clone + 'static>(
        dialect: &D,
        filter: TensorView<'_, T>,
        bias: Option<&[T]>,
    ) -> Result<Self, Error> {
        Self::from_dialect(Arc::new(dialect.clone()), filter, bias, Limits::default())
    }

    /// As [`new`](Self::new), for a dialect known only at run time, and with limits for the weights' own copy.
    pub fn from_dialect(
        dialect: Arc<dyn Dialect>,
        filter: TensorView<'_, T>,
        bias: Option<&[T]>,
        limits: Limits,
    ) -> Result<Self, Error> {
        let filter_call = dialect.filter(&TensorType::new(T::DTYPE, filter.shape()))?;
        if let Some(bias) = bias
            && bias.len() != filter_call.out_channels
        {
            return Err(Error::BiasLength { expected: filter_call.out_channels, found: bias.len() });
        }
        let canonical = filter.canonical_filter(&filter_call.layout, filter_call.groups);
        Ok(ConvTranspose {
            dialect,
            policy: Policy::default(),
            limits,
            activation: None,
            filter_shape: filter.shape().to_vec(),
            filter: packed_copy(&canonical, &limits)?,
            filter_call,
            bias: bias.map(<[T]>::to_vec),
        })
    }

    /// Decides by the specification's text or by its runtime, where they disagree.
    pub fn with_policy(self, policy: Policy) -> Self {
        ConvTranspose { policy, ..self }
    }

    /// Bounds what a call may cost.
    pub fn with_limits(self, limits: Limits) -> Self {
        ConvTranspose { limits, ..self }
    }

    /// Applies a function after the bias, instead of the dialect's own if it has one.
    pub fn with_activation(self, activation: Activation) -> Self {
        ConvTranspose { activation: Some(activation), ..self }
    }

    /// What a call on an input of this shape means: its geometry, layouts and output shape.
    pub fn resolve(&self, input_shape: &[usize]) -> Result<Call, Error> {
        let mut operands = Operands::new(
            TensorType::new(T::DTYPE, input_shape),
            TensorType::new(T::DTYPE, &self.filter_shape),
        );
        let bias_shape = [self.filter_call.out_channels];
        if self.bias.is_some() {
            operands = operands.with_bias(TensorType::new(T::DTYPE, &bias_shape));
        }
        let call = self.dialect.resolve(&operands, self.policy)?;
        Ok(Call { activation: self.activation.unwrap_or(call.activation), ..call })
    }

    /// Runs on `x` and returns a new tensor in the dialect's layout.
    pub fn run(&self, x: TensorView<'_, T>) -> Result<Tensor<T>, Error> {
        let call = self.resolve(x.shape())?;
        let shape = call.output_shape();
        self.limits.check_bytes("the output", shape.iter().product(), size_of::<T>())?;
        self.limits.check_work(&call.geometry)?;
        let mut y = Tensor::zeros("the output", &shape)?;
        self.execute(&call, x, y.view_mut())?;
        Ok(y)
    }

    /// Runs on `x` and writes into `y`, whatever the strides of either.
    pub fn run_into(&self, x: TensorView<'_, T>, y: TensorViewMut<'_, T>) -> Result<(), Error> {
        let call = self.resolve(x.shape())?;
        let expected = call.output_shape();
        if y.shape() != expected {
            return Err(Error::OutputShape { expected, found: y.shape().to_vec() });
        }
        self.limits.check_work(&call.geometry)?;
        self.execute(&call, x, y)
    }

    fn execute(&self, call: &Call, x: TensorView<'_, T>, y: TensorViewMut<'_, T>) -> Result<(), Error> {
        let epilogue = Epilogue { activation: call.activation, overflow: call.overflow };
        reference::conv_transpose(
            &call.geometry,
            &epilogue,
            x.canonical_data(&call.input),
            self.filter.view(),
            self.bias.as_deref(),
            y.canonical_data(&call.output),
        )
    }
}

/// A row-major copy of a view.
fn packed_copy<T: Element>(view: &TensorView<'_, T>, limits: &Limits) -> Result<Tensor<T>, Error> {
    limits.check_bytes("the weights", view.shape().iter().product(), size_of::<T>())?;
    let mut copy = Tensor::zeros("the weights", view.shape())?;
    let shape = view.shape().to_vec();
    for (position, element) in copy.data_mut().iter_mut().enumerate() {
        let mut rest = position;
        let mut source = view.offset();
        for (axis, &size) in shape.iter().enumerate().rev() {
            source = source.wrapping_add_signed((rest % size) as isize * view.strides()[axis]);
            rest /= size;
        }
        *element = view.data()[source];
    }
    Ok(copy)
}
