//! `cargo xtask wheel`, and the tests of the Python package, which run against an installed wheel.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::step::{root, target};
use crate::venv::{Venv, checked, python_exists};

/// Builds the wheel for every Linux since 2014 and the source distribution, and tries both.
pub(crate) fn run() -> Result<()> {
    let venv = environment(&["requirements-build.txt", "requirements-zig.txt"])?;
    let folder = target().join("wheels");
    // With zig the wheel links against an old glibc, whatever this machine has.
    build(&venv, &folder, &["--release", "--zig", "--compatibility", "manylinux2014", "--strip"])?;
    checked(venv.program("maturin")?.args(["sdist", "--out"]).arg(&folder).current_dir(package()))?;
    let (wheel, sources) = (built(&folder, ".whl")?, built(&folder, ".tar.gz")?);
    for package in [&wheel, &sources] {
        try_installed(package)?;
    }
    eprintln!("\nxtask: built and tried {} and {}", wheel.display(), sources.display());
    Ok(())
}

/// Installs the wheel for this machine and runs the tests of the package.
pub(crate) fn test() -> Result<()> {
    if !python_exists() {
        eprintln!("\nxtask: skipping the Python package: there is no python3");
        return Ok(());
    }
    test_in(&environment(&[])?)
}

/// Runs the tests of the package in an environment that holds other packages too.
pub(crate) fn test_in(venv: &Venv) -> Result<()> {
    venv.install(&[package().join("requirements-test.txt")])?;
    // As the other tests are built: kernels, which take longest, are compiled already, and optimised in any case.
    install(venv, &[])?;
    checked(venv.program("pytest")?.arg("--quiet").current_dir(package()))
}

/// Builds the wheel for this machine and installs it in an environment.
pub(crate) fn install(venv: &Venv, options: &[&str]) -> Result<()> {
    let folder = work().join("wheels");
    build(&environment(&["requirements-build.txt"])?, &folder, options)?;
    checked(venv.pip_install().args(["--force-reinstall", "--no-deps"]).arg(built(&folder, ".whl")?))
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

/// Builds into an emptied folder.
fn build(venv: &Venv, folder: &Path, options: &[&str]) -> Result<()> {
    empty(folder)?;
    let mut maturin = venv.program("maturin")?;
    maturin.args(["build", "--locked", "--out"]).arg(folder).args(options);
    checked(maturin.current_dir(package()))
}

/// The file that a build left, by how its name ends.
fn built(folder: &Path, end: &str) -> Result<PathBuf> {
    let entries = folder.read_dir().with_context(|| format!("cannot list {}", folder.display()))?;
    let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths
        .find(|path| path.to_string_lossy().ends_with(end))
        .with_context(|| format!("maturin left no {end} in {}", folder.display()))
}

/// Installs a package as its users do, in an environment with nothing else, and lets it compute.
fn try_installed(built: &Path) -> Result<()> {
    let folder = work().join("fresh");
    empty(&folder)?;
    let venv = Venv::with_requirements(&folder, &[])?;
    // Sources are compiled on the way, in a folder that the next time finds its way in.
    checked(venv.pip_install().env("CARGO_TARGET_DIR", work().join("sdist")).arg(built))?;
    checked(venv.program("python")?.arg(package().join("tests/smoke.py")).current_dir(&folder))
}

fn empty(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("cannot empty {}", folder.display()))?;
    }
    Ok(())
}
