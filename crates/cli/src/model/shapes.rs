//! What is known of the shapes of a model's values: what the file says, carried through the operators that sit between
//! transposed convolutions.

use std::collections::BTreeMap;

use outstride::Policy;
use outstride_io::model::{Attribute, Dim, ModelLayer, Node, ValueType};
use outstride_io::{Model, Number, TensorSource};

use super::{LayerShapes, through};

/// The types of a model's values, as far as they are known.
#[derive(Debug)]
pub(crate) struct Shapes<'a> {
    model: &'a Model,
    /// The tensors of `Constant` nodes, which some exporters write instead of initializers.
    constant_nodes: BTreeMap<&'a str, &'a TensorSource>,
    inferred: BTreeMap<String, ValueType>,
}

impl<'a> Shapes<'a> {
    /// Carries the shapes of the main graph's inputs through it.
    pub(crate) fn infer(model: &'a Model, policy: Policy) -> Self {
        let constants = model.graph.nodes.iter().filter_map(|node| match node.attributes.get("value")? {
            Attribute::Tensor(tensor) if node.op == "Constant" => {
                Some((node.outputs.first()?.as_str(), tensor))
            }
            _ => None,
        });
        let mut shapes = Shapes { model, constant_nodes: constants.collect(), inferred: BTreeMap::new() };
        let layers: BTreeMap<*const Node, ModelLayer<'_>> =
            model.layers().into_iter().map(|layer| (std::ptr::from_ref(layer.node), layer)).collect();
        for node in &model.graph.nodes {
            let Some(output) = node.outputs.first() else { continue };
            let inferred = match layers.get(&std::ptr::from_ref(node)) {
                Some(layer) => LayerShapes::of(layer, &shapes).output_type(policy),
                None => through::output_type(node, &shapes),
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
        let constant = graph.constants.get(name).or_else(|| self.constant_nodes.get(name).copied());
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

    /// The integers of a value that is in the model and small, such as the axes of an operator.
    pub(super) fn integers(&self, name: &str) -> Option<Vec<i64>> {
        const MOST: usize = 16;
        let constant =
            self.model.graph.constants.get(name).or_else(|| self.constant_nodes.get(name).copied())?;
        let small = constant.shape().iter().try_fold(1usize, |count, &size| count.checked_mul(size))? <= MOST;
        let values = if small { constant.load().ok()? } else { return None };
        let integer = |index| match values.values().get(index)? {
            Number::Integer(value) => i64::try_from(value).ok(),
            Number::Float(_) => None,
        };
        (0..values.values().len()).map(integer).collect()
    }
}

/// How many sizes are open; more than any where even their number is.
fn open_dims(value_type: &ValueType) -> usize {
    let open = |shape: &Vec<Dim>| shape.iter().filter(|dim| !matches!(dim, Dim::Known(_))).count();
    value_type.shape.as_ref().map_or(usize::MAX, open)
}
