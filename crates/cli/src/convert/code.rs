//! Python that does what the layer does.

use std::path::Path;

use anyhow::{Result, bail};
use outstride::AttributeValue;

use super::Target;
use super::translate::Translation;
use crate::output::sizes;

/// A program that loads the weights beside it and defines `layer(x)`.
pub(super) fn python(target: Target, layer: &Translation, output: Option<&Path>) -> Result<String> {
    let weights = match output {
        Some(path) => path.with_extension("npz").display().to_string(),
        None => "weights.npz".to_owned(),
    };
    let mut text = format!(
        "# {}: {} -> {}, weight {}\nimport numpy as np\n",
        layer.name.replace('\n', " "),
        sizes(&layer.input),
        sizes(&layer.output),
        sizes(layer.filter.shape()),
    );
    let spatial = layer.geometry.axes().len();
    if spatial > 3 {
        bail!("Python's frameworks have no name for {spatial} spatial axes; they stop at 3");
    }
    let weights = format!("weights = np.load({weights:?})\n");
    match target {
        Target::Torch => torch(&mut text, layer, &weights, spatial),
        Target::Tensorflow => tensorflow(&mut text, layer, &weights, spatial),
        _ => jax(&mut text, layer, &weights),
    }
    Ok(text)
}

fn torch(text: &mut String, layer: &Translation, weights: &str, spatial: usize) {
    let geometry = &layer.geometry;
    let kernel = geometry.axes().iter().map(|axis| AttributeValue::Int(axis.kernel as i64)).collect();
    let kernel = literal(&AttributeValue::List(kernel));
    let arguments = arguments(layer);
    *text += &format!(
        "import torch\n\n{weights}layer = torch.nn.ConvTranspose{spatial}d({}, {}, {kernel}{arguments}, bias={})\n\
         layer.weight.data = torch.from_numpy(weights[\"weight\"])\n",
        geometry.in_channels(),
        geometry.out_channels(),
        if layer.bias.is_some() { "True" } else { "False" },
    );
    if layer.bias.is_some() {
        *text += "layer.bias.data = torch.from_numpy(weights[\"bias\"])\n";
    }
}

fn tensorflow(text: &mut String, layer: &Translation, weights: &str, spatial: usize) {
    let arguments = arguments(layer);
    *text += &format!(
        "import tensorflow as tf\n\n{weights}\n\ndef layer(x):\n    y = tf.nn.conv{spatial}d_transpose(x, \
         weights[\"weight\"]{arguments})\n    return {}\n",
        if layer.bias.is_some() { "tf.nn.bias_add(y, weights[\"bias\"])" } else { "y" },
    );
}

fn jax(text: &mut String, layer: &Translation, weights: &str) {
    let arguments = arguments(layer);
    *text += &format!(
        "import jax\n\n{weights}\n\ndef layer(x):\n    y = jax.lax.conv_transpose(x, weights[\"weight\"]{arguments})\n    \
         return y{}\n",
        if layer.bias.is_some() { " + weights[\"bias\"]" } else { "" },
    );
}

/// The attributes as Python writes them, each after a comma.
fn arguments(layer: &Translation) -> String {
    layer.request.attributes.iter().map(|(name, value)| format!(", {name}={}", literal(value))).collect()
}

fn literal(value: &AttributeValue) -> String {
    match value {
        AttributeValue::Bool(true) => "True".into(),
        AttributeValue::Bool(false) => "False".into(),
        AttributeValue::Text(text) => format!("{text:?}"),
        AttributeValue::List(items) => match items.as_slice() {
            [one] => format!("({},)", literal(one)),
            items => format!("({})", items.iter().map(literal).collect::<Vec<_>>().join(", ")),
        },
        other => other.to_string(),
    }
}
