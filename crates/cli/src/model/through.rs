//! What operators other than transposed convolutions do to shapes.

use outstride::DType;
use outstride_io::model::{Attribute, Dim, Node, ValueType};

use super::Shapes;

/// Operators whose output is as their first input.
const SHAPE_KEEPERS: [&str; 33] = [
    "Abs",
    "BatchNormalization",
    "Celu",
    "Clip",
    "Dropout",
    "Elu",
    "Erf",
    "Exp",
    "Gelu",
    "GroupNormalization",
    "HardSigmoid",
    "HardSwish",
    "Identity",
    "InstanceNormalization",
    "LayerNormalization",
    "LeakyRelu",
    "Log",
    "LogSoftmax",
    "Mish",
    "Neg",
    "PRelu",
    "Reciprocal",
    "Relu",
    "Selu",
    "Sigmoid",
    "Sin",
    "Softmax",
    "Softplus",
    "Softsign",
    "Sqrt",
    "Swish",
    "Tanh",
    "ThresholdedRelu",
];

/// The type of a node's first output, where it follows from what is known of its inputs.
pub(super) fn output_type(node: &Node, shapes: &Shapes<'_>) -> Option<ValueType> {
    let input = |index: usize| node.input(index).and_then(|name| shapes.get(name));
    match node.op.as_str() {
        op if SHAPE_KEEPERS.contains(&op) => input(0),
        "Cast" => Some(ValueType { dtype: None, ..input(0)? }),
        "DequantizeLinear" => Some(ValueType { dtype: input(1).and_then(|scale| scale.dtype), ..input(0)? }),
        "QuantizeLinear" => {
            Some(ValueType { dtype: input(2).map_or(Some(DType::U8), |zero| zero.dtype), ..input(0)? })
        }
        "Add" | "Sub" | "Mul" | "Div" => broadcast(&input(0)?, &input(1)?),
        "Concat" => concat(node, shapes),
        "Conv" => conv(node, &input(0)?, &input(1)?),
        "Transpose" => transpose(node, input(0)?),
        "Reshape" => reshape(&shapes.integers(node.input(1)?)?, input(0)?),
        "Unsqueeze" => unsqueeze(&axes(node, shapes)?, input(0)?),
        "Squeeze" => squeeze(&axes(node, shapes)?, input(0)?),
        _ => None,
    }
}

/// The axes that a node names: in an attribute before opset 13, in an input since.
fn axes(node: &Node, shapes: &Shapes<'_>) -> Option<Vec<i64>> {
    match node.attributes.get("axes") {
        Some(Attribute::Ints(axes)) => Some(axes.clone()),
        _ => shapes.integers(node.input(1)?),
    }
}

/// An axis that may be counted from the end.
fn position(axis: i64, rank: usize) -> Option<usize> {
    let axis = if axis < 0 { axis.checked_add(i64::try_from(rank).ok()?)? } else { axis };
    usize::try_from(axis).ok().filter(|&axis| axis < rank)
}

fn transpose(node: &Node, input: ValueType) -> Option<ValueType> {
    let shape = input.shape?;
    let order: Vec<usize> = match node.attributes.get("perm") {
        Some(Attribute::Ints(order)) if order.len() == shape.len() => {
            order.iter().map(|&axis| position(axis, shape.len())).collect::<Option<_>>()?
        }
        None => (0..shape.len()).rev().collect(),
        _ => return None,
    };
    Some(ValueType {
        dtype: input.dtype,
        shape: Some(order.into_iter().map(|axis| shape[axis].clone()).collect()),
    })
}

/// 0 keeps a size, and one −1 is whatever is left.
fn reshape(sizes: &[i64], input: ValueType) -> Option<ValueType> {
    let old = input.shape.as_ref()?;
    let mut shape = Vec::with_capacity(sizes.len());
    for (axis, &size) in sizes.iter().enumerate() {
        shape.push(match size {
            0 => old.get(axis)?.clone(),
            -1 => Dim::Unknown,
            size => Dim::Known(usize::try_from(size).ok()?),
        });
    }
    let product = |dims: &[Dim]| {
        dims.iter().try_fold(1usize, |product, dim| match dim {
            Dim::Known(size) => product.checked_mul(*size),
            _ => None,
        })
    };
    if let Some(open) = shape.iter().position(|dim| *dim == Dim::Unknown)
        && let Some(all) = product(old)
    {
        shape[open] = Dim::Known(1);
        let others = product(&shape)?;
        shape[open] = Dim::Known(all.checked_div(others)?);
    }
    Some(ValueType { dtype: input.dtype, shape: Some(shape) })
}

