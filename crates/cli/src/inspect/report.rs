//! What is found out about a model.

use std::collections::BTreeMap;

use outstride_io::Model;
use outstride_io::attributes;
use outstride_io::model::{ModelLayer, ValueType};
use serde::Serialize;

use super::remarks::remarks;
use crate::model::{LayerShapes, ModelArgs, Resolved, Shapes};
use crate::shape::AxisAnswer;

#[derive(Debug, Serialize)]
pub(super) struct Report {
    pub(super) model: String,
    pub(super) format: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) producer: Option<String>,
    /// The version of each operator set, by its domain.
    pub(super) opsets: BTreeMap<String, i64>,
    pub(super) nodes: usize,
    /// Of the layers whose shapes are known.
    pub(super) flops: f64,
    pub(super) weights: u64,
    pub(super) layers: Vec<LayerReport>,
}

#[derive(Debug, Serialize)]
pub(super) struct LayerReport {
    pub(super) name: String,
    pub(super) dialect: &'static str,
    pub(super) op: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) version: Option<i64>,
    pub(super) input: Option<TensorReport>,
    pub(super) filter: Option<TensorReport>,
    pub(super) bias: Option<TensorReport>,
    pub(super) attributes: BTreeMap<String, serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) meaning: Option<Meaning>,
    /// Why there is no meaning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    pub(super) weights: Option<u64>,
    pub(super) remarks: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct TensorReport {
    pub(super) name: String,
    /// Sizes are numbers; what is open is text.
    pub(super) shape: Option<Vec<serde_json::Value>>,
    pub(super) dtype: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) layout: Option<String>,
    /// Where the values are: `model`, or the name of another file; absent where they are computed or given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) stored: Option<String>,
}

/// What a call comes to.
#[derive(Debug, Serialize)]
pub(super) struct Meaning {
    pub(super) output: Vec<usize>,
    pub(super) layout: String,
    pub(super) groups: usize,
    pub(super) axes: Vec<AxisAnswer>,
    pub(super) pads: String,
    pub(super) activation: &'static str,
    pub(super) flops: f64,
    /// The open size that was taken for a batch of 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) assumed_batch: Option<String>,
}

impl Report {
    pub(super) fn new(args: &ModelArgs, model: &Model, layers: &[ModelLayer<'_>]) -> Self {
        let shapes = args.shapes(model);
        let layers: Vec<LayerReport> =
            layers.iter().map(|layer| LayerReport::new(layer, &shapes, args.policy())).collect();
        Report {
            model: args.name(),
            format: model.format.name(),
            producer: model.producer.clone(),
            opsets: model.opsets.clone(),
            nodes: model.graph.nodes.len(),
            flops: layers
                .iter()
                .filter_map(|layer| layer.meaning.as_ref())
                .map(|meaning| meaning.flops)
                .fold(0.0, |sum, flops| sum + flops),
            weights: layers.iter().filter_map(|layer| layer.weights).fold(0, u64::saturating_add),
            layers,
        }
    }
}

impl LayerReport {
    fn new(layer: &ModelLayer<'_>, shapes: &Shapes<'_>, policy: outstride::Policy) -> Self {
        let known = LayerShapes::of(layer, shapes);
        let resolved = known.resolve(policy);
        let layouts = resolved.as_ref().ok().map(|resolved| &resolved.call);
        let tensor = |index: usize, value_type: &Option<ValueType>, layout: Option<String>| {
            TensorReport::new(layer, index, value_type.as_ref(), layout)
        };
        let mut request = layer.request();
        request.output_shape = known.output_shape().map(<[i64]>::to_vec);
        let weights = known.filter.as_ref().and_then(ValueType::sizes);
        let product =
            |sizes: Vec<usize>| sizes.iter().fold(1u64, |product, &size| product.saturating_mul(size as u64));
        LayerReport {
            name: layer.name.clone(),
            dialect: layer.dialect.as_str(),
            op: layer.node.op.clone(),
            version: layer.version,
            input: tensor(0, &known.input, layouts.map(|call| call.input.to_string())),
            filter: tensor(1, &known.filter, layouts.map(|call| call.filter.to_string())),
            bias: known.bias.is_some().then(|| tensor(2, &known.bias, None)).flatten(),
            attributes: request
                .attributes
                .iter()
                .map(|(name, value)| (name.clone(), attributes::to_json(value)))
                .collect(),
            weights: weights.map(product),
            remarks: match &resolved {
                Ok(resolved) => remarks(layer.dialect, &request, &resolved.call, policy),
                Err(_) => Vec::new(),
            },
            error: resolved.as_ref().err().map(ToString::to_string),
            meaning: resolved.ok().map(Meaning::new),
        }
    }
}

impl TensorReport {
    fn new(
        layer: &ModelLayer<'_>,
        index: usize,
        value_type: Option<&ValueType>,
        layout: Option<String>,
    ) -> Option<Self> {
        use outstride_io::model::Dim;
        let name = layer.node.input(index)?;
        let dim = |dim: &Dim| match dim {
            Dim::Known(size) => (*size).into(),
            open => open.to_string().into(),
        };
        let stored = layer.scope.constant(name);
        Some(TensorReport {
            name: name.to_owned(),
            shape: value_type.and_then(|known| Some(known.shape.as_ref()?.iter().map(dim).collect())),
            dtype: value_type.and_then(|known| known.dtype).map(|dtype| dtype.to_string()),
            layout,
            stored: stored.map(|stored| stored.external_file().unwrap_or("model").to_owned()),
        })
    }
}

impl Meaning {
    fn new(resolved: Resolved) -> Self {
        let Resolved { call, assumed_batch, .. } = resolved;
        Meaning {
            output: call.output_shape(),
            layout: call.output.to_string(),
            groups: call.geometry.groups(),
            axes: call.geometry.axes().iter().map(AxisAnswer::from).collect(),
            pads: call.pad_rule.to_string(),
            activation: call.activation.name(),
            flops: 2.0 * call.geometry.multiply_adds() as f64,
            assumed_batch,
        }
    }
}
