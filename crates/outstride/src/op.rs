//! The prepared operator.

use std::sync::Arc;

use outstride_spec::{Activation, Call, Dialect, Policy};

use outstride_kernels::Isa;

use crate::element::Element;
use crate::engine::{Path, Plan};
use crate::error::Error;
use crate::limits::Limits;
use crate::parallel::{Executor, SharedExecutor};
use crate::prepared::PreparedFilter;
use crate::signature::Signature;
use crate::tensor::{Tensor, TensorView, TensorViewMut};

/// How an operator is prepared.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// What preparing and running may cost.
    pub limits: Limits,
    /// The best instruction set to use; `None` is the best this CPU has, capped by `OUTSTRIDE_ISA`.
    pub isa: Option<Isa>,
    /// A path to prefer over the planner's choice where it can run.
    pub path: Option<Path>,
    /// How sums may be computed.
    pub precision: Precision,
}

/// How sums may be computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Precision {
    /// By anything whose error is about that of plain summation in the element type: also by matrix tiles of numbers cut
    /// into parts, and by Winograd's filtering.
    #[default]
    Full,
    /// By products and sums of the elements themselves, in the element type; of 16-bit floats, in 32 bits.
    Strict,
    /// As [`Full`](Self::Full), but inputs and weights may be rounded to bf16 first, where that is faster. Sums and
    /// outputs keep the precision they have otherwise.
    Bf16Compute,
}

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
pub struct ConvTranspose<T: Element> {
    signature: Signature,
    prepared: Arc<dyn PreparedFilter<T>>,
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
        Self::with_options(dialect, filter, bias, &Options { limits, ..Options::default() })
    }

    /// As [`new`](Self::new), with a say in how it is done.
    pub fn with_options(
        dialect: Arc<dyn Dialect>,
        filter: TensorView<'_, T>,
        bias: Option<&[T]>,
        options: &Options,
    ) -> Result<Self, Error> {
        let bias = bias.map(|bias| bias.iter().map(|&value| value.widened()).collect::<Vec<_>>());
        Self::with_wide_bias(dialect, filter, bias.as_deref(), options)
    }

    /// As [`with_options`](Self::with_options), with a bias that is not rounded to the type of the filter: 16-bit floats
    /// take one of `f32`.
    pub fn with_wide_bias(
        dialect: Arc<dyn Dialect>,
        filter: TensorView<'_, T>,
        bias: Option<&[T::Widened]>,
        options: &Options,
    ) -> Result<Self, Error> {
        let biases = bias.map(<[T::Widened]>::len);
        let signature = Signature::new(dialect, T::DTYPE, filter.shape(), biases, options.limits)?;
        let call = &signature.filter_call;
        let canonical = filter.canonical_filter(&call.layout, call.groups);
        Ok(ConvTranspose { prepared: T::prepare(call, &canonical, bias, options)?, signature })
    }

    /// Decides by the specification's text or by its runtime, where they disagree.
    pub fn with_policy(mut self, policy: Policy) -> Self {
        self.signature.policy = policy;
        self
    }

    /// Bounds what a call may cost.
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.signature.limits = limits;
        self
    }

    /// Applies a function after the bias, instead of the dialect's own if it has one.
    pub fn with_activation(mut self, activation: Activation) -> Self {
        self.signature.activation = Some(activation);
        self
    }

    /// Runs on these threads, such as a [`Team`](crate::Team). Without this, calls use the rayon pool of the calling thread.
    pub fn with_executor(mut self, executor: Arc<dyn Executor>) -> Self {
        self.signature.executor = SharedExecutor(executor);
        self
    }

    /// What a call on an input of this shape means: its geometry, layouts and output shape.
    pub fn resolve(&self, input_shape: &[usize]) -> Result<Call, Error> {
        self.signature.resolve(input_shape)
    }

    /// Runs on `x` and returns a new tensor in the dialect's layout.
    pub fn run(&self, x: TensorView<'_, T>) -> Result<Tensor<T>, Error> {
        let call = self.resolve(x.shape())?;
        let shape = call.output_shape();
        let limits = &self.signature.limits;
        limits.check_bytes("the output", shape.iter().product(), size_of::<T>())?;
        limits.check_work(&call.geometry)?;
        let mut y = Tensor::zeros("the output", &shape)?;
        self.execute(&call, x, y.view_mut())?;
        Ok(y)
    }

    /// Runs on `x` and writes into `y`, whatever the strides of either.
    pub fn run_into(&self, x: TensorView<'_, T>, y: TensorViewMut<'_, T>) -> Result<(), Error> {
        let call = self.signature.resolve_into(x.shape(), y.shape())?;
        self.execute(&call, x, y)
    }

    /// As [`run_into`](Self::run_into), without rounding to the type of the input: 16-bit floats give outputs of `f32`.
    ///
    /// ```
    /// use outstride::{ConvTranspose, Options, Tensor, TensorView, bf16, torch};
    ///
    /// let dialect = std::sync::Arc::new(torch::ConvTranspose::default());
    /// let weight = [bf16::from_f32(0.5)];
    /// let weight = TensorView::from_slice(&[1, 1, 1], &weight)?;
    /// let op = ConvTranspose::with_wide_bias(dialect, weight, Some(&[1e-3f32]), &Options::default())?;
    ///
    /// let x = Tensor::from_vec(&[1, 1, 1], vec![bf16::from_f32(2.0)])?;
    /// let mut y = Tensor::from_vec(&[1, 1, 1], vec![0f32])?;
    /// op.run_wide_into(x.view(), y.view_mut())?;
    /// assert_eq!(y.data(), [1.001]);
    /// # Ok::<(), outstride::Error>(())
    /// ```
    pub fn run_wide_into(&self, x: TensorView<'_, T>, y: TensorViewMut<'_, T::Widened>) -> Result<(), Error> {
        let call = self.signature.resolve_into(x.shape(), y.shape())?;
        let (x, y) = (x.canonical_data(&call.input), y.canonical_data(&call.output));
        self.prepared.run_wide(&call, x, y, &*self.signature.executor.0)
    }

    /// What a call on a row-major input of this shape would do.
    pub fn plan(&self, input_shape: &[usize]) -> Result<Plan, Error> {
        let (call, x, y) = self.signature.resolve_row_major(input_shape)?;
        Ok(self.prepared.plan(&call, x.strides(), y.strides(), self.signature.executor.0.threads()))
    }

    fn execute(&self, call: &Call, x: TensorView<'_, T>, y: TensorViewMut<'_, T>) -> Result<(), Error> {
        let x = x.canonical_data(&call.input);
        let y = y.canonical_data(&call.output);
        self.prepared.run(call, x, y, &*self.signature.executor.0)
    }
}
