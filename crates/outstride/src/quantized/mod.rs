//! Transposed convolution of quantized tensors: bytes that stand for real numbers.
//!
//! ```text
//! sum  = Σ (x − x_zero) · w                                       exactly, over real inputs only
//! real = activation( f32(sum) · (x_scale · w_scale) + bias )      each operation rounded to f32
//! y    = real,  or  saturate( round(real / y_scale) + y_zero )    to the nearest integer, ties to even
//! ```
//!
//! This is the operator between a DequantizeLinear and a QuantizeLinear of ONNX, and oneDNN's 8-bit deconvolution.

mod definition;
mod sums;

use std::sync::Arc;

use outstride_kernels::Stored;
use outstride_spec::{Activation, Call, DType, Dialect, Policy};

pub use definition::conv_transpose_quantized;

use crate::element::Element;
use crate::engine::{Finish, Plan};
use crate::error::Error;
use crate::exact::ExactInteger;
use crate::op::Options;
use crate::parallel::{Executor, SharedExecutor};
use crate::signature::Signature;
use crate::tensor::{TensorView, TensorViewMut};
use sums::Sums;

/// What integers stand for: `real = scale · (integer − zero_point)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Affine {
    /// The distance between neighbouring integers.
    pub scale: f32,
    /// The integer that stands for zero.
    pub zero_point: i32,
}

/// What the integers of input and weights stand for.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantization {
    /// The input.
    pub input: Affine,
    /// The weights, whose zero point is 0: one scale for all, or one per output channel.
    pub weight_scales: Vec<f32>,
}

/// A type that quantized tensors are stored in: `i8` or `u8`.
pub trait Byte: Element<Widened = Self, Wide = ExactInteger> + Stored<f32> + Stored<f64> + Into<i32> {}

impl Byte for i8 {}
impl Byte for u8 {}

/// A transposed convolution with 8-bit weights, for 8-bit inputs of any size.
///
/// ```
/// use std::sync::Arc;
/// use outstride::{Affine, Options, Quantization, QuantizedConvTranspose, TensorView, TensorViewMut, torch};
///
/// let weight = [1i8, -2];
/// let weight = TensorView::from_slice(&[1, 1, 2], &weight)?;
/// let dialect = Arc::new(torch::ConvTranspose { stride: vec![2], ..Default::default() });
/// let quantization =
///     Quantization { input: Affine { scale: 0.5, zero_point: 128 }, weight_scales: vec![0.25] };
/// let op = QuantizedConvTranspose::<u8>::new(dialect, weight, None, &quantization, &Options::default())?;
///
/// // 129 stands for 0.5, and 1 and −2 for 0.25 and −0.5.
/// let x = [129u8];
/// let mut y = [0f32; 2];
/// op.run_into(TensorView::from_slice(&[1, 1, 1], &x)?, TensorViewMut::from_slice(&[1, 1, 2], &mut y)?)?;
/// assert_eq!(y, [0.125, -0.25]);
/// # Ok::<(), outstride::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct QuantizedConvTranspose<X: Byte> {
    signature: Signature,
    sums: Arc<Sums>,
    input: Affine,
    of: std::marker::PhantomData<X>,
}

impl<X: Byte> QuantizedConvTranspose<X> {
    /// Checks the filter against the attributes, as one of real numbers, and copies it into the engine's order.
    pub fn new(
        dialect: Arc<dyn Dialect>,
        filter: TensorView<'_, i8>,
        bias: Option<&[f32]>,
        quantization: &Quantization,
        options: &Options,
    ) -> Result<Self, Error> {
        let biases = bias.map(<[f32]>::len);
        let signature = Signature::new(dialect, DType::F32, filter.shape(), biases, options.limits)?;
        let call = &signature.filter_call;
        let scales = scales::<X>(quantization, call.out_channels)?;
        let bias = bias.map_or_else(|| vec![0.0; call.out_channels], <[f32]>::to_vec);
        let canonical = filter.canonical_filter(&call.layout, call.groups);
        let signed = <X as Element>::DTYPE == DType::I8;
        let sums = Arc::new(Sums::new(call, signed, &canonical, scales, bias, options)?);
        let input = quantization.input;
        Ok(QuantizedConvTranspose { signature, sums, input, of: std::marker::PhantomData })
    }

