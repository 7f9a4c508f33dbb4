//! Running one program after another, visibly.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

/// The repository's root.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// Where cargo builds.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// A run of cargo in the repository's root.
pub(crate) struct Step {
    arguments: Vec<String>,
    environment: Vec<(&'static str, &'static str)>,
}

impl Step {
    /// `cargo` with these arguments, separated by spaces.
    pub(crate) fn cargo(arguments: &str) -> Self {
        Step { arguments: arguments.split_whitespace().map(str::to_owned).collect(), environment: Vec::new() }
    }

    pub(crate) fn env(mut self, name: &'static str, value: &'static str) -> Self {
        self.environment.push((name, value));
        self
    }

    /// The step as one would type it.
    fn line(&self) -> String {
        let environment = self.environment.iter().map(|(name, value)| format!("{name}='{value}' "));
        format!("{}cargo {}", environment.collect::<String>(), self.arguments.join(" "))
    }

    fn command(&self) -> Command {
        let mut command = Command::new("cargo");
        command.args(&self.arguments).envs(self.environment.iter().copied()).current_dir(root());
        command
    }

    /// Prints and runs the step; an error if it fails.
    pub(crate) fn run(&self) -> Result<()> {
        eprintln!("\n$ {}", self.line());
        let status = self.command().status().with_context(|| format!("cannot start `{}`", self.line()))?;
        if !status.success() {
            bail!("`{}` failed ({status}); what it printed is above", self.line());
        }
        Ok(())
    }

    /// Whether the step succeeds, without a word.
    pub(crate) fn succeeds(&self) -> bool {
        let quiet = self.command().stdout(Stdio::null()).stderr(Stdio::null()).status();
        quiet.is_ok_and(|status| status.success())
    }
}
