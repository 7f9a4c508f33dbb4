//! QuantizeLinear and DequantizeLinear: one scale for all, or one per element of an axis.

use anyhow::{Result, bail};
use outstride::DType;
use outstride_io::AnyTensor;
use outstride_io::model::{Attribute, Node};

use super::node::required;
use super::numbers::{from_f64, to_f64};

/// `saturate(round(x / scale) + zero point)`
pub(super) fn quantize(node: &Node, inputs: &[Option<&AnyTensor>]) -> Result<AnyTensor> {
    let (x, scale) = (required(inputs, 0)?, required(inputs, 1)?);
    let zero = inputs.get(2).copied().flatten();
    let dtype = match (zero, node.attributes.get("output_dtype")) {
        (Some(zero), _) => zero.values().dtype(),
        (None, Some(Attribute::Int(number))) if *number != 0 => {
            match outstride_io::onnx::element_type(*number) {
                Some(dtype) => dtype,
                None => bail!("`output_dtype` {number} names no type that is known here"),
            }
        }
        _ => DType::U8,
    };
    if !dtype.is_integer() || dtype.size() > 2 {
        bail!("quantizing to {dtype} is not supported; i8, u8, i16 and u16 are");
    }
    let parameters = Parameters::new(node, x, scale, zero)?;
    let values = to_f64(x).into_iter().enumerate().map(|(position, value)| {
        let (scale, zero) = parameters.at(position);
        // The quotient is of the data's own type before it is rounded.
        let quotient =
            if x.values().dtype() == DType::F64 { value / scale } else { f64::from((value / scale) as f32) };
        quotient.round_ties_even() + zero
    });
    from_f64(dtype, x.shape(), values.collect())
}

/// `(x − zero point) · scale`
pub(super) fn dequantize(node: &Node, inputs: &[Option<&AnyTensor>]) -> Result<AnyTensor> {
    let (x, scale) = (required(inputs, 0)?, required(inputs, 1)?);
    let parameters = Parameters::new(node, x, scale, inputs.get(2).copied().flatten())?;
    let values = to_f64(x).into_iter().enumerate().map(|(position, value)| {
        let (scale, zero) = parameters.at(position);
        (value - zero) * scale
    });
    from_f64(scale.values().dtype(), x.shape(), values.collect())
}

/// Scales and zero points by position.
struct Parameters {
    scales: Vec<f64>,
    zeros: Vec<f64>,
    /// How many elements lie between neighbours along the axis.
    inner: usize,
}

impl Parameters {
    fn new(node: &Node, x: &AnyTensor, scale: &AnyTensor, zero: Option<&AnyTensor>) -> Result<Self> {
        if matches!(node.attributes.get("block_size"), Some(Attribute::Int(size)) if *size != 0) {
            bail!("blocked quantization is not supported; one scale, or one per element of an axis, is");
        }
        let scales = to_f64(scale);
        let zeros = zero.map_or_else(|| vec![0.0; scales.len()], to_f64);
        if zeros.len() != scales.len() {
            bail!("there are {} scales but {} zero points", scales.len(), zeros.len());
        }
        let rank = x.shape().len() as i64;
        let axis = match node.attributes.get("axis") {
            Some(Attribute::Int(axis)) if *axis < 0 => axis + rank,
            Some(Attribute::Int(axis)) => *axis,
            _ => 1,
        };
        let axis = usize::try_from(axis).ok().filter(|&axis| axis < x.shape().len());
        let distance = match (scales.len(), axis) {
            (1, _) => 1,
            (count, Some(axis)) if x.shape()[axis] == count => inner(&x.shape()[axis + 1..]),
            (count, _) => bail!("{count} scales do not fit data of shape {:?} along `axis`", x.shape()),
        };
        Ok(Parameters { scales, zeros, inner: distance.max(1) })
    }

    fn at(&self, position: usize) -> (f64, f64) {
        let index = if self.scales.len() == 1 { 0 } else { position / self.inner % self.scales.len() };
        (self.scales[index], self.zeros[index])
    }
}

fn inner(sizes: &[usize]) -> usize {
    sizes.iter().fold(1, |product, &size| product.saturating_mul(size))
}
