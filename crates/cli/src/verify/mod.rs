//! `outstride verify`: are a model's transposed convolutions right?

mod canonical;
mod deviations;
mod expect;
mod ulps;

#[cfg(test)]
mod tests;

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use indicatif::ProgressBar;
use outstride::{DType, Request};
use outstride_io::model::ModelLayer;
use outstride_io::{AnyTensor, FileError, Model, TensorFile};
use serde::Serialize;

use crate::Verdict;
use crate::convolve::{Tensors, output_shape_values};
use crate::graph::Evaluator;
use crate::model::{ModelArgs, Shapes, select, takes_sizes};
use crate::output::{sizes, write_columns, write_json};
use crate::progress;
use crate::run::{InputArg, Task, read_inputs};
use canonical::Canonical;
use ulps::Errors;

/// Check the transposed convolutions of a model against the reference, or against someone else's output
///
/// Each layer is run twice on the same data, by the engine and by the reference, in the model's own element types: with
/// the model's weights, and made-up values for whatever it does not hold. The largest error is shown in units in the last
/// place of the result, and of the sum of the products' magnitudes, which is what rounding errors grow with.
///
/// With --expect, the output of one layer is compared with a file. Where they differ, known ways of getting the operator
/// wrong are tried: a flipped kernel, pads on the other side, interleaved groups, a misread layout, another dialect's
/// rules. Those that give the file's values are named. Where none does, shifts of the output are tried, then two
/// mistakes at once.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    model: ModelArgs,

    /// Only these transposed convolutions; may be repeated
    #[arg(long = "node", value_name = "NAME")]
    nodes: Vec<String>,

    /// The values of an input of the layer: NAME=FILE, or FILE for its inputs in their order; may be repeated
    #[arg(long = "input", value_name = "[NAME=]FILE")]
    inputs: Vec<InputArg>,

    /// The seed of made-up values
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    random: u64,

    /// Compare the layer's output with this file
    #[arg(long, value_name = "FILE")]
    expect: Option<PathBuf>,

    /// How far an element may be off, in units in the last place of the sum of the products' magnitudes; by default as
    /// many as there are products, and none for integers
    #[arg(long, value_name = "ULPS")]
    tolerance: Option<f64>,

    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  outstride verify generator.onnx
      Every layer, engine against reference.
  outstride verify unet.onnx --node up1 --input x.npy --expect y.npy
      One layer against the output of a framework, with a diagnosis where they differ.

Exit status: 0 all is well; 1 a layer differs or is refused; 2 wrong usage or an unreadable file.";

