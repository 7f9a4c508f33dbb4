//! One node: which function its operator is.

use anyhow::{Context as _, Result, bail};
use outstride::Policy;
use outstride_io::AnyTensor;
use outstride_io::model::{Attribute, ModelLayer, NHWC_DOMAIN, Node};

use super::activation::Unary;
use super::arithmetic::{self, Binary};
use super::{convert, quantize};
use crate::convolve::{Tensors, convolve, output_shape_values};
use crate::model::takes_sizes;

/// Operators beside the activations and the arithmetic. OpenVINO calls casts `Convert`.
const OTHERS: [&str; 7] =
    ["Identity", "Cast", "Convert", "Concat", "Constant", "QuantizeLinear", "DequantizeLinear"];

/// Whether [`element_wise`] knows the operator.
pub(super) fn is_supported(node: &Node) -> bool {
    let op = node.op.as_str();
    let domain = !matches!(node.domain.as_str(), "com.microsoft" | NHWC_DOMAIN | "ai.onnx.ml");
    domain && (OTHERS.contains(&op) || Unary::is_known(op) || Binary::from_op(op).is_some())
}

/// A transposed convolution.
pub(super) fn convolution(
    layer: &ModelLayer<'_>,
    inputs: &[Option<&AnyTensor>],
    policy: Policy,
) -> Result<AnyTensor> {
    let third = inputs.get(2).copied().flatten();
    let mut request = layer.request();
    let bias = match third {
        Some(sizes) if takes_sizes(layer.dialect) => {
            request.output_shape = Some(output_shape_values(sizes)?);
            None
        }
        bias => bias,
    };
    let tensors = Tensors { input: required(inputs, 0)?, filter: required(inputs, 1)?, bias };
    convolve(request.read(layer.dialect)?.into(), &tensors, policy)
}

/// Anything else.
pub(super) fn element_wise(node: &Node, inputs: &[Option<&AnyTensor>], opset: i64) -> Result<AnyTensor> {
    let first = || required(inputs, 0);
    match node.op.as_str() {
        "Constant" => constant(node),
        "Identity" => Ok(first()?.clone()),
        "Cast" | "Convert" => convert::cast(node, first()?),
        "Concat" => arithmetic::concat(node, inputs),
        "QuantizeLinear" => quantize::quantize(node, inputs),
        "DequantizeLinear" => quantize::dequantize(node, inputs),
        op => match Binary::from_op(op) {
            Some(binary) => arithmetic::binary(binary, first()?, required(inputs, 1)?),
            None => match Unary::read(node, inputs, opset)? {
                Some(unary) => unary.apply(first()?),
                None => bail!("the operator is not run here"),
            },
        },
    }
}

pub(super) fn required<'a>(inputs: &[Option<&'a AnyTensor>], index: usize) -> Result<&'a AnyTensor> {
    inputs.get(index).copied().flatten().with_context(|| format!("input {index} is missing"))
}

fn constant(node: &Node) -> Result<AnyTensor> {
    let [(name, value)] = node.attributes.iter().collect::<Vec<_>>()[..] else {
        bail!("a constant has one attribute, its value; this one has {}", node.attributes.len());
    };
    let tensor = match value {
        Attribute::Tensor(tensor) => return Ok(tensor.load()?),
        Attribute::Int(value) => AnyTensor::new(vec![], vec![*value]),
        Attribute::Float(value) => AnyTensor::new(vec![], vec![*value]),
        Attribute::Ints(values) => AnyTensor::new(vec![values.len()], values.clone()),
        Attribute::Floats(values) => AnyTensor::new(vec![values.len()], values.clone()),
        _ => bail!("a constant of kind `{name}` is not supported; write it as a tensor"),
    };
    tensor.context("a constant's shape and values do not agree")
}
