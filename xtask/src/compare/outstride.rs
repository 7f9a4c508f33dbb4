//! Our own turn: the command, as a user runs it.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use outstride_io::layers::Layer;
use serde::{Deserialize, Serialize};

use super::options::Options;
use crate::step::{Step, target};

pub(super) struct Outstride {
    program: PathBuf,
    /// The best instruction set that it may use.
    cap: Option<&'static str>,
}

/// What `outstride bench --json` says of a layer, as far as the documents need it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Own {
    pub(super) median_ms: f64,
    pub(super) gflops: f64,
    pub(super) gbps: f64,
    pub(super) ceiling_ms: f64,
    pub(super) ceiling: String,
    pub(super) path: String,
    pub(super) kernel: String,
    pub(super) peak_gflops: f64,
    pub(super) read_gbps: f64,
    pub(super) write_gbps: f64,
}

impl Outstride {
    pub(super) fn build() -> Result<Self> {
        Step::cargo("build --release --package outstride-cli").run()?;
        let name = format!("outstride{}", std::env::consts::EXE_SUFFIX);
        Ok(Outstride { program: target().join("release").join(name), cap: None })
    }

    /// The same with no instruction set above a word of `OUTSTRIDE_ISA`.
    pub(super) fn capped(&self, cap: &'static str) -> Self {
        Outstride { program: self.program.clone(), cap: Some(cap) }
    }

    pub(super) fn measure(&self, options: &Options, layout: &str, dtype: &str, layer: &Layer) -> Result<Own> {
        let output = Command::new(&self.program)
            .envs(self.cap.map(|cap| ("OUTSTRIDE_ISA", cap)))
            .arg("bench")
            .arg(&options.layers)
            .args(["--only", &layer.id, "--json"])
            .args(["--layout", layout, "--dtype", dtype])
            .args(["--threads", &options.threads.to_string(), "--seconds", &options.seconds.to_string()])
            .output()
            .with_context(|| format!("cannot start {}", self.program.display()))?;
        if !output.status.success() {
            bail!(
                "outstride bench failed on {}: {}",
                layer.id,
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        let own: Vec<Own> =
            serde_json::from_slice(&output.stdout).context("outstride bench printed no JSON")?;
        own.into_iter().next().with_context(|| format!("outstride bench has no figure for {}", layer.id))
    }
}
