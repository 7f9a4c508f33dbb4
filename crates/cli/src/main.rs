//! The command `outstride`: what transposed convolutions mean in every dialect, what a model's are, whether they are
//! right, and how fast they run on this machine.
//!
//! Data goes to stdout, diagnostics to stderr. The exit status is 0 where all is well, 1 where the answer is no (a case
//! failed, a call was refused), 2 where the question could not be asked (usage, unreadable files).

#![forbid(unsafe_code)]

mod bench;
mod check;
mod convert;
mod convolve;
mod draw;
mod explain;
mod generate;
mod graph;
mod inspect;
mod kernels;
mod layers;
mod machine;
mod model;
mod output;
mod policy;
mod progress;
mod random;
mod relayout;
mod run;
mod shape;
mod verify;

use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Transposed convolution (ConvTranspose, deconvolution) as every framework spells it.
#[derive(Debug, Parser)]
#[command(name = "outstride", version, after_help = AFTER_HELP, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
Dialects: onnx, ort-nhwc, onednn-graph, openvino, openvino-group, torch, tensorflow, jax.
Policies: spec follows the written text of a dialect; runtime follows what its own runtime does
          where the two part ways.

Data goes to stdout, diagnostics to stderr.
Exit status: 0 all is well; 1 a case failed or a call was refused;
             2 wrong usage or an unreadable file.

`outstride help COMMAND` tells more and shows examples.";

#[derive(Debug, Subcommand)]
enum Command {
    Shape(Box<shape::ShapeArgs>),
    Check(check::CheckArgs),
    Inspect(inspect::InspectArgs),
    Run(run::RunArgs),
    Verify(verify::VerifyArgs),
    Convert(convert::ConvertArgs),
    Draw(draw::DrawArgs),
    Bench(bench::BenchArgs),
    Explain(explain::ExplainArgs),
    Kernels(kernels::KernelsArgs),
    Completions(generate::CompletionsArgs),
    Man(generate::ManArgs),
}

/// The answer to a question that could be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Yes,
    No,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let mut out = io::BufWriter::new(io::stdout().lock());
    let verdict = match &cli.command {
        Command::Shape(args) => shape::run(args, &mut out),
        Command::Check(args) => check::run(args, &mut out),
        Command::Inspect(args) => inspect::run(args, &mut out),
        Command::Run(args) => run::run(args, &mut out),
        Command::Verify(args) => verify::run(args, &mut out),
        Command::Convert(args) => convert::run(args, &mut out),
        Command::Draw(args) => draw::run(args, &mut out),
        Command::Bench(args) => bench::run(args, &mut out),
        Command::Explain(args) => explain::run(args, &mut out),
        Command::Kernels(args) => kernels::run(args, &mut out),
        Command::Completions(args) => generate::completions(args, &mut out),
        Command::Man(args) => generate::man(args, &mut out),
    };
    let verdict = verdict.and_then(|verdict| Ok(out.flush().map(|()| verdict)?));
    match verdict {
        Ok(Verdict::Yes) => ExitCode::SUCCESS,
        Ok(Verdict::No) => ExitCode::from(1),
        // The reader of a pipe has seen enough; there is nobody left to tell.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // What was found before the trouble is still worth having.
            let _ = out.flush();
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let written = error.downcast_ref::<io::Error>().map(io::Error::kind);
    let written_as_json =
        error.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind);
    written.or(written_as_json) == Some(io::ErrorKind::BrokenPipe)
}
