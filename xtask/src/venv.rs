//! Virtual environments of Python, with packages at pinned versions.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

/// A virtual environment.
pub(crate) struct Venv {
    programs: PathBuf,
}

impl Venv {
    /// The environment in `folder`, made where there is none, with what the lists of requirements name.
    pub(crate) fn with_requirements(folder: &Path, lists: &[PathBuf]) -> Result<Self> {
        let programs = folder.join(if cfg!(windows) { "Scripts" } else { "bin" });
        let venv = Venv { programs };
        if !venv.python().exists() {
            checked(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
        }
        if !lists.is_empty() {
            venv.install(lists)?;
        }
        Ok(venv)
    }

    /// Adds what further lists name.
    pub(crate) fn install(&self, lists: &[PathBuf]) -> Result<()> {
        let mut pip = self.pip_install();
        for list in lists {
            pip.arg("-r").arg(list);
        }
        checked(&mut pip)
    }

    /// `pip install`, with what comes after it still to be added.
    pub(crate) fn pip_install(&self) -> Command {
        let mut pip = Command::new(self.python());
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        pip
    }

    pub(crate) fn python(&self) -> PathBuf {
        self.programs.join("python")
    }

    /// One of the environment's programs, which finds the others.
    pub(crate) fn program(&self, name: &str) -> Result<Command> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(self.programs.clone()).chain(std::env::split_paths(&path));
        let mut command = Command::new(self.programs.join(name));
        command.env("PATH", std::env::join_paths(folders)?);
        Ok(command)
    }
}

/// Whether there is a Python to make environments with.
pub(crate) fn python_exists() -> bool {
    Command::new("python3").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Runs a program to its end; an error if it fails.
pub(crate) fn checked(command: &mut Command) -> Result<()> {
    eprintln!("$ {command:?}");
    let status = command.status().with_context(|| format!("cannot start {command:?}"))?;
    if !status.success() {
        bail!("{command:?} failed ({status}); what it printed is above");
    }
    Ok(())
}
