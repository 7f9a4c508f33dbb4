//! `outstride draw`: pictures of a layer.

mod axis;
mod plane;
mod svg;

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use outstride::Axis;
use serde::Serialize;

use crate::Verdict;
use crate::model::{LayerShapes, ModelArgs, select};
use crate::output::write_json;

/// Draw a layer as SVG: inputs, taps, phases, overlap counts, pads
///
/// One axis shows which inputs reach which outputs; two axes show how many products meet in each output, which is where
/// checkerboards come from. The pictures are readable in black and white.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct DrawArgs {
    #[command(flatten)]
    model: ModelArgs,

    /// Which transposed convolution; may be left out where there is only one
    #[arg(long, value_name = "NAME")]
    node: Option<String>,

    /// Draw this spatial axis only; by default both of a layer with two, and axis 0 of others
    #[arg(long, value_name = "N")]
    axis: Option<usize>,

    /// Draw at most this many inputs along an axis; pads stay as they are
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=64))]
    inputs: u16,

    /// Where to write the picture; stdout by default
    #[arg(long, value_name = "FILE.svg")]
    output: Option<PathBuf>,

    /// Print the numbers in the picture as one JSON document instead
    #[arg(long, conflicts_with = "output")]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  outstride draw --layer mb1_ic1oc1_iw4kw3sw2 --output checkerboard.svg
      One axis: kernel 3 at stride 2.
  outstride draw generator.onnx --node up1 --output up1.svg
      The overlap counts of a 2-D layer.

Exit status: 0 drawn; 1 the layer is refused; 2 wrong usage or an unreadable file.";

/// Above this many positions a picture shows nothing.
const MOST_POSITIONS: usize = 256;

/// The numbers of one axis.
#[derive(Serialize)]
struct AxisNumbers {
    input: usize,
    kernel: usize,
    stride: usize,
    dilation: usize,
    pad_begin: i64,
    pad_end: i64,
    /// Per output, how many taps feed it.
    taps: Vec<usize>,
    /// Per output, its phase.
    phases: Vec<i64>,
}

pub(crate) fn run(args: &DrawArgs, out: &mut dyn Write) -> Result<Verdict> {
    let model = args.model.open()?;
    let shapes = args.model.shapes(&model);
    let layers = select(model.layers(), &args.node.iter().cloned().collect::<Vec<_>>())?;
    let [layer] = layers.as_slice() else {
        let names: Vec<&str> = layers.iter().map(|layer| layer.name.as_str()).take(20).collect();
        bail!(
            "there are {} transposed convolutions; choose one with --node: {}",
            layers.len(),
            names.join(", ")
        );
    };
    let call = match LayerShapes::of(layer, &shapes).resolve(args.model.policy()) {
        Ok(resolved) => resolved.call,
        Err(error) => {
            eprintln!("error: layer {}: {error}", layer.name);
            return Ok(Verdict::No);
        }
    };
    let all = call.geometry.axes();
    let chosen: Vec<Axis> = match (args.axis, all) {
        (Some(index), _) => {
            vec![
                *all.get(index)
                    .with_context(|| format!("there is no axis {index}; there are {}", all.len()))?,
            ]
        }
        (None, [_, _]) => all.to_vec(),
        (None, _) => all[..1].to_vec(),
    };
    let axes =
        chosen.iter().map(|axis| excerpt(axis, usize::from(args.inputs))).collect::<Result<Vec<_>>>()?;
    if args.json {
        write_json(out, &axes.iter().map(AxisNumbers::new).collect::<Vec<_>>())?;
        return Ok(Verdict::Yes);
    }
    let picture = match axes.as_slice() {
        [rows, columns] => plane::draw(&layer.name, rows, columns),
        [axis] => axis::draw(&layer.name, axis),
        _ => bail!("there is nothing to draw"),
    };
    match &args.output {
        Some(path) => {
            std::fs::write(path, picture).with_context(|| format!("cannot write {}", path.display()))?
        }
        None => out.write_all(picture.as_bytes())?,
    }
    Ok(Verdict::Yes)
}

/// The axis with fewer inputs, and the same pads.
fn excerpt(axis: &Axis, inputs: usize) -> Result<Axis> {
    let end = axis.pad_end();
    let mut excerpt = Axis { input: axis.input.min(inputs), ..*axis };
    let output = excerpt.full() - excerpt.pad_begin - end;
    let drawn = excerpt.full().max(0) as u64 + axis.pad_begin.unsigned_abs() + end.unsigned_abs();
    if output < 1 || drawn > MOST_POSITIONS as u64 {
        bail!(
            "{} inputs would take {drawn} positions, of which {output} are outputs; pictures have 1 to {MOST_POSITIONS}: \
             choose another number with --inputs",
            excerpt.input
        );
    }
    excerpt.output = output as usize;
    Ok(excerpt)
}

/// How many taps feed an output.
fn taps(axis: &Axis, output: usize) -> usize {
    axis.contributions(output).count()
}

impl AxisNumbers {
    fn new(axis: &Axis) -> Self {
        AxisNumbers {
            input: axis.input,
            kernel: axis.kernel,
            stride: axis.stride,
            dilation: axis.dilation,
            pad_begin: axis.pad_begin,
            pad_end: axis.pad_end(),
            taps: (0..axis.output).map(|output| taps(axis, output)).collect(),
            phases: (0..axis.output)
                .map(|output| (output as i64 + axis.pad_begin).rem_euclid(axis.stride as i64))
                .collect(),
        }
    }
}