    /// Decides by the specification's text or by its runtime, where they disagree.
    pub fn with_policy(mut self, policy: Policy) -> Self {
        self.signature.policy = policy;
        self
    }

    /// Applies a function to the real numbers, after the bias.
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

    /// Runs on `x` and writes real numbers into `y`, whatever the strides of either.
    pub fn run_into(&self, x: TensorView<'_, X>, y: TensorViewMut<'_, f32>) -> Result<(), Error> {
        let call = self.signature.resolve_into(x.shape(), y.shape())?;
        self.execute(&call, x, y, None);
        Ok(())
    }

    /// Runs on `x` and writes integers that stand for real numbers into `y`.
    pub fn run_quantized_into<Y: Byte>(
        &self,
        x: TensorView<'_, X>,
        y: TensorViewMut<'_, Y>,
        output: Affine,
    ) -> Result<(), Error> {
        check::<Y>("the output", output)?;
        let call = self.signature.resolve_into(x.shape(), y.shape())?;
        self.execute(&call, x, y, Some(output));
        Ok(())
    }

    /// What a call on a row-major input of this shape would do.
    pub fn plan(&self, input_shape: &[usize]) -> Result<Plan, Error> {
        let (call, x, y) = self.signature.resolve_row_major(input_shape)?;
        let threads = self.signature.executor.0.threads();
        Ok(self.sums.plan::<X>(&call, x.strides(), y.strides(), threads))
    }

    fn execute<Y: Stored<f32> + Stored<f64>>(
        &self,
        call: &Call,
        x: TensorView<'_, X>,
        y: TensorViewMut<'_, Y>,
        output: Option<Affine>,
    ) {
        let (x, y) = (x.canonical_data(&call.input), y.canonical_data(&call.output));
        let scaling = self.sums.scaling();
        let finish = Finish {
            scaling: Some(scaling),
            activation: call.activation,
            output: output.map(|output| scaling.output(output.scale, output.zero_point as f32)),
        };
        self.sums.run(call, self.input.zero_point as f32, x, y, &finish, &*self.signature.executor.0);
    }
}

/// Refuses scales and zero points that stand for nothing.
fn check<Q: Byte>(what: &'static str, affine: Affine) -> Result<(), Error> {
    let Affine { scale, zero_point } = affine;
    check_scale(what.to_owned(), scale)?;
    let (least, greatest) = if <Q as Element>::DTYPE == DType::I8 { (-128, 127) } else { (0, 255) };
    if !(least..=greatest).contains(&zero_point) {
        return Err(Error::ZeroPoint { what, found: zero_point, dtype: <Q as Element>::DTYPE });
    }
    Ok(())
}

fn check_scale(what: String, scale: f32) -> Result<(), Error> {
    if scale.is_finite() && scale > 0.0 { Ok(()) } else { Err(Error::Scale { what, found: scale }) }
}

/// Per output channel, what a sum of one stands for, if scales and zero point of an input of a type stand for anything.
fn scales<X: Byte>(quantization: &Quantization, channels: usize) -> Result<Vec<f32>, Error> {
    let Quantization { input, weight_scales } = quantization;
    check::<X>("the input", *input)?;
    for (index, &scale) in weight_scales.iter().enumerate() {
        check_scale(format!("output channel {index} of the weights"), scale)?;
    }
    match weight_scales.as_slice() {
        &[scale] => Ok(vec![input.scale * scale; channels]),
        scales if scales.len() == channels => Ok(scales.iter().map(|scale| input.scale * scale).collect()),
        scales => Err(Error::ScaleCount { expected: channels, found: scales.len() }),
    }
}
