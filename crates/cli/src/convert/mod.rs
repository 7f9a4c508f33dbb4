//! `outstride convert`: one layer in another dialect's words.

mod code;
mod target;
mod translate;

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::{Args, ValueEnum};
use indicatif::ProgressBar;
use outstride::DialectName;
use outstride_io::AnyTensor;
use outstride_io::model::ModelLayer;
use serde::Serialize;

use crate::Verdict;
use crate::graph::Evaluator;
use crate::model::{LayerShapes, ModelArgs, Shapes, select};
use crate::output::write_json;
use crate::run::Task;
use target::Artifact;
use translate::Translation;

/// Write one layer in another dialect
///
/// The layer's meaning is kept, not its words: pads that one dialect chooses itself are written out for another, filters
/// are put into the other's layout, and the result is resolved again to see that it comes to the same. What the other
/// dialect cannot say is refused with the attribute and the reason.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ConvertArgs {
    #[command(flatten)]
    model: ModelArgs,

    /// Which transposed convolution; may be left out where there is only one
    #[arg(long, value_name = "NAME")]
    node: Option<String>,

    /// What to write
    #[arg(long, value_enum)]
    to: Target,

    /// Where to write it: required for onnx, ort-nhwc and openvino; stdout by default for the others. Weights go beside
    /// it: inside the .onnx, in the .bin of an .xml, in an .npz for Python code and oneDNN
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// The seed of made-up weights, for layers without any
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    random: u64,

    /// Say what was written as one JSON document; without --output it holds the text itself
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  outstride convert model.onnx --node up1 --to openvino --output up1.xml
      An ONNX node as an OpenVINO IR, weights in up1.bin.
  outstride convert model.xml --node deconv --to torch
      The same in PyTorch's words, on stdout.
  outstride convert --layer mb1_ic16oc8_ih8kh4sh2ph1 --to onednn-graph
      A problem string as a graph that oneDNN's benchmark reads.

Exit status: 0 written; 1 the dialect cannot say it; 2 wrong usage or an unreadable file.";

/// What can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Target {
    /// A model of one ConvTranspose
    Onnx,
    /// A model of one com.ms.internal.nhwc ConvTranspose
    OrtNhwc,
    /// An IR of one ConvolutionBackpropData, or of one GroupConvolutionBackpropData where there are groups
    Openvino,
    /// A graph in JSON, as oneDNN's benchmark reads it
    OnednnGraph,
    /// A problem string of oneDNN's benchmark: shapes only
    OnednnProblem,
    /// Python code with a torch.nn.ConvTranspose
    Torch,
    /// Python code that calls tf.nn.conv_transpose
    Tensorflow,
    /// Python code that calls jax.lax.conv_transpose
    Jax,
}

impl Target {
    /// The dialect, where the target is one; groups decide between OpenVINO's two.
    fn dialect(self, groups: usize) -> Option<DialectName> {
        Some(match self {
            Target::Onnx => DialectName::Onnx,
            Target::OrtNhwc => DialectName::OrtNhwc,
            Target::Openvino if groups == 1 => DialectName::Openvino,
            Target::Openvino => DialectName::OpenvinoGroup,
            Target::OnednnGraph => DialectName::OnednnGraph,
            Target::Torch => DialectName::Torch,
            Target::Tensorflow => DialectName::Tensorflow,
            Target::Jax => DialectName::Jax,
            Target::OnednnProblem => return None,
        })
    }
}

#[derive(Serialize)]
struct Written {
    layer: String,
    to: String,
    files: Vec<PathBuf>,
    /// What would be in the file, where none was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    notes: Vec<String>,
}

