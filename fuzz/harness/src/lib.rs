//! The bodies of the fuzz targets: bytes in, a panic where the library breaks a promise.
//!
//! A `resolve` target decodes a valid `problem`, spells it in its dialect, spoils it a little or a lot, and holds what
//! the library makes of it against the dialect's tables, written down a second time in `tables`. The target
//! `reference` holds the reference engine against the operator written the other way round.
//!
//! The targets of `files` read whatever the fuzzer writes as models, tensors, cases and layers.
//!
//! They live apart from the fuzz targets so that plain `cargo test` replays the committed corpus.

mod bytes;
mod files;
mod problem;
mod reference;
mod resolve;
mod spelling;
mod spoil;
mod support;
mod tables;

use outstride::DialectName;

pub use files::{
    conformance, layers, numpy, onednn_json, onednn_log, onnx_model, openvino_ir, safetensors, tensor_proto,
};
pub use reference::reference;

/// A fuzz target: its name and what it does with the fuzzer's bytes.
pub type Target = (&'static str, fn(&[u8]));

/// Every fuzz target.
pub const TARGETS: [Target; 18] = [
    ("onnx", onnx),
    ("ort_nhwc", ort_nhwc),
    ("onednn_graph", onednn_graph),
    ("openvino", openvino),
    ("openvino_group", openvino_group),
    ("torch", torch),
    ("tensorflow", tensorflow),
    ("jax", jax),
    ("reference", reference),
    ("onnx_model", onnx_model),
    ("openvino_ir", openvino_ir),
    ("onednn_json", onednn_json),
    ("onednn_log", onednn_log),
    ("tensor_proto", tensor_proto),
    ("numpy", numpy),
    ("safetensors", safetensors),
    ("conformance", conformance),
    ("layers", layers),
];

macro_rules! resolve_targets {
    ($($target:ident: $dialect:ident;)*) => {$(
        #[doc = concat!("Resolving calls of `", stringify!($target), "`.")]
        pub fn $target(bytes: &[u8]) {
            resolve::resolve(DialectName::$dialect, bytes);
        }
    )*};
}

resolve_targets! {
    onnx: Onnx;
    ort_nhwc: OrtNhwc;
    onednn_graph: OnednnGraph;
    openvino: Openvino;
    openvino_group: OpenvinoGroup;
    torch: Torch;
    tensorflow: Tensorflow;
    jax: Jax;
}