#[derive(Serialize)]
struct LayerVerdict {
    name: String,
    dtype: Option<String>,
    output: Option<Vec<usize>>,
    #[serde(flatten)]
    errors: Option<Errors>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<expect::Comparison>,
    passed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

pub(crate) fn run(args: &VerifyArgs, out: &mut dyn Write) -> Result<Verdict> {
    let model = args.model.open()?;
    let layers = select(model.layers(), &args.nodes)?;
    if layers.is_empty() {
        bail!("the model has no transposed convolutions");
    }
    if (args.expect.is_some() || !args.inputs.is_empty()) && layers.len() > 1 {
        let names: Vec<&str> = layers.iter().map(|layer| layer.name.as_str()).collect();
        bail!("--input and --expect are about one layer; choose it with --node: {}", names.join(", "));
    }
    let shapes = args.model.shapes(&model);
    let progress = progress::bar(layers.len());
    let mut verdicts = Vec::new();
    for layer in layers {
        progress.set_message(layer.name.clone());
        let name = layer.name.clone();
        let verdict = match verify(args, &model, &shapes, layer) {
            Ok(verdict) => verdict,
            Err(error) if error.chain().any(|cause| cause.is::<FileError>()) => return Err(error),
            Err(error) => LayerVerdict::refused(name, &error),
        };
        verdicts.push(verdict);
        progress.inc(1);
    }
    progress.finish_and_clear();
    if args.json {
        write_json(out, &verdicts)?;
    } else {
        write_text(out, &verdicts)?;
    }
    Ok(if verdicts.iter().all(|verdict| verdict.passed) { Verdict::Yes } else { Verdict::No })
}

fn verify(
    args: &VerifyArgs,
    model: &Model,
    shapes: &Shapes<'_>,
    layer: ModelLayer<'_>,
) -> Result<LayerVerdict> {
    let policy = args.model.policy();
    let task = Task::of_layer(layer.clone());
    let mut evaluator = Evaluator::new(model, task.scope.clone(), policy);
    for (name, tensor) in read_inputs(&args.inputs, &task.inputs)? {
        evaluator.feed(&name, tensor);
    }
    task.make_up(&mut evaluator, shapes, args.random)?;
    evaluator.evaluate(&task.inputs, &ProgressBar::hidden())?;
    evaluator.evaluate(&task.outputs, &ProgressBar::hidden())?;
    let value = |index: usize| layer.node.input(index).and_then(|name| evaluator.get(name));
    let mut request = layer.request();
    let mut bias = value(2);
    if takes_sizes(layer.dialect) {
        request.output_shape = bias.map(output_shape_values).transpose()?;
        bias = None;
    }
    let tensors = Tensors {
        input: value(0).context("the layer has no data")?,
        filter: value(1).context("the layer has no filter")?,
        bias,
    };
    let computed =
        task.outputs.first().and_then(|name| evaluator.get(name)).context("nothing was computed")?;
    let call = request.read(layer.dialect)?.resolve(&tensors.operands(), policy)?;
    let canonical = Canonical::new(&call, &tensors);
    let errors = ulps::errors(&canonical, &tensors, &call, computed, args.tolerance)?;
    let expected = match &args.expect {
        Some(file) => {
            let file = TensorFile::open(file)?;
            let name = task.outputs.first().map_or("", String::as_str);
            let expected = file.tensor(name)?.load()?;
            Some(compare(args, &layer, &request, &canonical, computed, &expected)?)
        }
        None => None,
    };
    Ok(LayerVerdict {
        name: layer.name.clone(),
        dtype: Some(computed.values().dtype().to_string()),
        output: Some(computed.shape().to_vec()),
        passed: errors.within && expected.as_ref().is_none_or(expect::Comparison::agrees),
        errors: Some(errors),
        expected,
        error: None,
    })
}

fn compare(
    args: &VerifyArgs,
    layer: &ModelLayer<'_>,
    request: &Request,
    canonical: &Canonical,
    computed: &AnyTensor,
    expected: &AnyTensor,
) -> Result<expect::Comparison> {
    let dtype = match expected.values().dtype() {
        dtype if dtype.is_float() => less_precise(computed.values().dtype(), dtype),
        dtype => dtype,
    };
    let question = expect::Question { layer, request, canonical, dtype, tolerance: args.tolerance };
    question.compare(computed, expected)
}

/// The one of two types that holds fewer digits.
fn less_precise(a: DType, b: DType) -> DType {
    if ulps::epsilon(a) >= ulps::epsilon(b) { a } else { b }
}

impl LayerVerdict {
    fn refused(name: String, error: &anyhow::Error) -> Self {
        LayerVerdict {
            name,
            dtype: None,
            output: None,
            errors: None,
            expected: None,
            passed: false,
            error: Some(format!("{error:#}")),
        }
    }
}

fn write_text(out: &mut dyn Write, verdicts: &[LayerVerdict]) -> Result<()> {
    let header = ["layer", "output", "type", "ulps", "of magnitude", "allowed", "verdict"].map(str::to_owned);
    let row = |verdict: &LayerVerdict| {
        let number = |pick: fn(&Errors) -> f64| {
            verdict.errors.as_ref().map_or("–".to_owned(), |errors| format!("{:.2}", pick(errors)))
        };
        vec![
            verdict.name.clone(),
            verdict.output.as_deref().map_or("–".to_owned(), sizes),
            verdict.dtype.clone().unwrap_or_else(|| "–".to_owned()),
            number(|errors| errors.ulps),
            number(|errors| errors.magnitude_ulps),
            number(|errors| errors.allowed),
            if verdict.passed { "ok" } else { "FAIL" }.to_owned(),
        ]
    };
    write_columns(out, &header, verdicts.iter().map(row))?;
    for verdict in verdicts {
        if let Some(comparison) = &verdict.expected {
            writeln!(out, "\n{comparison}")?;
        }
        if let Some(error) = &verdict.error {
            out.flush()?;
            eprintln!("error: layer {}: {error}", verdict.name);
        }
    }
    Ok(())
}