pub(crate) fn run(args: &ConvertArgs, out: &mut dyn Write) -> Result<Verdict> {
    let model = args.model.open()?;
    let shapes = args.model.shapes(&model);
    let layer = choose(model.layers(), args.node.as_deref())?;
    let resolved = match LayerShapes::of(&layer, &shapes).resolve(args.model.policy()) {
        Ok(resolved) => resolved,
        Err(error) => {
            eprintln!("error: layer {}: {error}", layer.name);
            return Ok(Verdict::No);
        }
    };
    let weights = weights(args, &model, &shapes, &layer)?;
    let translated = Translation::new(&layer.name, &resolved, &weights.0, weights.1.as_ref(), args.to);
    let translation = match translated {
        Ok(translation) => translation,
        Err(error) => {
            eprintln!("error: layer {} cannot be written as {}: {error:#}", layer.name, name(args.to));
            return Ok(Verdict::No);
        }
    };
    let artifact = target::artifact(args.to, &translation, args.output.as_deref())?;
    let files = match &args.output {
        Some(path) => write(&artifact, path)?,
        None => Vec::new(),
    };
    if args.json {
        let text = args.output.is_none().then(|| String::from_utf8_lossy(&artifact.bytes).into_owned());
        let written = Written { layer: layer.name, to: name(args.to), files, text, notes: translation.notes };
        write_json(out, &written)?;
    } else {
        if args.output.is_none() {
            out.write_all(&artifact.bytes)?;
        }
        translation.notes.iter().for_each(|note| eprintln!("note: {note}"));
        if args.output.is_none() && !artifact.tensors.is_empty() {
            eprintln!("note: weights are written only beside a file; name it with --output");
        }
        files.iter().for_each(|file| eprintln!("wrote {}", file.display()));
    }
    Ok(Verdict::Yes)
}

fn name(target: Target) -> String {
    target.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

/// The layer of that name, or the only one.
fn choose<'m>(layers: Vec<ModelLayer<'m>>, name: Option<&str>) -> Result<ModelLayer<'m>> {
    let count = layers.len();
    if name.is_none() && count > 1 {
        let names: Vec<&str> = layers.iter().map(|layer| layer.name.as_str()).take(20).collect();
        bail!("there are {count} transposed convolutions; choose one with --node: {}", names.join(", "));
    }
    let names: Vec<String> = name.map(str::to_owned).into_iter().collect();
    select(layers, &names)?.into_iter().next().context("the model has no transposed convolution")
}

type Weights = (AnyTensor, Option<AnyTensor>);

/// Filter and bias: the model's, or made up.
fn weights(
    args: &ConvertArgs,
    model: &outstride_io::Model,
    shapes: &Shapes<'_>,
    layer: &ModelLayer<'_>,
) -> Result<Weights> {
    let task = Task::of_layer(layer.clone());
    let mut evaluator = Evaluator::new(model, task.scope.clone(), args.model.policy());
    task.make_up(&mut evaluator, shapes, args.random)?;
    let third = if crate::model::takes_sizes(layer.dialect) { None } else { layer.node.input(2) };
    let names: Vec<String> = layer.node.input(1).into_iter().chain(third).map(str::to_owned).collect();
    evaluator.evaluate(&names, &ProgressBar::hidden())?;
    let value = |name: &str| evaluator.get(name).cloned();
    let filter = layer.node.input(1).and_then(value).context("the layer has no filter")?;
    Ok((filter, third.and_then(value)))
}

/// Writes the file and those beside it.
fn write(artifact: &Artifact, path: &Path) -> Result<Vec<PathBuf>> {
    let save = |path: &Path, bytes: &[u8]| {
        std::fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
    };
    save(path, &artifact.bytes)?;
    let mut files = vec![path.to_owned()];
    if let Some((ending, bytes)) = &artifact.beside {
        let beside = path.with_extension(ending);
        save(&beside, bytes)?;
        files.push(beside);
    }
    if !artifact.tensors.is_empty() {
        let beside = path.with_extension("npz");
        let tensors: Vec<(&str, &AnyTensor)> =
            artifact.tensors.iter().map(|(name, tensor)| (*name, tensor)).collect();
        outstride_io::write_tensors(&beside, &tensors)?;
        files.push(beside);
    }
    Ok(files)
}
