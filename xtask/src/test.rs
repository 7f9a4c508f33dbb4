//! `cargo xtask test`: every test there is, the cheap ones first.

use std::process::Command;

use anyhow::Result;

use crate::step::Step;
use crate::wheel;

pub(crate) fn run() -> Result<()> {
    run_if_installed("fmt", "rustfmt", &Step::cargo("fmt --all --check"))?;
    let clippy = Step::cargo("clippy --workspace --all-targets -- -D warnings");
    run_if_installed("clippy", "clippy", &clippy)?;
    Step::cargo("doc --workspace --no-deps").env("RUSTDOCFLAGS", "-D warnings").run()?;
    Step::cargo("test --workspace").run()?;
    let check = "run --quiet --package outstride-cli -- check";
    for isa in ["portable", "avx2", "avx512", "vnni", "amx"] {
        Step::cargo(&format!("{check} conformance/")).env("OUTSTRIDE_ISA", isa).run()?;
    }
    Step::cargo(&format!("{check} --policy runtime conformance/")).run()?;
    run_emulated(&format!("{check} conformance/"))?;
    wheel::test()?;
    eprintln!("\nxtask: every step passed");
    Ok(())
}

/// A bare toolchain may lack the component; that is no reason to keep the tests from running.
fn run_if_installed(subcommand: &str, component: &str, step: &Step) -> Result<()> {
    if Step::cargo(&format!("{subcommand} --version")).succeeds() {
        return step.run();
    }
    eprintln!(
        "\nxtask: skipping cargo {subcommand}, which is not installed: rustup component add {component}"
    );
    Ok(())
}

/// On a CPU without AVX-512 and matrix tiles, which valgrind emulates; it watches every access to memory, too.
fn run_emulated(arguments: &str) -> Result<()> {
    let installed = Command::new("valgrind").arg("--version").output();
    if !installed.is_ok_and(|output| output.status.success()) {
        eprintln!("\nxtask: skipping cargo {arguments} under valgrind, which is not installed");
        return Ok(());
    }
    let runner = "valgrind --quiet --error-exitcode=1";
    Step::cargo(arguments).env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER", runner).run()
}
