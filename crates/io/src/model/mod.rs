//! Models as graphs of named values, whatever file they came from.
//!
//! ```
//! use std::path::Path;
//! use outstride_io::{Model, Source};
//!
//! let text = b"onednn_verbose,v1,primitive,exec,cpu,jit,deconvolution,forward_inference,src_f32::blocked:abcd::f0,,\
//!     alg:deconvolution_direct,mb1_ic16oc8_ih8oh16kh4sh2dh0ph1_iw8ow16kw4sw2dw0pw1,0.05";
//! let model = Model::parse(Source::memory(Path::new("log.txt"), text.to_vec()))?;
//! let layers = model.layers();
//! assert_eq!(layers[0].node.op, "ConvTranspose");
//! # Ok::<(), outstride_io::FileError>(())
//! ```

mod inline;
mod layers;
mod tensor_source;
mod types;

use std::collections::BTreeMap;
use std::path::Path;

use crate::error::FileError;
use crate::source::Source;
use crate::{onednn, onnx, openvino};

pub(crate) use inline::{Function, inline};
pub(crate) use layers::domain_key;
pub use layers::{ModelLayer, Scope};
pub use tensor_source::TensorSource;
pub(crate) use tensor_source::{Data, DataType, External};
pub use types::{Attribute, Dim, Graph, Node, ValueType};

/// The domain of OpenVINO's operators, as nodes of a [`Graph`] carry it.
pub const OPENVINO_DOMAIN: &str = "openvino";
/// The domain of oneDNN Graph's operators.
pub const ONEDNN_DOMAIN: &str = "onednn";
/// The domain of ONNX Runtime's channels-last operators.
pub const NHWC_DOMAIN: &str = "com.ms.internal.nhwc";

/// The tag of the first field of an ONNX file.
const ONNX_BEGINNING: u8 = 8;

/// Which kind of file a model came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// An ONNX model.
    Onnx,
    /// An OpenVINO IR.
    OpenvinoIr,
    /// A graph as oneDNN's benchmark reads it.
    OnednnGraph,
    /// Lines of oneDNN's verbose log, problem strings, or a layers file: shapes without weights.
    Layers,
}

impl Format {
    /// The name for people.
    pub fn name(self) -> &'static str {
        match self {
            Format::Onnx => "ONNX",
            Format::OpenvinoIr => "OpenVINO IR",
            Format::OnednnGraph => "oneDNN graph",
            Format::Layers => "layers",
        }
    }
}

/// A model. Local functions have been put in the place of their calls.
#[derive(Clone, Debug)]
pub struct Model {
    /// The kind of file.
    pub format: Format,
    /// Who wrote the file, where it says so.
    pub producer: Option<String>,
    /// The version of each operator set, by its domain.
    pub opsets: BTreeMap<String, i64>,
    /// What is computed.
    pub graph: Graph,
}

impl Model {
    /// Opens a model file. Its weights stay in the file until one of them is asked for.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        Self::parse(Source::open(path)?)
    }

    /// Reads a model. The file's name decides what it is read as; without a known ending, its first bytes do.
    pub fn parse(source: Source) -> Result<Self, FileError> {
        let ending = source.path().extension().map(|ending| ending.to_string_lossy().to_lowercase());
        match ending.as_deref() {
            Some("onnx") => onnx::read_model(source),
            Some("xml") => openvino::read_model(&source),
            Some("json") => onednn::read_json(&source),
            _ => {
                let head = source.read(0..source.length().min(64))?;
                match head.trim_ascii_start().first() {
                    Some(b'<') => openvino::read_model(&source),
                    Some(b'{' | b'[') => onednn::read_json(&source),
                    _ if head.is_ascii() && !head.iter().any(|&byte| is_control(byte)) => {
                        onednn::read_text(&source)
                    }
                    // Writers put the format's version first.
                    Some(&ONNX_BEGINNING) => onnx::read_model(source),
                    _ => {
                        let expected =
                            "an ONNX model, an OpenVINO IR (.xml), a oneDNN graph (.json) or lines of text";
                        Err(source.malformed("the file", expected, "none of these"))
                    }
                }
            }
        }
    }

    /// Every transposed convolution of the model, subgraphs included, in the order of the file.
    pub fn layers(&self) -> Vec<ModelLayer<'_>> {
        layers::layers(self)
    }
}

fn is_control(byte: u8) -> bool {
    byte.is_ascii_control() && !byte.is_ascii_whitespace()
}
