//! `cargo xtask wheel`, and the tests of the Python package, which run against an installed wheel.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::step::{root, target};
use crate::venv::{Venv, checked, python_exists};

/// Builds the wheel for every Linux since 2014 and the source distribution it is built from.
pub(crate) fn run() -> Result<()> {
    let venv = environment(&["requirements-build.txt", "requirements-zig.txt"])?;
    // With zig the wheel links against an old glibc, whatever this machine has.
    let wheel = build(&venv, &target().join("wheels"), &["--zig", "--strip", "--sdist"])?;
    eprintln!("\nxtask: built {} and its source distribution", wheel.display());
    Ok(())
}

/// Installs the wheel for this machine and runs the tests of the package.
pub(crate) fn test() -> Result<()> {
    if !python_exists() {
        eprintln!("\nxtask: skipping the Python package: there is no python3");
        return Ok(());
    }
    let venv = environment(&["requirements-build.txt", "requirements-test.txt"])?;
    let wheel = build(&venv, &work().join("wheels"), &[])?;
    checked(venv.pip_install().args(["--force-reinstall", "--no-deps"]).arg(wheel))?;
    checked(venv.program("pytest")?.arg("--quiet").current_dir(package()))
}

fn package() -> PathBuf {
    root().join("crates/python")
}

fn work() -> PathBuf {
    target().join("python")
}

fn environment(lists: &[&str]) -> Result<Venv> {
    let lists: Vec<PathBuf> = lists.iter().map(|list| package().join(list)).collect();
    Venv::with_requirements(&work().join("venv"), &lists)
}

/// Builds into an emptied folder; the wheel.
fn build(venv: &Venv, folder: &Path, options: &[&str]) -> Result<PathBuf> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot empty {}", folder.display()))?;
    }
    let mut maturin = venv.program("maturin")?;
    maturin.args(["build", "--release", "--locked", "--out"]).arg(folder).args(options);
    checked(maturin.current_dir(package()))?;
    let built = folder.read_dir().with_context(|| format!("cannot list {}", folder.display()))?;
    let paths = built.filter_map(|entry| Some(entry.ok()?.path()));
    let mut wheels = paths.filter(|path| path.extension().is_some_and(|extension| extension == "whl"));
    wheels.next().with_context(|| format!("maturin left no wheel in {}", folder.display()))
}
