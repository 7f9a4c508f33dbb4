//! The layers of a model, as shapes to measure.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use outstride::{Axis, Policy};
use outstride_io::layers::Layer;

use crate::model::{LayerShapes, Resolved, ShapeArg, Shapes, open};

/// Every transposed convolution of the model.
pub(super) fn layers(file: &Path, shapes: &[ShapeArg]) -> Result<Vec<Layer>> {
    let model = open(file, shapes)?;
    let found = model.layers();
    if found.is_empty() {
        bail!("{} has no transposed convolutions", file.display());
    }
    let shapes = Shapes::infer(&model, Policy::Spec);
    let layer = |layer: &outstride_io::model::ModelLayer<'_>| {
        let resolved = LayerShapes::of(layer, &shapes).resolve(Policy::Spec);
        let resolved = resolved.with_context(|| format!("layer {}", layer.name))?;
        as_layer(&layer.name, &resolved)
    };
    found.iter().map(layer).collect()
}

fn as_layer(name: &str, resolved: &Resolved) -> Result<Layer> {
    let geometry = &resolved.call.geometry;
    let axes = geometry.axes();
    if let Some(index) = axes.iter().position(|axis| axis.pad_begin < 0) {
        bail!("layer {name}: axis {index} begins before its first tap, which cannot be measured as a layer");
    }
    let each = |value: fn(&Axis) -> i64| axes.iter().map(value).collect::<Vec<i64>>();
    Ok(Layer {
        id: name.to_owned(),
        batch: geometry.batch(),
        in_channels: geometry.in_channels(),
        out_channels: geometry.out_channels(),
        groups: geometry.groups(),
        input: axes.iter().map(|axis| axis.input).collect(),
        kernel: axes.iter().map(|axis| axis.kernel).collect(),
        strides: each(|axis| axis.stride as i64),
        dilations: each(|axis| axis.dilation as i64),
        pads_begin: each(|axis| axis.pad_begin),
        pads_end: each(|axis| axis.pad_end().max(0)),
        output_padding: each(|axis| (-axis.pad_end()).max(0)),
        skip: Vec::new(),
    })
}
