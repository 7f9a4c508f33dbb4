//! The definition of the quantized operator, written for reading.

use outstride_spec::{Activation, Geometry, IntegerOverflow};

use super::{Affine, Byte, Quantization};
use crate::epilogue::{Epilogue, activate};
use crate::error::Error;
use crate::exact::ExactInteger;
use crate::reference;
use crate::tensor::{Tensor, TensorView};

/// Computes the real outputs from tensors in canonical order, as
/// [`reference::conv_transpose`](crate::reference::conv_transpose) does. [`Affine::quantize`] gives what a quantized output
/// stores of them.
pub fn conv_transpose_quantized<X: Byte>(
    geometry: &Geometry,
    quantization: &Quantization,
    activation: &Activation,
    x: &Tensor<X>,
    w: TensorView<'_, i8>,
    bias: Option<&[f32]>,
) -> Result<Vec<f32>, Error> {
    let channels = geometry.out_channels();
    let scales = super::scales::<X>(quantization, channels)?;
    if let Some(found) = bias.map(<[f32]>::len).filter(|&found| found != channels) {
        return Err(Error::BiasLength { expected: channels, found });
    }
    let zero_point = quantization.input.zero_point as i16;
    let above_zero: Vec<i16> = x.data().iter().map(|&value| value.into() as i16 - zero_point).collect();
    let above_zero = Tensor::from_vec(x.shape(), above_zero)?;
    let mut sums = Tensor::<i64>::zeros("the sums", &geometry.output_shape())?;
    let none: Option<&[i8]> = None;
    reference::conv_transpose(geometry, &Epilogue::default(), above_zero.view(), w, none, sums.view_mut())?;
    let image: usize = geometry.axes().iter().map(|axis| axis.output).product();
    let real = |(index, &sum): (usize, &i64)| {
        let channel = index / image % channels;
        let scaled = sum as f32 * scales[channel] + bias.map_or(0.0, |bias| bias[channel]);
        activate(f64::from(scaled), activation) as f32
    };
    Ok(sums.data().iter().enumerate().map(real).collect())
}

impl Affine {
    /// The nearest integer of a type that stands for a real number.
    pub fn quantize<Y: Byte>(&self, real: f32) -> Y {
        let integer = (real / self.scale).round_ties_even() + self.zero_point as f32;
        Y::narrow(ExactInteger::new(integer as i128), IntegerOverflow::Saturate)
    }
}
