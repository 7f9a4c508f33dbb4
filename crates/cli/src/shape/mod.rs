//! `outstride shape`: what a call means, in one dialect or side by side in all of them.

mod answer;
mod options;
mod question;
mod text;

use std::io::Write;

use anyhow::Result;
use clap::Args;
use outstride::{DType, Policy};
use serde::Serialize;

use crate::Verdict;
use crate::output::write_json;
use crate::policy::PolicyArg;
pub(crate) use answer::AxisAnswer;
use answer::{Answer, answer};
use options::{DialectChoice, NativeArgs, NeutralArgs};
use question::Question;

/// Show the output shape and the pads of a call, in one dialect or in all
///
/// There are two ways to ask.
///
/// In the dialect's own words: shapes are in the dialect's own layouts, and each attribute is given by --set. This is
/// the way for one dialect.
///
/// In neutral words: --stride, --pads, --dilation, --output-padding, --groups, --auto-pad and --output-size, with the
/// input as N,C,X… and the filter as C,M/groups,k…, whatever the dialect's own layouts are. The problem is put into the
/// words of the dialect, or with `--dialect all` of every dialect, side by side: so one sees why one gives 55 and
/// another 56. Where a dialect has no words for the problem, its row says what it lacks.
///
/// Neutral words are assumed for `--dialect all`, and as soon as one of those options is given.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ShapeArgs {
    /// The dialect, or `all`
    #[arg(long, value_name = "NAME")]
    dialect: DialectChoice,

    /// The input's sizes, such as 1,16,28,28
    #[arg(long, value_name = "SIZES", required = true, value_delimiter = ',')]
    input: Vec<usize>,

    /// The filter's sizes, such as 16,8,4,4
    #[arg(long, value_name = "SIZES", required = true, value_delimiter = ',')]
    filter: Vec<usize>,

    /// There is a bias, with one value per output channel
    #[arg(long)]
    bias: bool,

    /// The element type of all tensors: f16, bf16, f32, f64, i8…i64, u8…u64
    #[arg(long, value_name = "TYPE", default_value = "f32")]
    dtype: DType,

    /// The opset of onnx, or the domain version of ort-nhwc; the newest by default
    #[arg(long, value_name = "N")]
    opset: Option<i64>,

    /// Whose word counts where a dialect's text and its own runtime part ways
    #[arg(long, value_enum, default_value_t)]
    policy: PolicyArg,

    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    native: NativeArgs,

    #[command(flatten)]
    neutral: NeutralArgs,
}

const EXAMPLES: &str = "\
Examples:
  outstride shape --dialect onnx --input 1,16,28,28 --filter 16,8,4,4 \\
      --set strides=2,2 --set auto_pad=SAME_UPPER
      One call in ONNX's own words.
  outstride shape --dialect tensorflow --input 1,28,28,16 --filter 4,4,8,16 \\
      --set strides=2 --set output_shape=1,56,56,8
      TensorFlow's layouts are its own too: N,X…,C and k…,M,C.
  outstride shape --dialect jax --input 1,28,16 --filter 3,16,8 \\
      --set strides=[2] --set 'padding=[[1,1]]'
      Values are JSON, or else comma-separated integers, or else text.
  outstride shape --dialect all --input 1,16,28,28 --filter 16,8,3,3 \\
      --stride 2 --auto-pad same_upper
      What every dialect makes of `same_upper`.
  outstride shape --dialect all --input 1,16,28,28 --filter 16,8,3,3 \\
      --stride 2 --output-size 56 --policy runtime
      Who crops where to reach 56, as the runtimes do it.

Exit status: 0 resolved (with `all`: by at least one dialect); 1 refused; 2 wrong usage.";

pub(crate) fn run(args: &ShapeArgs, out: &mut dyn Write) -> Result<Verdict> {
    let policy = Policy::from(args.policy);
    let question = Question::from_args(args)?;
    match args.dialect {
        DialectChoice::One(dialect) => {
            let answer = answer(dialect, &question, policy);
            if args.json {
                write_json(out, &answer)?;
                return Ok(verdict(&[answer]));
            }
            match &answer {
                Answer::Resolved(resolved) => text::write_one(out, resolved)?,
                Answer::Refused(refused) => {
                    eprintln!("error: {dialect} refuses this call: {}", refused.message())
                }
            }
            Ok(verdict(&[answer]))
        }
        DialectChoice::All => {
            let answers = answer::in_every_dialect(&question, policy);
            if args.json {
                write_json(out, &Comparison { policy: policy.to_string(), dialects: &answers })?;
            } else {
                text::write_table(out, &question, policy, &answers)?;
            }
            Ok(verdict(&answers))
        }
    }
}

/// The answers of every dialect, as JSON.
#[derive(Serialize)]
struct Comparison<'a> {
    policy: String,
    dialects: &'a [Answer],
}

fn verdict(answers: &[Answer]) -> Verdict {
    let resolved = answers.iter().any(|answer| matches!(answer, Answer::Resolved(_)));
    if resolved { Verdict::Yes } else { Verdict::No }
}
