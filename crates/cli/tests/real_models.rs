//! Models as exporters write them, with what the frameworks computed: every transposed convolution is found, understood,
//! and gives the framework's values.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn outstride(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_outstride")).args(arguments).output().unwrap()
}

/// The models that one exporter wrote.
fn models(exporter: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models").join(exporter);
    let mut models: Vec<PathBuf> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    models.sort();
    models
}

fn file(model: &Path) -> PathBuf {
    ["model.onnx", "model.xml"].map(|name| model.join(name)).into_iter().find(|path| path.exists()).unwrap()
}

fn layers(path: &str) -> Vec<Value> {
    let output = outstride(&["inspect", path, "--json"]);
    assert_eq!(output.status.code(), Some(0), "{path}: {}", String::from_utf8_lossy(&output.stdout));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    report["layers"].as_array().unwrap().clone()
}

fn check(exporter: &str, expected_models: usize) {
    let models = models(exporter);
    assert_eq!(models.len(), expected_models, "{exporter}");
    for model in models {
        let path = file(&model);
        let path = path.to_str().unwrap();
        let layers = layers(path);
        assert_eq!(layers.len(), if model.to_string_lossy().contains("dcgan") { 4 } else { 3 }, "{path}");
        let (inputs, outputs) = (model.join("inputs.npz"), model.join("outputs.npz"));
        for layer in layers {
            let name = layer["name"].as_str().unwrap();
            let arguments = ["verify", path, "--node", name, "--input", inputs.to_str().unwrap()];
            let output = outstride(&[&arguments[..], &["--expect", outputs.to_str().unwrap()]].concat());
            let text = String::from_utf8_lossy(&output.stdout);
            assert_eq!(output.status.code(), Some(0), "{path} {name}: {text}");
            assert!(text.contains("the expected output agrees"), "{path} {name}: {text}");
        }
    }
}

#[test]
fn what_torch_exports_is_understood() {
    check("torch", 6);
}

#[test]
fn what_tf2onnx_writes_is_understood() {
    check("tensorflow", 3);
}

#[test]
fn what_openvino_converts_is_understood() {
    check("openvino", 3);
}