fn unsqueeze(axes: &[i64], input: ValueType) -> Option<ValueType> {
    let old = input.shape?;
    let rank = old.len().checked_add(axes.len())?;
    let new: Vec<usize> = axes.iter().map(|&axis| position(axis, rank)).collect::<Option<_>>()?;
    let mut old = old.into_iter();
    let dim = |axis: usize| if new.contains(&axis) { Some(Dim::Known(1)) } else { old.next() };
    Some(ValueType { dtype: input.dtype, shape: Some((0..rank).map(dim).collect::<Option<_>>()?) })
}

fn squeeze(axes: &[i64], input: ValueType) -> Option<ValueType> {
    let old = input.shape?;
    let gone: Vec<usize> = axes.iter().map(|&axis| position(axis, old.len())).collect::<Option<_>>()?;
    let kept = old.into_iter().enumerate().filter(|(axis, _)| !gone.contains(axis)).map(|(_, dim)| dim);
    Some(ValueType { dtype: input.dtype, shape: Some(kept.collect()) })
}

fn concat(node: &Node, shapes: &Shapes<'_>) -> Option<ValueType> {
    let mut types = node.inputs.iter().map(|name| shapes.get(name));
    let mut result = types.next()??;
    let shape = result.shape.as_mut()?;
    let Some(Attribute::Int(axis)) = node.attributes.get("axis") else { return None };
    let axis = position(*axis, shape.len())?;
    for other in types {
        let other = other?.shape?;
        shape[axis] = match (&shape[axis], other.get(axis)?) {
            (Dim::Known(a), Dim::Known(b)) => Dim::Known(a.checked_add(*b)?),
            _ => Dim::Unknown,
        };
    }
    Some(result)
}

/// The type of an element-wise operator's result, by numpy's rule: sizes agree, or one of them is 1.
fn broadcast(a: &ValueType, b: &ValueType) -> Option<ValueType> {
    let (long, short) = match (a.shape.as_ref()?, b.shape.as_ref()?) {
        (a, b) if a.len() >= b.len() => (a, b),
        (a, b) => (b, a),
    };
    let mut shape = long.clone();
    let lead = long.len() - short.len();
    for (axis, dim) in short.iter().enumerate() {
        if shape[lead + axis] == Dim::Known(1) || (matches!(dim, Dim::Known(size) if *size != 1)) {
            shape[lead + axis] = dim.clone();
        }
    }
    Some(ValueType { dtype: a.dtype, shape: Some(shape) })
}

/// The type of a forward convolution's result, where its pads are written down.
fn conv(node: &Node, input: &ValueType, filter: &ValueType) -> Option<ValueType> {
    let (shape, filter) = (input.shape.as_ref()?, filter.sizes()?);
    let spatial = shape.len().checked_sub(2).filter(|&spatial| filter.len() == spatial + 2)?;
    if matches!(node.attributes.get("auto_pad"), Some(Attribute::Text(word)) if word != "NOTSET") {
        return None;
    }
    let list = |name: &str, length: usize, default: i64| match node.attributes.get(name) {
        Some(Attribute::Ints(list)) if list.len() == length => Some(list.clone()),
        None => Some(vec![default; length]),
        _ => None,
    };
    let (strides, dilations) = (list("strides", spatial, 1)?, list("dilations", spatial, 1)?);
    let pads = list("pads", 2 * spatial, 0)?;
    let mut dims = vec![shape[0].clone(), Dim::Known(filter[0])];
    for axis in 0..spatial {
        let Dim::Known(size) = shape[axis + 2] else {
            dims.push(Dim::Unknown);
            continue;
        };
        let wide = |value: i64| i128::from(value);
        let reach = (filter[axis + 2] as i128 - 1) * wide(dilations[axis]) + 1;
        let room = size as i128 + wide(pads[axis]) + wide(pads[axis + spatial]) - reach;
        if strides[axis] < 1 || room < 0 {
            return None;
        }
        dims.push(Dim::Known(usize::try_from(room / wide(strides[axis]) + 1).ok()?));
    }
    Some(ValueType { dtype: input.dtype, shape: Some(dims) })
}
