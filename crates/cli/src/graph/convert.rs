//! Casts.

use anyhow::{Result, bail};
use outstride::DType;
use outstride_io::model::{Attribute, Node};
use outstride_io::{AnyTensor, Number};

use super::numbers::{from_f64, to_f64};

/// The tensor in the type that the node names. Integers are cast to integers exactly: those that the type cannot hold
/// keep their low bits, as ONNX's runtimes do.
pub(super) fn cast(node: &Node, tensor: &AnyTensor) -> Result<AnyTensor> {
    let to = match (node.attributes.get("to"), node.attributes.get("destination_type")) {
        (Some(Attribute::Int(number)), _) => onnx_type(*number),
        (_, Some(Attribute::Text(name))) => name.parse().ok(),
        _ => None,
    };
    let Some(to) = to else { bail!("the cast names no element type that is known here") };
    let from = tensor.values().dtype();
    if to == from {
        return Ok(tensor.clone());
    }
    if to.is_integer() && !from.is_float() {
        let low_bytes = (0..tensor.values().len()).filter_map(|index| match tensor.values().get(index)? {
            Number::Integer(value) => Some(value.to_le_bytes().into_iter().take(to.size())),
            Number::Float(_) => None,
        });
        let bytes: Vec<u8> = low_bytes.flatten().collect();
        if let Some(cast) = AnyTensor::from_le_bytes(to, tensor.shape().to_vec(), &bytes) {
            return Ok(cast);
        }
    }
    from_f64(to, tensor.shape(), to_f64(tensor))
}

/// The element type that a number of ONNX stands for.
fn onnx_type(number: i64) -> Option<DType> {
    outstride_io::onnx::element_type(number)
}
