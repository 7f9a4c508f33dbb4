//! The parsers of files: whatever the bytes, a value or an error, never a panic, and what was read can be used.

use std::path::Path;

use outstride_io::conformance::CaseFile;
use outstride_io::layers::Layer;
use outstride_io::model::{Attribute, Graph};
use outstride_io::{FileError, Model, Source, TensorFile, TensorSource};

/// Tensors that claim to be larger than this would only be slow to load.
const MOST_ELEMENTS: usize = 1 << 16;

fn source(name: &str, bytes: &[u8]) -> Source {
    Source::memory(Path::new(name), bytes.to_vec())
}

fn check_error(error: &FileError) {
    let message = error.to_string();
    assert!(message.contains("fuzz"), "an error that does not name its file: {message}");
}

fn check_tensor(tensor: &TensorSource) {
    let elements = tensor.shape().iter().try_fold(1usize, |count, &size| count.checked_mul(size));
    // Files beside the model are none of the fuzzer's.
    if tensor.external_file().is_some() || elements.is_none_or(|elements| elements > MOST_ELEMENTS) {
        return;
    }
    match tensor.load() {
        Ok(values) => {
            assert_eq!(values.shape(), tensor.shape());
            assert_eq!(Some(values.values().dtype()), tensor.dtype());
            assert_eq!(Some(values.values().len()), elements);
        }
        Err(error) => check_error(&error),
    }
}

fn check_graph(graph: &Graph) {
    graph.constants.values().for_each(check_tensor);
    for node in &graph.nodes {
        for attribute in node.attributes.values() {
            match attribute {
                Attribute::Tensor(tensor) => check_tensor(tensor),
                Attribute::Graphs(graphs) => graphs.iter().for_each(check_graph),
                _ => {}
            }
        }
    }
}

fn model(name: &str, bytes: &[u8]) {
    match Model::parse(source(name, bytes)) {
        Ok(model) => {
            check_graph(&model.graph);
            let layers = model.layers();
            for (index, layer) in layers.iter().enumerate() {
                let _ = layer.request().read(layer.dialect);
                assert!(
                    layers[..index].iter().all(|other| other.name != layer.name),
                    "two layers of one name"
                );
            }
        }
        Err(error) => check_error(&error),
    }
}

fn tensors(name: &str, bytes: &[u8]) {
    match TensorFile::parse(source(name, bytes)) {
        Ok(file) => {
            for name in file.names() {
                check_tensor(file.tensor(name).expect("a name that the file itself gave"));
            }
        }
        Err(error) => check_error(&error),
    }
}

/// ONNX models.
pub fn onnx_model(bytes: &[u8]) {
    model("fuzz.onnx", bytes);
}

/// OpenVINO IR.
pub fn openvino_ir(bytes: &[u8]) {
    model("fuzz.xml", bytes);
}

/// oneDNN graphs.
pub fn onednn_json(bytes: &[u8]) {
    model("fuzz.json", bytes);
}

/// Lines of oneDNN's log, and problem strings.
pub fn onednn_log(bytes: &[u8]) {
    model("fuzz.txt", bytes);
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(layer) = text.parse::<Layer>()
    {
        check_layer(&layer);
    }
}

/// TensorProto files.
pub fn tensor_proto(bytes: &[u8]) {
    tensors("fuzz.pb", bytes);
}

/// npy files, and npz archives of them.
pub fn numpy(bytes: &[u8]) {
    tensors("fuzz.npy", bytes);
}

/// safetensors files.
pub fn safetensors(bytes: &[u8]) {
    tensors("fuzz.safetensors", bytes);
}

/// Conformance case files.
pub fn conformance(bytes: &[u8]) {
    match CaseFile::parse(Path::new("fuzz.json"), bytes) {
        Ok(file) => {
            for case in &file.cases {
                assert_eq!(case.dialect, file.dialect);
                let _ = case.inputs();
            }
        }
        Err(error) => assert!(error.to_string().contains("fuzz.json"), "{error}"),
    }
}

/// Layers files.
pub fn layers(bytes: &[u8]) {
    match Layer::parse_file(Path::new("fuzz.json"), bytes) {
        Ok(layers) => layers.iter().for_each(check_layer),
        Err(error) => assert!(error.to_string().contains("fuzz.json"), "{error}"),
    }
}

fn check_layer(layer: &Layer) {
    assert!(layer.groups > 0);
    assert_eq!((layer.in_channels % layer.groups, layer.out_channels % layer.groups), (0, 0));
    assert_eq!(layer.filter_shape().len(), layer.input_shape().len());
    for list in [&layer.strides, &layer.dilations, &layer.pads_begin, &layer.pads_end, &layer.output_padding]
    {
        assert_eq!(list.len(), layer.kernel.len());
    }
}
