//! Case files: what is read from good ones, and that bad ones are refused with file, case and field.

use std::path::Path;

use outstride_io::conformance::{CaseFile, Expected};
use outstride_io::{Number, Storable};
use outstride_spec::{AttributeValue, DialectName, Policy};
use proptest::prelude::*;
use serde_json::{Value, json};

fn good() -> Value {
    json!({"format": 1, "dialect": "openvino", "cases": [{
        "id": "openvino-1", "dialect": "openvino", "op": "ConvolutionBackpropData", "version": 1,
        "attributes": {"strides": [2], "auto_pad": "valid", "left_out": null},
        "inputs": {
            "data": {"dtype": "f32", "shape": [1, 1, 2], "data": [1, 0.25]},
            "filter": {"dtype": "f32", "shape": [1, 1, 1], "b64": "AACAPw=="},
        },
        "expected": {"output": {"dtype": "f32", "shape": [1, 1, 3], "data": [1, 0, 0.25]}},
        "tolerance": {"abs": 0, "rel": 1e-6},
        "disagreement": {"peers": {"ov": {"error": "rejected"}}, "basis": "text", "runtime": "ov"},
        "tags": ["anything"], "produced_by": "hand",
    }]})
}

fn parse(document: &Value) -> Result<CaseFile, String> {
    CaseFile::parse(Path::new("cases.json"), document.to_string().as_bytes())
        .map_err(|error| error.to_string())
}

/// Sets the value at a JSON pointer; `None` removes it.
fn with(pointer: &str, value: Option<Value>) -> Value {
    let mut document = good();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let fields = document.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    match value {
        Some(value) => fields.insert(name.to_owned(), value),
        None => fields.remove(name),
    };
    document
}

#[test]
fn a_case_is_read_whole() {
    let file = parse(&good()).unwrap();
    assert_eq!(file.dialect, DialectName::Openvino);
    let case = &file.cases[0];
    assert_eq!((case.id.as_str(), case.op.as_str()), ("openvino-1", "ConvolutionBackpropData"));
    assert_eq!(case.version, Some(1));
    assert_eq!(case.attributes["strides"], AttributeValue::List(vec![AttributeValue::Int(2)]));
    assert!(!case.attributes.contains_key("left_out"));
    assert_eq!(f32::slice(case.tensors["data"].values()), Some([1.0, 0.25].as_slice()));
    assert_eq!(case.tensors["filter"].values().get(0), Some(Number::Float(1.0)));
    assert_eq!((case.tolerance.abs, case.tolerance.rel), (0.0, 1e-6));
    assert!(matches!(case.expected_under(Policy::Spec), Expected::Output(_)));
    assert!(matches!(case.expected_under(Policy::Runtime), Expected::Error { .. }));
}

#[test]
fn a_bad_field_is_named_with_its_file_and_case() {
    let first = "/cases/0";
    for (pointer, value, message) in [
        ("/format", Some(json!(2)), "cases.json: `format` must be 1, got 2"),
        ("/format", None, "cases.json: `format` must be present, got nothing"),
        (
            "/dialect",
            Some(json!("cobol")),
            "cases.json: `dialect` is wrong: `cobol` is not a dialect; use one of onnx",
        ),
        ("/cases", Some(json!({})), "cases.json: `cases` must be a list, got an object with 0 fields"),
        ("/id", None, "cases.json: case number 0: `id` must be present"),
        (
            "/dialect",
            Some(json!("onnx")),
            "`dialect` must be `openvino`, the dialect of the file, got \"onnx\"",
        ),
        ("/op", Some(json!(1)), "case openvino-1: `op` must be a string, got 1"),
        ("/version", Some(json!(1.5)), "case openvino-1: `version` must be a 64-bit integer, got 1.5"),
        ("/attributes", Some(json!([])), "case openvino-1: `attributes` must be an object, got []"),
        (
            "/attributes/strides",
            Some(json!({})),
            "`attributes.strides` must be a number, string, boolean or list",
        ),
        (
            "/inputs/data/shape",
            Some(json!([9])),
            "`inputs.data.data` must be 9 values for shape [9], got 2 values",
        ),
        (
            "/inputs/data/data",
            Some(json!([1, "x"])),
            "`inputs.data.data[1]` must be a value of type f32, got \"x\"",
        ),
        ("/inputs/filter/b64", Some(json!("!")), "case openvino-1: `inputs.filter.b64` must be base64, got"),
        ("/expected", Some(json!({})), "`expected` must be an object with either `output` or `error`"),
        ("/tolerance/rel", Some(json!(-1)), "`tolerance.rel` must be a number of at least 0, got -1"),
        (
            "/disagreement/runtime",
            Some(json!("no")),
            "`disagreement.runtime` must be one of the implementations",
        ),
    ] {
        let in_case = !(message.starts_with("cases.json: `"));
        let pointer = if in_case { format!("{first}{pointer}") } else { pointer.to_owned() };
        let error = parse(&with(&pointer, value)).unwrap_err();
        assert!(error.starts_with("cases.json: ") && error.contains(message), "{pointer}: {error}");
    }
}

#[test]
fn inputs_are_found_by_role_and_strangers_refused() {
    let file = parse(&good()).unwrap();
    let inputs = file.cases[0].inputs().unwrap();
    assert_eq!((inputs.input.shape(), inputs.filter.shape()), ([1, 1, 2].as_slice(), [1, 1, 1].as_slice()));
    assert!(inputs.bias.is_none() && inputs.output_shape.is_none());
    let tensor = json!({"dtype": "f32", "shape": [0], "data": []});
    for (name, value, message) in [
        ("bias", Some(tensor), "openvino takes no input `bias`; it takes data, filter, output_shape"),
        ("filter", None, "the input `filter` is missing; openvino requires it"),
    ] {
        let file = parse(&with(&format!("/cases/0/inputs/{name}"), value)).unwrap();
        assert_eq!(file.cases[0].inputs().unwrap_err().to_string(), message);
    }
}

#[test]
fn what_is_not_json_is_refused_with_line_and_column() {
    let error = CaseFile::parse(Path::new("cases.json"), b"{\n nan").unwrap_err().to_string();
    assert!(error.starts_with("cases.json is not JSON: ") && error.contains("line 2"), "{error}");
    let deep = "[".repeat(100_000);
    assert!(CaseFile::parse(Path::new("deep.json"), deep.as_bytes()).is_err());
}

#[test]
fn a_missing_file_is_named() {
    let error = CaseFile::read(Path::new("no/such.json")).unwrap_err().to_string();
    assert!(error.starts_with("cannot read no/such.json: "), "{error}");
}

proptest! {
    #[test]
    fn no_mutilation_of_a_good_file_panics(position in 0usize..800, byte: u8, cut: bool) {
        let mut text = good().to_string().into_bytes();
        let position = position % text.len();
        if cut {
            text.truncate(position);
        } else {
            text[position] = byte;
        }
        let _ = CaseFile::parse(Path::new("cases.json"), &text);
    }
}
