//! What a comparison was asked to do.

use std::fmt;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

use crate::step::root;

pub(crate) const HELP: &str = "\
  cargo xtask compare [OPTIONS]    outstride beside its peers; writes docs/performance/, docs/performance.md and .svg
      --layout ncx|nxc             one layout only; both by default
      --dtype f32|bf16|f16|i8      one type only; f32 by default
      --layers FILE                other layers than benches/layers.json
      --only ID,ID                 some layers only; writes to target/compare instead of docs
      --peers NAME,NAME            of ort, ov, onednn, rust, torch; all but torch by default
      --with-torch                 PyTorch as well, which is large
      --rounds N                   how many turns each takes (5)
      --seconds S                  how long each turn takes (0.3)
      --threads N                  for each contestant; all that the machine has by default
      --render-only                write the documents again from the last results
      --types                      instead, outstride's own types beside each other; docs/performance.md keeps the rest
      --models                     instead, whole PyTorch models before and after the swap; docs/performance.md keeps the rest
      Peers are installed under target/compare, or in the folder that OUTSTRIDE_PEERS_HOME names.";

/// The families of peers, each one process.
pub(super) const FAMILIES: [&str; 5] = ["ort", "ov", "onednn", "rust", "torch"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    Ncx,
    Nxc,
}

impl Layout {
    pub(super) const ALL: [Layout; 2] = [Layout::Ncx, Layout::Nxc];

    pub(super) fn name(self) -> &'static str {
        match self {
            Layout::Ncx => "ncx",
            Layout::Nxc => "nxc",
        }
    }

    /// In words.
    pub(super) fn title(self) -> &'static str {
        match self {
            Layout::Ncx => "Channels first",
            Layout::Nxc => "Channels last",
        }
    }
}

/// The types that peers compute in as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dtype {
    F32,
    Bf16,
    F16,
    I8,
}

impl Dtype {
    pub(super) const ALL: [Dtype; 4] = [Dtype::F32, Dtype::Bf16, Dtype::F16, Dtype::I8];

    pub(super) fn name(self) -> &'static str {
        match self {
            Dtype::F32 => "f32",
            Dtype::Bf16 => "bf16",
            Dtype::F16 => "f16",
            Dtype::I8 => "i8",
        }
    }
}

/// What all layers of a comparison have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Contest {
    pub(super) layout: Layout,
    pub(super) dtype: Dtype,
}

impl Contest {
    /// All there are, in the order of the document.
    pub(super) fn all() -> impl Iterator<Item = Contest> {
        Dtype::ALL.into_iter().flat_map(|dtype| Layout::ALL.map(|layout| Contest { layout, dtype }))
    }

    /// Whether a family of peers has anything to show.
    pub(super) fn has_family(self, family: &str) -> bool {
        match family {
            "onednn" => true,
            // Nobody else has a quantized operator.
            _ if self.dtype == Dtype::I8 => false,
            "torch" => true,
            "ov" => self.layout == Layout::Ncx,
            _ => self.layout == Layout::Ncx && self.dtype == Dtype::F32,
        }
    }
}

impl fmt::Display for Contest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.layout.name(), self.dtype.name())
    }
}

#[derive(Debug)]
pub(super) struct Options {
    pub(super) layouts: Vec<Layout>,
    pub(super) dtype: Dtype,
    pub(super) layers: PathBuf,
    pub(super) only: Vec<String>,
    pub(super) peers: Vec<String>,
    pub(super) rounds: usize,
    pub(super) seconds: f64,
    pub(super) threads: usize,
    pub(super) render_only: bool,
    pub(super) types: bool,
    pub(super) models: bool,
    own_layers: bool,
}

impl Options {
    pub(super) fn parse(arguments: &[&str]) -> Result<Self> {
        let mut options = Options {
            layouts: Layout::ALL.to_vec(),
            dtype: Dtype::F32,
            layers: root().join("benches/layers.json"),
            only: Vec::new(),
            peers: ["ort", "ov", "onednn", "rust"].map(str::to_owned).to_vec(),
            rounds: 5,
            seconds: 0.3,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            render_only: false,
            types: false,
            models: false,
            own_layers: true,
        };
        let mut rest = arguments.iter();
        while let Some(&name) = rest.next() {
            match name {
                "--with-torch" => options.peers.push("torch".into()),
                "--render-only" => options.render_only = true,
                "--types" => options.types = true,
                "--models" => options.models = true,
                _ => {
                    let value = rest
                        .next()
                        .with_context(|| format!("`{name}` needs a value, or is no option\n\n{HELP}"))?;
                    options.set(name, value)?;
                }
            }
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<()> {
        let words = || value.split(',').map(str::to_owned).collect::<Vec<_>>();
        let number = || format!("`{value}` is no number for {name}");
        match name {
            "--layout" => {
                let layout = Layout::ALL.into_iter().find(|layout| layout.name() == value);
                self.layouts =
                    vec![layout.with_context(|| format!("`{value}` is no layout; use ncx or nxc"))?];
            }
            "--dtype" => {
                let dtype = Dtype::ALL.into_iter().find(|dtype| dtype.name() == value);
                self.dtype =
                    dtype.with_context(|| format!("`{value}` is no type; use f32, bf16, f16 or i8"))?;
            }
            "--layers" => {
                self.layers = value.into();
                self.own_layers = false;
            }
            "--only" => self.only = words(),
            "--peers" => {
                self.peers = words();
                if let Some(unknown) = self.peers.iter().find(|peer| !FAMILIES.contains(&peer.as_str())) {
                    bail!("there is no peer `{unknown}`; there are {}", FAMILIES.join(", "));
                }
            }
            "--rounds" => self.rounds = value.parse::<usize>().with_context(number)?.max(1),
            "--seconds" => self.seconds = value.parse().with_context(number)?,
            "--threads" => self.threads = value.parse::<usize>().with_context(number)?.max(1),
            unknown => bail!("there is no option `{unknown}`\n\n{HELP}"),
        }
        Ok(())
    }

    /// What is to be measured.
    pub(super) fn contests(&self) -> Vec<Contest> {
        self.layouts.iter().map(|&layout| Contest { layout, dtype: self.dtype }).collect()
    }

    /// Whether the results are those of the project's own layers, all of them.
    pub(super) fn is_complete(&self) -> bool {
        self.own_layers && self.only.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_the_unknown_refused() {
        let options =
            Options::parse(&["--layout", "nxc", "--only", "a,b", "--with-torch", "--rounds", "2"]).unwrap();
        assert_eq!((options.layouts.as_slice(), options.rounds), (&[Layout::Nxc][..], 2));
        assert_eq!(options.only, ["a", "b"]);
        assert!(options.peers.contains(&"torch".to_owned()) && !options.is_complete());
        assert!(Options::parse(&[]).unwrap().is_complete());
        for wrong in [
            &["--layout", "nchw"][..],
            &["--dtype", "f64"],
            &["--peers", "mkl"],
            &["--rounds", "x"],
            &["--fast", "1"],
            &["--only"],
        ] {
            assert!(Options::parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
