//! The layers that a command is asked about, and how they are to be run.

mod from_model;
mod operator;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use outstride::DType;
use outstride_io::Source;
use outstride_io::layers::Layer;

use crate::model::ShapeArg;
pub(crate) use operator::PreparedLayer;

/// Which layers, in which type, layout and number of threads.
#[derive(Debug, Args)]
pub(crate) struct LayerArgs {
    /// A model whose transposed convolutions are meant (ONNX, OpenVINO IR, oneDNN graph or log), or a file of layers: a
    /// JSON list of id, d, n, cin, cout, in, k, s, p and optionally pe, op, dil, g
    #[arg(value_name = "MODEL|LAYERS.json", required_unless_present = "layers")]
    file: Option<PathBuf>,

    /// The shape of a value that the model leaves open, such as x=1,3,8,8; may be repeated
    #[arg(long = "shape", value_name = "NAME=SIZES")]
    shapes: Vec<ShapeArg>,

    /// A layer as oneDNN's benchmark writes it, such as mb1_ic16oc8_ih8oh16kh4sh2ph1; may be repeated
    #[arg(long = "layer", value_name = "STRING")]
    layers: Vec<Layer>,

    /// Only the layers of these ids
    #[arg(long, value_name = "IDS", value_delimiter = ',')]
    only: Vec<String>,

    /// The element type of all tensors; i8 and u8 are quantized, with weights of i8
    #[arg(long, value_enum, value_name = "TYPE", default_value_t)]
    pub(crate) dtype: LayerType,

    /// Channels first (ncx) or channels last (nxc), for input and output
    #[arg(long, value_enum, default_value_t)]
    pub(crate) layout: Layout,

    /// How many threads; all that the machine has by default
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
}

/// The element types that layers can be measured in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LayerType {
    I8,
    U8,
    Bf16,
    F16,
    #[default]
    F32,
    F64,
}

impl LayerType {
    /// The type's name in the library.
    pub(crate) fn dtype(self) -> DType {
        match self {
            LayerType::I8 => DType::I8,
            LayerType::U8 => DType::U8,
            LayerType::Bf16 => DType::Bf16,
            LayerType::F16 => DType::F16,
            LayerType::F32 => DType::F32,
            LayerType::F64 => DType::F64,
        }
    }
}

/// Where the channels are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Layout {
    /// (N, C, X…)
    #[default]
    Ncx,
    /// (N, X…, C)
    Nxc,
}

impl Layout {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Layout::Ncx => "ncx",
            Layout::Nxc => "nxc",
        }
    }
}

impl LayerArgs {
    /// The layers of the file, then those given as strings; of both only the ids asked for.
    pub(crate) fn layers(&self) -> Result<Vec<Layer>> {
        let mut layers = match &self.file {
            Some(file) if is_list(file)? => Layer::read_file(file)?,
            Some(file) => from_model::layers(file, &self.shapes)?,
            None => Vec::new(),
        };
        layers.extend(self.layers.iter().cloned());
        let ids = || layers.iter().map(|layer| layer.id.as_str()).collect::<Vec<_>>().join(", ");
        if let Some(unknown) = self.only.iter().find(|&id| layers.iter().all(|layer| layer.id != *id)) {
            bail!("there is no layer `{unknown}`; there are {}", ids());
        }
        if !self.only.is_empty() {
            layers.retain(|layer| self.only.contains(&layer.id));
        }
        if layers.is_empty() {
            bail!("the file holds no layers");
        }
        Ok(layers)
    }

    /// Whether the layers are those of one model, so that their sum means something.
    pub(crate) fn is_model(&self) -> bool {
        self.file.as_deref().is_some_and(|file| !is_list(file).unwrap_or(false))
    }

    pub(crate) fn threads(&self) -> usize {
        let available = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        self.threads.map_or_else(available, NonZeroUsize::get)
    }
}

/// Whether a file is a JSON list, as files of layers are.
fn is_list(file: &Path) -> Result<bool> {
    let source = Source::open(file)?;
    let head = source.read(0..source.length().min(256))?;
    Ok(head.trim_ascii_start().first() == Some(&b'['))
}
