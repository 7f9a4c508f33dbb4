//! What is known of the shapes of a model's values: what the file says, carried through the operators that sit between
//! transposed convolutions.

use std::collections::BTreeMap;

use outstride::{DType, Policy};
use outstride_io::Model;
use outstride_io::model::{Attribute, Dim, ModelLayer, Node, ValueType};

use super::LayerShapes;

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

/// The types of a model's values, as far as they are known.
#[derive(Debug)]
pub(crate) struct Shapes<'a> {
    model: &'a Model,
    inferred: BTreeMap<String, ValueType>,
}

impl<'a> Shapes<'a> {
    /// Carries the shapes of the main graph's inputs through it.
    pub(crate) fn infer(model: &'a Model, policy: Policy) -> Self {
        let mut shapes = Shapes { model, inferred: BTreeMap::new() };
        let layers: BTreeMap<*const Node, ModelLayer<'_>> =
            model.layers().into_iter().map(|layer| (std::ptr::from_ref(layer.node), layer)).collect();
        for node in &model.graph.nodes {
            let Some(output) = node.outputs.first() else { continue };
            let inferred = match layers.get(&std::ptr::from_ref(node)) {
                Some(layer) => LayerShapes::of(layer, &shapes).output_type(policy),
                None => shapes.through(node),
            };
            if let Some(value_type) = inferred {
                shapes.inferred.insert(output.clone(), value_type);
            }
        }
        shapes
    }

    /// What is known of a value of the main graph.
    pub(crate) fn get(&self, name: &str) -> Option<ValueType> {
        let graph = &self.model.graph;
        let said = graph.types.get(name);
        let constant = graph.constants.get(name);
        let constant = || {
            let constant = constant?;
            let sizes = constant.shape().iter().map(|&size| Dim::Known(size)).collect();
            Some(ValueType { dtype: constant.dtype(), shape: Some(sizes) })
        };
        match (self.inferred.get(name), said) {
            // What the file says of a value is kept where it says more than can be found out.
            (Some(inferred), Some(said)) if open_dims(inferred) > open_dims(said) => Some(said.clone()),
            (Some(inferred), _) => Some(inferred.clone()),
            (None, Some(said)) => Some(said.clone()),
            (None, None) => constant(),
        }
    }

    fn through(&self, node: &Node) -> Option<ValueType> {
        let input = |index: usize| node.input(index).and_then(|name| self.get(name));
        match node.op.as_str() {
            op if SHAPE_KEEPERS.contains(&op) => input(0),
            "Cast" | "DequantizeLinear" | "QuantizeLinear" => {
                let dtype = match node.op.as_str() {
                    "Cast" => None,
                    "DequantizeLinear" => input(1).and_then(|scale| scale.dtype),
                    _ => input(2).map_or(Some(DType::U8), |zero| zero.dtype),
                };
                Some(ValueType { dtype, ..input(0)? })
            }
            "Add" | "Sub" | "Mul" | "Div" => broadcast(&input(0)?, &input(1)?),
            "Concat" => self.concat(node),
            "Conv" => conv(node, &input(0)?, &input(1)?),
            "Constant" => match node.attributes.get("value")? {
                Attribute::Tensor(tensor) => {
                    let sizes = tensor.shape().iter().map(|&size| Dim::Known(size)).collect();
                    Some(ValueType { dtype: tensor.dtype(), shape: Some(sizes) })
                }
                _ => None,
            },
            _ => None,
        }
    }

    fn concat(&self, node: &Node) -> Option<ValueType> {
        let mut types = node.inputs.iter().map(|name| self.get(name));
        let mut result = types.next()??;
        let shape = result.shape.as_mut()?;
        let axis = match node.attributes.get("axis")? {
            Attribute::Int(axis) if *axis < 0 => usize::try_from(shape.len() as i64 + axis).ok()?,
            Attribute::Int(axis) => usize::try_from(*axis).ok()?,
            _ => return None,
        };
        for other in types {
            let other = other?.shape?;
            let sum = match (shape.get(axis)?, other.get(axis)?) {
                (Dim::Known(a), Dim::Known(b)) => Dim::Known(a.checked_add(*b)?),
                _ => Dim::Unknown,
            };
            shape[axis] = sum;
        }
        Some(result)
    }
}

/// How many sizes are open; more than any where even their number is.
fn open_dims(value_type: &ValueType) -> usize {
    let open = |shape: &Vec<Dim>| shape.iter().filter(|dim| !matches!(dim, Dim::Known(_))).count();
    value_type.shape.as_ref().map_or(usize::MAX, open)
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
