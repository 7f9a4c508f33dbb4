//! What is to be computed: a whole model, or one layer of it.

use anyhow::{Context as _, Result, bail};
use outstride::DType;
use outstride_io::Model;
use outstride_io::model::{Dim, ModelLayer, Scope, ValueType};

use crate::graph::Evaluator;
use crate::model::{LayerShapes, Shapes, select};
use crate::random;

/// What is to be computed, and from what.
pub(crate) struct Task<'a> {
    pub(crate) scope: Scope<'a>,
    /// The layer, where only one is run.
    layer: Option<ModelLayer<'a>>,
    pub(crate) inputs: Vec<String>,
    pub(crate) outputs: Vec<String>,
}

impl<'a> Task<'a> {
    /// The whole model, or one layer.
    pub(crate) fn new(model: &'a Model, node: Option<&str>) -> Result<Self> {
        match node {
            Some(name) => {
                let layer = select(model.layers(), &[name.to_owned()])?.into_iter().next();
                Ok(Self::of_layer(layer.context("the layer has vanished")?))
            }
            None if model.graph.outputs.is_empty() => {
                bail!("the model has no outputs; name a layer with --node")
            }
            None => Ok(Task {
                scope: Scope::of(&model.graph),
                layer: None,
                inputs: model.graph.inputs.clone(),
                outputs: model.graph.outputs.clone(),
            }),
        }
    }

    /// One layer.
    pub(crate) fn of_layer(layer: ModelLayer<'a>) -> Self {
        let inputs = layer.node.inputs.iter().filter(|name| !name.is_empty()).cloned().collect();
        let outputs = layer.node.outputs.iter().take(1).cloned().collect();
        Task { scope: layer.scope.clone(), layer: Some(layer), inputs, outputs }
    }

    /// Gives made-up values to whatever is missing.
    pub(crate) fn make_up(
        &self,
        evaluator: &mut Evaluator<'_>,
        shapes: &Shapes<'_>,
        seed: u64,
    ) -> Result<()> {
        let Some(layer) = &self.layer else {
            for name in evaluator.missing(&self.outputs)?.0 {
                feed(evaluator, &name, shapes.get(&name).as_ref(), seed)?;
            }
            return Ok(());
        };
        let known = LayerShapes::of(layer, shapes);
        for (index, known) in [&known.input, &known.filter, &known.bias].into_iter().enumerate() {
            let Some(name) = layer.node.input(index) else { continue };
            // Data is made up even where the model could compute it; weights are the model's where it has them.
            if index > 0 && !evaluator.can_compute(name) || index == 0 && evaluator.get(name).is_none() {
                feed(evaluator, name, known.as_ref(), seed)?;
            }
        }
        Ok(())
    }
}

fn feed(evaluator: &mut Evaluator<'_>, name: &str, known: Option<&ValueType>, seed: u64) -> Result<()> {
    let shape = known.and_then(|known| with_batch_of_one(known.shape.as_deref()?));
    let Some(shape) = shape else {
        bail!("the shape of `{name}` is not in the model; give it with --shape {name}=SIZES");
    };
    let dtype = known.and_then(|known| known.dtype).unwrap_or(DType::F32);
    evaluator.feed(name, random::tensor(seed, name, dtype, &shape)?);
    Ok(())
}

/// The sizes, with 1 for an open batch; `None` where another size is open.
fn with_batch_of_one(shape: &[Dim]) -> Option<Vec<usize>> {
    let size = |(axis, dim): (usize, &Dim)| match dim {
        Dim::Known(size) => Some(*size),
        _ if axis == 0 => Some(1),
        _ => None,
    };
    shape.iter().enumerate().map(size).collect()
}
