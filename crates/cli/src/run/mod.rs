//! `outstride run`: computes a model made of transposed convolutions, or one layer of any model.

mod files;
mod task;

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Args;
use outstride_io::{AnyTensor, FileError};
use serde::Serialize;

use crate::Verdict;
use crate::graph::Evaluator;
use crate::model::ModelArgs;
use crate::output::{sizes, write_columns, write_json};
use crate::progress;
use files::OutputArg;
pub(crate) use files::{InputArg, read as read_inputs};
pub(crate) use task::Task;

/// Run a model of transposed convolutions, or one layer of any model
///
/// The model may be any graph of transposed convolutions with the activations, Add, Sub, Mul, Div, Concat, Identity,
/// Cast, Constant, QuantizeLinear and DequantizeLinear that sit between them. With --node, one transposed convolution of
/// any model is run: its filter and bias are the model's, its input is what --input or --random gives.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    model: ModelArgs,

    /// Run this transposed convolution only
    #[arg(long, value_name = "NAME")]
    node: Option<String>,

    /// The values of an input: NAME=FILE, or FILE for the inputs in their order. Files are .npy, .npz, .safetensors or a .pb of
    /// one TensorProto; may be repeated
    #[arg(long = "input", value_name = "[NAME=]FILE")]
    inputs: Vec<InputArg>,

    /// Make up the inputs that are not given; the same seed makes the same values everywhere
    #[arg(long, value_name = "SEED")]
    random: Option<u64>,

    /// Where an output goes: NAME=FILE, or FILE for the one output, or an .npz or .safetensors file for all; may be
    /// repeated
    #[arg(long = "output", value_name = "[NAME=]FILE")]
    outputs: Vec<OutputArg>,

    /// Print one JSON document instead of lines
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  outstride run generator.onnx --input z=z.npy --output image.npy
      The whole model.
  outstride run unet.onnx --node /up1/ConvTranspose --random 1 --output y.npz
      One layer of a model with other operators, on made-up data.
  outstride run --layer mb1_ic16oc8_ih8kh4sh2ph1 --random 7
      A layer without a model: weights are made up as well.

Each output is described by its shape, type, smallest and largest value and mean.
Exit status: 0 computed; 1 refused; 2 wrong usage or an unreadable file.";

/// What came out.
#[derive(Serialize)]
struct Ran {
    model: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    outputs: Vec<OutputReport>,
}

#[derive(Serialize)]
struct OutputReport {
    name: String,
    shape: Vec<usize>,
    dtype: String,
    min: Option<f64>,
    max: Option<f64>,
    mean: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<PathBuf>,
}

pub(crate) fn run(args: &RunArgs, out: &mut dyn Write) -> Result<Verdict> {
    let model = args.model.open()?;
    let task = Task::new(&model, args.node.as_deref())?;
    let mut evaluator = Evaluator::new(&model, task.scope.clone(), args.model.policy());
    for (name, tensor) in files::read(&args.inputs, &task.inputs)? {
        evaluator.feed(&name, tensor);
    }
    if let Some(seed) = args.random {
        task.make_up(&mut evaluator, &args.model.shapes(&model), seed)?;
    }
    let progress = progress::bar(0);
    let evaluated = evaluator.evaluate(&task.outputs, &progress);
    progress.finish_and_clear();
    if let Err(error) = evaluated {
        // A file that cannot be read is another matter than a call that is refused.
        if error.chain().any(|cause| cause.is::<FileError>()) {
            return Err(error);
        }
        eprintln!("error: {error:#}");
        return Ok(Verdict::No);
    }
    let mut outputs: Vec<(&str, &AnyTensor)> = Vec::new();
    for name in &task.outputs {
        outputs.push((name, evaluator.get(name).with_context(|| format!("`{name}` was not computed"))?));
    }
    let written = files::write(&args.outputs, &outputs)?;
    let report = |((name, tensor), file): (&(&str, &AnyTensor), Option<PathBuf>)| {
        OutputReport::new(name, tensor, file)
    };
    let ran = Ran {
        model: args.model.name(),
        node: args.node.clone(),
        outputs: outputs.iter().zip(written).map(report).collect(),
    };
    if args.json {
        write_json(out, &ran)?;
    } else {
        ran.write(out)?;
    }
    Ok(Verdict::Yes)
}

impl OutputReport {
    fn new(name: &str, tensor: &AnyTensor, file: Option<PathBuf>) -> Self {
        let values: Vec<f64> = (0..tensor.values().len())
            .filter_map(|index| tensor.values().get(index))
            .map(f64::from)
            .collect();
        let finite = |value: f64| value.is_finite().then_some(value);
        // A NaN anywhere shows in all three.
        let fold = |pick: fn(f64, f64) -> f64| {
            values.iter().copied().reduce(|a, b| if a.is_nan() || b.is_nan() { f64::NAN } else { pick(a, b) })
        };
        OutputReport {
            name: name.to_owned(),
            shape: tensor.shape().to_vec(),
            dtype: tensor.values().dtype().to_string(),
            min: fold(f64::min).and_then(finite),
            max: fold(f64::max).and_then(finite),
            mean: finite(values.iter().sum::<f64>() / values.len() as f64),
            file,
        }
    }
}

impl Ran {
    fn write(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let header = ["output", "shape", "type", "min", "max", "mean", "file"].map(str::to_owned);
        let number = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.6}"));
        let rows = self.outputs.iter().map(|output| {
            vec![
                output.name.clone(),
                sizes(&output.shape),
                output.dtype.clone(),
                number(output.min),
                number(output.max),
                number(output.mean),
                output.file.as_ref().map_or("not written".to_owned(), |file| file.display().to_string()),
            ]
        });
        write_columns(out, &header, rows)
    }
}
