//! `outstride inspect`: the transposed convolutions of a model.

mod remarks;
mod report;
mod text;

use std::io::Write;

use anyhow::Result;
use clap::Args;

use crate::Verdict;
use crate::model::{ModelArgs, select};
use crate::output::write_json;
use report::Report;

/// List the transposed convolutions of a model, with remarks
///
/// For each, subgraphs and local functions included: its tensors and attributes, the pads and sizes they come to, flops
/// and weights, and what a reviewer would remark: kernels that leave a checkerboard, outputs that hold nothing but bias,
/// pads without effect, words that other frameworks read differently. Weights are not read, however large the files.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct InspectArgs {
    #[command(flatten)]
    model: ModelArgs,

    /// Only these transposed convolutions; may be repeated
    #[arg(long = "node", value_name = "NAME")]
    nodes: Vec<String>,

    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  outstride inspect generator.onnx
      Every transposed convolution.
  outstride inspect vocoder.onnx --shape mel=1,80,100
      A model whose input has open sizes.
  outstride inspect model.xml --json | jq '.layers[] | select(.remarks != [])'
      An OpenVINO IR, for machines: the layers with remarks.
  ONEDNN_VERBOSE=1 ./app | grep deconvolution > log.txt; outstride inspect log.txt
      What an application ran.

Exit status: 0 every layer has a meaning; 1 a layer is refused or its shapes are open;
             2 wrong usage or an unreadable file.";

pub(crate) fn run(args: &InspectArgs, out: &mut dyn Write) -> Result<Verdict> {
    let model = args.model.open()?;
    let layers = select(model.layers(), &args.nodes)?;
    let report = Report::new(&args.model, &model, &layers);
    if args.json {
        write_json(out, &report)?;
    } else {
        text::write(out, &report)?;
    }
    let all_well = report.layers.iter().all(|layer| layer.error.is_none());
    Ok(if all_well { Verdict::Yes } else { Verdict::No })
}
