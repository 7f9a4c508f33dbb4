//! The files that a translation becomes.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use outstride_io::AnyTensor;
use outstride_io::model::NHWC_DOMAIN;
use outstride_io::onednn::{LayerGraph, layer_graph, problem_string};
use outstride_io::onnx::{LayerModel, layer_model};
use outstride_io::openvino::{LayerIr, layer_ir};

use super::translate::Translation;
use super::{Target, code};

/// A file, and what goes beside it.
pub(super) struct Artifact {
    pub(super) bytes: Vec<u8>,
    /// A file of the same name with this ending.
    pub(super) beside: Option<(&'static str, Vec<u8>)>,
    /// Tensors for an `.npz` file of the same name.
    pub(super) tensors: Vec<(&'static str, AnyTensor)>,
}

impl Artifact {
    fn of(bytes: Vec<u8>) -> Self {
        Artifact { bytes, beside: None, tensors: Vec::new() }
    }
}

/// The opset of models that are written.
const OPSET: i64 = 22;

pub(super) fn artifact(target: Target, layer: &Translation, output: Option<&Path>) -> Result<Artifact> {
    match (target, output) {
        (Target::Onnx | Target::OrtNhwc | Target::Openvino, None) => {
            bail!("this is no text for a terminal; say where to write it with --output")
        }
        (Target::Onnx, _) => Ok(Artifact::of(onnx(layer, "", OPSET))),
        (Target::OrtNhwc, _) => Ok(Artifact::of(onnx(layer, NHWC_DOMAIN, 11))),
        (Target::Openvino, Some(path)) => openvino(layer, path),
        (Target::OnednnGraph, _) => Ok(onednn_graph(layer)),
        (Target::OnednnProblem, _) => onednn_problem(layer),
        (Target::Torch | Target::Tensorflow | Target::Jax, _) => {
            let text = code::python(target, layer, output)?;
            Ok(Artifact { tensors: tensors(layer), ..Artifact::of(text.into_bytes()) })
        }
    }
}

fn tensors(layer: &Translation) -> Vec<(&'static str, AnyTensor)> {
    [("weight", Some(&layer.filter)), ("bias", layer.bias.as_ref())]
        .into_iter()
        .filter_map(|(name, tensor)| Some((name, tensor?.clone())))
        .collect()
}

fn onnx(layer: &Translation, domain: &str, version: i64) -> Vec<u8> {
    layer_model(&LayerModel {
        name: &layer.name,
        domain,
        version,
        attributes: &layer.request.attributes,
        dtype: layer.dtype,
        input: &layer.input,
        output: &layer.output,
        filter: &layer.filter,
        bias: layer.bias.as_ref(),
    })
}

fn openvino(layer: &Translation, path: &Path) -> Result<Artifact> {
    if path.extension().is_none_or(|ending| ending != "xml") {
        bail!(
            "an OpenVINO IR is an .xml file with its .bin beside it; {} is named otherwise",
            path.display()
        );
    }
    let grouped = layer.geometry.groups() > 1;
    let (xml, bin) = layer_ir(&LayerIr {
        name: &layer.name,
        op: if grouped { "GroupConvolutionBackpropData" } else { "ConvolutionBackpropData" },
        attributes: &layer.request.attributes,
        dtype: layer.dtype,
        input: &layer.input,
        output: &layer.output,
        filter: &layer.filter,
        output_shape: layer.request.output_shape.as_deref(),
        bias: layer.bias.as_ref(),
    });
    Ok(Artifact { beside: Some(("bin", bin)), ..Artifact::of(xml.into_bytes()) })
}

fn onednn_graph(layer: &Translation) -> Artifact {
    let graph = layer_graph(&LayerGraph {
        name: &layer.name,
        attributes: &layer.request.attributes,
        dtype: layer.dtype,
        input: &layer.input,
        filter: layer.filter.shape(),
        bias: layer.bias.as_ref().map(AnyTensor::shape),
        output: &layer.output,
    });
    Artifact { tensors: tensors(layer), ..Artifact::of(format!("{graph:#}\n").into_bytes()) }
}

fn onednn_problem(layer: &Translation) -> Result<Artifact> {
    let text = problem_string(&layer.geometry).context(
        "a problem string has one to three axes, d, h and w, and pads of at least 0; this layer has others",
    )?;
    Ok(Artifact::of(format!("{text}\n").into_bytes()))
}
