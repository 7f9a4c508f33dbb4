//! `cargo xtask compare --models`: whole PyTorch models before and after the swap.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::install::python_peers;
use super::results::cpu;
use super::section::MODELS;
use crate::step::root;
use crate::wheel;

/// Measures, and puts what came out in the place of what is there.
pub(super) fn run(work: &Path) -> Result<()> {
    let venv = python_peers(work)?;
    wheel::install(&venv, &["--release"])?;
    let mut program = Command::new(venv.python());
    program.arg(root().join("crates/python/tests/torch_models.py"));
    eprintln!("$ {program:?}");
    let output = program.stderr(std::process::Stdio::inherit()).output();
    let output = output.with_context(|| format!("cannot start {program:?}"))?;
    if !output.status.success() {
        bail!("{program:?} failed ({}); what it printed is above", output.status);
    }
    let measured = String::from_utf8_lossy(&output.stdout);
    let file = root().join("docs/performance.md");
    MODELS.write(&file, &format!("{INTRODUCTION}{}, {measured}", cpu()))?;
    println!("{measured}\n{}", file.display());
    Ok(())
}

const INTRODUCTION: &str = "
Written by `cargo xtask compare --models`: models as they are published, with random weights, in PyTorch alone and after
`outstride.torch.replace_conv_transpose`. Both have the same weights, give the same output within the tolerance of
`torch.testing.assert_close` and take turns run by run. Times are medians; *times faster* is the median over pairs of runs beside
each other, so that a slow moment of the machine hits both, and between which bounds it lies with 95 % confidence. The last
columns are of the transposed convolutions alone, inside the model. The C library is kept from giving freed memory back to the system
([why](python.md#memory-of-whole-models)).

";
