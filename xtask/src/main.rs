//! Developer commands: `cargo xtask test` runs every test there is, `cargo xtask fuzz` every fuzz target, `cargo xtask
//! wheel` builds the Python package, `cargo xtask compare` runs the benchmark beside other implementations.

#![forbid(unsafe_code)]

mod compare;
mod fuzz;
mod step;
mod test;
mod venv;
mod wheel;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

const HELP: &str = "\
Developer commands of outstride.

  cargo xtask test                 formatting, lints, documentation, tests, conformance cases and the Python package
  cargo xtask test python          the Python package alone
  cargo xtask test peers           the same beside PyTorch, ONNX Runtime and OpenVINO, which are large
  cargo xtask fuzz [--seconds N]   every fuzz target for N seconds (60), with the nightly toolchain
  cargo xtask wheel                the Python package for Linux and its sources, into target/wheels; tries both";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["test"] => test::run(),
        ["test", "python"] => wheel::test(),
        ["test", "peers"] => wheel::test_in(&compare::python_peers()?),
        ["wheel"] => wheel::run(),
        ["fuzz"] => fuzz::run(Duration::from_secs(60)),
        ["fuzz", "--seconds", seconds] => {
            let seconds = seconds.parse().with_context(|| format!("`{seconds}` is no number of seconds"))?;
            fuzz::run(Duration::from_secs(seconds))
        }
        ["compare", options @ ..] => compare::run(options),
        [] | ["help" | "--help" | "-h"] => {
            println!("{HELP}\n{}", compare::HELP);
            Ok(())
        }
        unknown => bail!("there is no command `{}`\n\n{HELP}", unknown.join(" ")),
    }
}
