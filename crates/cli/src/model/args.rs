//! The options that say which model, and what is known of it beyond the file.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Result, bail};
use clap::Args;
use outstride::{DType, Policy};
use outstride_io::Model;
use outstride_io::layers::Layer;
use outstride_io::model::{ModelLayer, ValueType};

use super::Shapes;
use crate::policy::PolicyArg;

/// Which model.
#[derive(Debug, Args)]
pub(crate) struct ModelArgs {
    /// An ONNX model, an OpenVINO IR (.xml with its .bin beside it), a oneDNN graph (.json), a layers file, or a text of
    /// problem strings or ONEDNN_VERBOSE lines
    #[arg(value_name = "MODEL", required_unless_present = "layers")]
    pub(crate) file: Option<PathBuf>,

    /// Instead of a model, a layer as oneDNN's benchmark writes it, such as mb1_ic16oc8_ih8oh16kh4sh2ph1; may be
    /// repeated
    #[arg(long = "layer", value_name = "STRING", conflicts_with = "file")]
    layers: Vec<Layer>,

    /// The element type of layers given by --layer
    #[arg(long, value_name = "TYPE", default_value = "f32")]
    dtype: DType,

    /// The shape of a value that the model leaves open, such as x=1,3,8,8; may be repeated
    #[arg(long = "shape", value_name = "NAME=SIZES")]
    shapes: Vec<ShapeArg>,

    /// Whose word counts where a dialect's text and its own runtime part ways
    #[arg(long, value_enum, default_value_t)]
    policy: PolicyArg,
}

/// `NAME=SIZES`
#[derive(Clone, Debug)]
pub(crate) struct ShapeArg {
    pub(crate) name: String,
    pub(crate) sizes: Vec<usize>,
}

impl FromStr for ShapeArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "write NAME=SIZES, such as x=1,3,8,8".to_owned();
        let (name, sizes) = text.rsplit_once('=').ok_or_else(wrong)?;
        let sizes = sizes.split(',').map(|size| size.trim().parse().map_err(|_| wrong()));
        Ok(ShapeArg { name: name.to_owned(), sizes: sizes.collect::<Result<_, _>>()? })
    }
}

impl ModelArgs {
    /// Opens the model and puts the shapes given into it.
    pub(crate) fn open(&self) -> Result<Model> {
        match &self.file {
            Some(file) => open(file, &self.shapes),
            None => with_shapes(Model::from_layers(self.layers.clone(), self.dtype), &self.shapes),
        }
    }

    pub(crate) fn policy(&self) -> Policy {
        self.policy.into()
    }

    /// The model's name for people.
    pub(crate) fn name(&self) -> String {
        match &self.file {
            Some(file) => file.display().to_string(),
            None => "--layer".to_owned(),
        }
    }

    /// What is known of every value's shape.
    pub(crate) fn shapes<'a>(&self, model: &'a Model) -> Shapes<'a> {
        Shapes::infer(model, self.policy())
    }
}

/// Opens a model and puts shapes into it.
pub(crate) fn open(file: &Path, shapes: &[ShapeArg]) -> Result<Model> {
    with_shapes(Model::open(file)?, shapes)
}

fn with_shapes(mut model: Model, shapes: &[ShapeArg]) -> Result<Model> {
    for ShapeArg { name, sizes } in shapes {
        if !is_value(&model, name) {
            bail!("--shape names `{name}`, which the model does not have; its inputs are {}", inputs(&model));
        }
        let dtype = model.graph.types.get(name).and_then(|known| known.dtype);
        let value_type = ValueType { dtype, ..ValueType::known(DType::F32, sizes) };
        model.graph.types.insert(name.clone(), value_type);
    }
    Ok(model)
}

fn is_value(model: &Model, name: &str) -> bool {
    let graph = &model.graph;
    let mut of_nodes = graph.nodes.iter().flat_map(|node| node.inputs.iter().chain(&node.outputs));
    graph.types.contains_key(name) || of_nodes.any(|value| value == name)
}

fn inputs(model: &Model) -> String {
    match model.graph.inputs.as_slice() {
        [] => "none".to_owned(),
        inputs => inputs.join(", "),
    }
}

/// The layers of these names; all where none is named.
pub(crate) fn select<'m>(layers: Vec<ModelLayer<'m>>, names: &[String]) -> Result<Vec<ModelLayer<'m>>> {
    if let Some(unknown) = names.iter().find(|&name| layers.iter().all(|layer| layer.name != *name)) {
        let known: Vec<&str> = layers.iter().map(|layer| layer.name.as_str()).take(20).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        bail!("there is no transposed convolution `{unknown}`; there are {known}");
    }
    let wanted = |layer: &ModelLayer<'_>| names.is_empty() || names.contains(&layer.name);
    Ok(layers.into_iter().filter(wanted).collect())
}
