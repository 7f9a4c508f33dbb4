//! ONNX's published node tests of ConvTranspose, run by the command on their files as they are.

use std::path::{Path, PathBuf};
use std::process::Command;

use outstride_io::{AnyTensor, TensorFile};

/// Weights of the published tests are mostly ones, sums of them exact; those from PyTorch are not.
const TOLERANCE: f64 = 1e-5;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/onnx-node-tests")
}

fn tensor(path: &Path) -> AnyTensor {
    TensorFile::open(path).unwrap().tensor("").unwrap().load().unwrap()
}

fn inputs(data: &Path) -> Vec<PathBuf> {
    (0..).map(|index| data.join(format!("input_{index}.pb"))).take_while(|path| path.exists()).collect()
}

fn check(test: &Path, isa: &str) {
    let data = test.join("test_data_set_0");
    let output = std::env::temp_dir().join(format!(
        "outstride-{}-{isa}-{}.npy",
        std::process::id(),
        test.file_name().unwrap().to_string_lossy()
    ));
    let mut command = Command::new(env!("CARGO_BIN_EXE_outstride"));
    command.env("OUTSTRIDE_ISA", isa).arg("run").arg(test.join("model.onnx"));
    for input in inputs(&data) {
        command.arg("--input").arg(input);
    }
    let ran = command.arg("--output").arg(&output).output().unwrap();
    assert!(ran.status.success(), "{}: {}", test.display(), String::from_utf8_lossy(&ran.stderr));
    let (expected, got) = (tensor(&data.join("output_0.pb")), tensor(&output));
    std::fs::remove_file(&output).unwrap();
    assert_eq!(got.tensor_type(), expected.tensor_type(), "{}", test.display());
    for index in 0..expected.values().len() {
        let value = |tensor: &AnyTensor| f64::from(tensor.values().get(index).unwrap());
        let (expected, got) = (value(&expected), value(&got));
        let close = (expected - got).abs() <= TOLERANCE * expected.abs().max(1.0);
        assert!(close, "{}: element {index}: expected {expected}, got {got}", test.display());
    }
}

fn check_all(isa: &str) {
    let mut tests: Vec<PathBuf> = folder().read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    tests.retain(|path| path.is_dir());
    assert!(tests.len() >= 12, "only {} tests in {}", tests.len(), folder().display());
    tests.sort();
    for test in tests {
        check(&test, isa);
    }
}

#[test]
fn published_node_tests_pass() {
    check_all("avx512");
}

#[test]
fn published_node_tests_pass_without_vector_instructions() {
    check_all("portable");
}
