//! `cargo xtask fuzz`: every fuzz target for a while.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::step::{Step, root};

pub(crate) fn run(each: Duration) -> Result<()> {
    let targets = targets()?;
    if !Step::cargo("+nightly --version").succeeds() {
        bail!("fuzzing needs a nightly toolchain: rustup toolchain install nightly");
    }
    if !Step::cargo("+nightly fuzz --version").succeeds() {
        Step::cargo("install --locked cargo-fuzz").run()?;
    }
    for target in &targets {
        let seconds = each.as_secs();
        Step::cargo(&format!("+nightly fuzz run {target} -- -max_total_time={seconds}")).run()?;
    }
    eprintln!("\nxtask: {} fuzz targets ran {} s each without a finding", targets.len(), each.as_secs());
    Ok(())
}

/// The names of the targets: one file each.
fn targets() -> Result<Vec<String>> {
    let folder = root().join("fuzz/fuzz_targets");
    let entries = folder.read_dir().with_context(|| format!("cannot list {}", folder.display()))?;
    let mut targets = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "rs")
            && let Some(name) = path.file_stem()
        {
            targets.push(name.to_string_lossy().into_owned());
        }
    }
    targets.sort();
    Ok(targets)
}
