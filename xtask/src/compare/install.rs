//! The peers, installed from the package registries at pinned versions.
//!
//! ```text
//! HOME/venv          Python peers (requirements.txt, with --with-torch also requirements-torch.txt)
//! HOME/onednn        oneDNN with its headers, and onednn_peer, compiled by the system's compiler
//! HOME/rust-target   the Rust peers
//! ```

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use outstride_io::layers::Layer;

use super::options::{Contest, Options};
use super::peer::{Peer, spelt_out};
use crate::step::root;
use crate::venv::{Venv, checked};

pub(super) struct Peers {
    peers: Vec<Peer>,
    python: Venv,
}

impl Peers {
    /// Installs the peers asked for. One that cannot be installed is left out, with a word about it.
    pub(super) fn install(options: &Options, work: &Path) -> Result<Self> {
        let home = home(work)?;
        // The models that Rust peers load are written by Python as well.
        let python = Venv::with_requirements(&home.join("venv"), &lists(&["requirements.txt"]))?;
        let mut peers = Vec::new();
        for family in super::options::FAMILIES {
            if !options.peers.iter().any(|wanted| wanted == family) {
                continue;
            }
            match install(family, &home, &python, options.threads) {
                Ok(peer) => peers.push(peer),
                Err(error) => eprintln!("xtask: going on without {family}: {error:#}"),
            }
        }
        if peers.is_empty() {
            bail!("there is no peer to compare with");
        }
        Ok(Peers { peers, python })
    }

    /// Writes each layer as an ONNX model, and says where.
    pub(super) fn write_models(&self, layers: &[Layer], work: &Path) -> Result<PathBuf> {
        let folder = work.join("models");
        fs::create_dir_all(&folder)?;
        let list = folder.join("layers.json");
        fs::write(&list, serde_json::to_string(&layers.iter().map(spelt_out).collect::<Vec<_>>())?)?;
        checked(Command::new(self.python.python()).arg(sources().join("models.py")).arg(&list).arg(&folder))?;
        Ok(folder)
    }

    /// The peers that take part in a layer.
    pub(super) fn of(&mut self, contest: Contest, layer: &Layer) -> impl Iterator<Item = &mut Peer> {
        let skip = layer.skip.clone();
        let takes_part =
            move |family: &str| contest.has_family(family) && !skip.iter().any(|name| name == family);
        self.peers.iter_mut().filter(move |peer| takes_part(peer.family))
    }

    /// The pinned versions of those that take part in a contest.
    pub(super) fn versions(&self, contest: Contest) -> Vec<String> {
        let mut pins: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        pins.insert("ort", pinned(include_str!("../../../benches/peers/requirements.txt"), "onnxruntime"));
        pins.insert("ov", pinned(include_str!("../../../benches/peers/requirements.txt"), "openvino"));
        pins.insert("torch", pinned(include_str!("../../../benches/peers/requirements-torch.txt"), "torch"));
        pins.insert(
            "onednn",
            pinned(include_str!("../../../benches/peers/requirements-onednn.txt"), "onednn="),
        );
        let rust = include_str!("../../../benches/peers/rust/Cargo.toml");
        pins.insert(
            "rust",
            ["rten =", "tract-onnx", "candle-core"].iter().flat_map(|name| pinned(rust, name)).collect(),
        );
        let taking_part = self.peers.iter().filter(|peer| contest.has_family(peer.family));
        let installed = taking_part.filter_map(|peer| pins.remove(peer.family)).flatten();
        installed.map(|line| line.replace("==", " ").replace(" = \"=", " ").replace('"', "")).collect()
    }
}

/// The environment of all Python peers.
pub(super) fn python_peers(work: &Path) -> Result<Venv> {
    Venv::with_requirements(
        &home(work)?.join("venv"),
        &lists(&["requirements.txt", "requirements-torch.txt"]),
    )
}

fn home(work: &Path) -> Result<PathBuf> {
    let home = std::env::var_os("OUTSTRIDE_PEERS_HOME").map_or_else(|| work.join("peers"), PathBuf::from);
    fs::create_dir_all(&home).with_context(|| format!("cannot create {}", home.display()))?;
    Ok(home)
}

/// The line of a list of requirements that begins with a name.
fn pinned<'a>(list: &'a str, name: &str) -> Vec<&'a str> {
    list.lines().filter(|line| line.starts_with(name)).collect()
}

fn install(family: &'static str, home: &Path, python: &Venv, threads: usize) -> Result<Peer> {
    let peer = match family {
        "onednn" => onednn(home)?,
        "rust" => Peer::new(family, rust(home)?, vec![threads.to_string()]),
        _ => {
            if family == "torch" {
                python.install(&lists(&["requirements-torch.txt"]))?;
            }
            let script = sources().join("python_peer.py").display().to_string();
            Peer::new(family, python.python(), vec![script, family.to_owned(), threads.to_string()])
        }
    };
    let variables = ["OMP_NUM_THREADS", "RAYON_NUM_THREADS", "RTEN_NUM_THREADS", "DPCPP_CPU_NUM_CUS"];
    Ok(variables.iter().fold(peer, |peer, name| peer.env(name, threads)))
}

/// oneDNN as Intel ships it: its library computes on the CPU through a runtime that comes with it.
fn onednn(home: &Path) -> Result<Peer> {
    let home = home.join("onednn");
    Venv::with_requirements(&home, &lists(&["requirements-onednn.txt"]))?;
    let (program, library) = (home.join("onednn_peer"), home.join("lib"));
    let compiler = std::env::var_os("CXX").unwrap_or_else(|| "c++".into());
    let mut compile = Command::new(&compiler);
    compile
        .args(["-O2", "-std=c++17", "-I"])
        .arg(home.join("include"))
        .arg(sources().join("onednn_peer.cpp"));
    compile.arg("-o").arg(&program).arg("-L").arg(&library).arg("-ldnnl");
    compile.arg(format!("-Wl,-rpath,{}", library.display()));
    // The library's own dependencies are found when it is loaded.
    compile.arg("-Wl,--unresolved-symbols=ignore-all");
    checked(&mut compile)?;
    let peer = Peer::new("onednn", program, Vec::new());
    let peer = peer.env("LD_LIBRARY_PATH", library.display()).env("ONEAPI_DEVICE_SELECTOR", "opencl:cpu");
    Ok(peer.env("OCL_ICD_FILENAMES", library.join("libintelocl.so").display()))
}

fn rust(home: &Path) -> Result<PathBuf> {
    let target = home.join("rust-target");
    let mut build = Command::new("cargo");
    build.args(["build", "--release", "--locked", "--manifest-path"]).arg(sources().join("rust/Cargo.toml"));
    checked(build.env("CARGO_TARGET_DIR", &target))?;
    Ok(target.join("release").join(format!("outstride-rust-peers{}", std::env::consts::EXE_SUFFIX)))
}

fn sources() -> PathBuf {
    root().join("benches/peers")
}

fn lists(names: &[&str]) -> Vec<PathBuf> {
    names.iter().map(|name| sources().join(name)).collect()
}
