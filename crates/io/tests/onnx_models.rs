//! ONNX models: what is found in them, and what is said of those that are broken.

mod proto;

use std::path::{Path, PathBuf};

use outstride_io::model::{Attribute, Dim};
use outstride_io::{Model, Source};
use outstride_spec::{DType, DialectName};
use proto::{Message, ints, model, node, tensor};

fn parse(message: Message) -> Result<Model, String> {
    Model::parse(Source::memory(Path::new("m.onnx"), message.0)).map_err(|error| error.to_string())
}

fn value(field: u64, name: &str, dims: &[&str]) -> Message {
    let dims = dims.iter().fold(Message::default(), |shape, dim| {
        shape.message(
            1,
            match dim.parse() {
                Ok(size) => Message::default().int(1, size),
                Err(_) => Message::default().bytes(2, dim),
            },
        )
    });
    let tensor = Message::default().int(1, 10).message(2, dims);
    let info = Message::default().bytes(1, name).message(2, Message::default().message(1, tensor));
    Message::default().message(field, info)
}

fn joined(parts: &[Message]) -> Message {
    Message(parts.iter().flat_map(|part| part.0.clone()).collect())
}

#[test]
fn types_and_symbols_of_values_are_kept() {
    let graph = joined(&[
        value(11, "x", &["batch", "3", ""]),
        value(12, "y", &["1"]),
        Message::default().message(1, node("ConvTranspose", "", &["x", "w"], &["y"])),
        Message::default().message(5, tensor("w", &[3, 2, 4])),
    ]);
    let model = parse(model(graph)).unwrap();
    let x = &model.graph.types["x"];
    assert_eq!(x.dtype, Some(DType::F16));
    assert_eq!(x.shape, Some(vec![Dim::Symbol("batch".into()), Dim::Known(3), Dim::Unknown]));
    assert_eq!(model.graph.inputs, ["x"]);
    let layers = model.layers();
    assert_eq!((layers[0].name.as_str(), layers[0].version), ("y", Some(17)));
    assert_eq!(layers[0].scope.constant("w").unwrap().shape(), [3, 2, 4]);
    assert_eq!(model.producer.as_deref(), Some("hand"));
}

#[test]
fn layers_in_subgraphs_see_the_values_around_them() {
    let inner = Message::default().message(1, node("ConvTranspose", "up", &["x", "w"], &["z"]));
    let branch = Message::default().bytes(1, "then_branch").message(6, inner).int(20, 5);
    let outer = joined(&[
        Message::default().message(1, Message(node("If", "choose", &["c"], &["y"]).0).message(5, branch)),
        Message::default().message(5, tensor("w", &[1, 1, 3])),
    ]);
    let model = parse(model(outer)).unwrap();
    let layers = model.layers();
    assert_eq!(layers.len(), 1);
    assert_eq!(layers[0].name, "choose/then_branch/up");
    assert!(layers[0].scope.constant("w").is_some());
}

fn function(name: &str, nodes: &[Message]) -> Message {
    let head = Message::default().bytes(1, name).bytes(4, "a").bytes(4, "b").bytes(5, "r").bytes(10, "local");
    nodes.iter().fold(head, |message, node| message.clone().message(7, node.clone()))
}

fn call(function: &str, name: &str, output: &str) -> Message {
    node(function, name, &["x", "w"], &[output]).bytes(7, "local")
}

#[test]
fn functions_take_the_place_of_their_calls_with_their_attributes() {
    let reference = Message::default().bytes(1, "strides").bytes(21, "step").int(20, 7);
    let absent = Message::default().bytes(1, "pads").bytes(21, "missing").int(20, 7);
    let inner = node("ConvTranspose", "up", &["a", "b"], &["t"]).message(5, reference).message(5, absent);
    let body = [inner, node("Relu", "", &["t"], &["r"])];
    let graph = joined(&[
        Message::default().message(1, call("Block", "one", "y").message(5, ints("step", &[2]))),
        Message::default().message(1, call("Block", "two", "z").message(5, ints("step", &[3]))),
    ]);
    let model = parse(model(graph).message(25, function("Block", &body))).unwrap();
    let layers = model.layers();
    assert_eq!(layers.iter().map(|layer| layer.name.as_str()).collect::<Vec<_>>(), ["one/up", "two/up"]);
    assert_eq!(layers[0].node.inputs, ["x", "w"]);
    assert_eq!(layers[0].node.outputs, ["one/t"]);
    assert!(!layers[0].node.attributes.contains_key("pads"));
    for (layer, stride) in layers.iter().zip([2, 3]) {
        assert!(matches!(&layer.node.attributes["strides"], Attribute::Ints(list) if *list == [stride]));
    }
    assert_eq!(model.graph.nodes[1].outputs, ["y"]);
}

#[test]
fn functions_that_call_themselves_or_grow_without_end_are_refused() {
    let endless = function("Block", &[call("Block", "again", "r")]);
    let graph = Message::default().message(1, call("Block", "one", "y"));
    let error = parse(model(graph).message(25, endless)).unwrap_err();
    assert!(error.contains("function `Block` must be called at most 32 deep"), "{error}");

    // Thirty functions, each of which calls the next one eight times.
    let mut bomb = model(Message::default().message(1, call("F0", "one", "y")));
    for level in 0..30 {
        let calls: Vec<Message> =
            (0..8).map(|n| call(&format!("F{}", level + 1), &format!("c{n}"), "r")).collect();
        bomb = bomb.message(25, function(&format!("F{level}"), &calls));
    }
    let error = parse(bomb).unwrap_err();
    assert!(error.contains("bytes come of all calls"), "{error}");
}

#[test]
fn bytes_in_the_place_of_texts_hinder_nobody() {
    let cache = Message::default().bytes(1, "cache").bytes(4, vec![0xff; 2 << 20]).int(20, 3);
    let graph = joined(&[
        Message::default().message(1, node("EPContext", "cached", &[], &["v"]).message(5, cache)),
        Message::default().message(1, node("ConvTranspose", "up", &["x", "w"], &["y"])),
    ]);
    let model = parse(model(graph)).unwrap();
    assert!(matches!(model.graph.nodes[0].attributes["cache"], Attribute::Other(_)));
    assert_eq!(model.layers().len(), 1);
}

#[test]
fn the_channels_last_domain_is_its_own_dialect() {
    let node = node("ConvTranspose", "up", &["x", "w"], &["y"]).bytes(7, "com.ms.internal.nhwc");
    let opset = Message::default().bytes(1, "com.ms.internal.nhwc").int(2, 11);
    let model = parse(model(Message::default().message(1, node)).message(8, opset)).unwrap();
    assert_eq!(model.layers()[0].dialect, DialectName::OrtNhwc);
    assert_eq!(model.layers()[0].version, Some(11));
}

#[test]
fn broken_files_are_refused_with_the_place() {
    let whole = model(joined(&[
        Message::default().message(1, node("ConvTranspose", "up", &["x", "w"], &["y"])),
        Message::default().message(5, tensor("w", &[1, 1, 3])),
    ]));
    for cut in 1..whole.0.len() {
        // Some cuts leave a shorter model, but none may panic.
        let _ = parse(Message(whole.0[..cut].to_vec()));
    }
    for (message, expected) in [
        (Message::default(), "m.onnx: the file must be an ONNX model with a graph, got none"),
        (
            Message::default().int(7, 1),
            "m.onnx: a field must be a nested message or bytes, got the integer 1",
        ),
        (
            model(Message::default().message(5, Message::default().int(1, -2).bytes(8, "w"))),
            "m.onnx: tensor `w`: dims[0] must be at least 0, got -2",
        ),
        (
            Message(vec![0x3a, 0xff, 0xff, 0xff, 0x7f]),
            "m.onnx: byte 1 must be a field of at most the 0 bytes that are left, got one of 268435455 bytes",
        ),
        (
            Message::default().bytes(7, [0x0a, 2, 0x22, 1]),
            "m.onnx: byte 5 must be a field of at most the 0 bytes",
        ),
    ] {
        let error = parse(message).unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    }
    let deep = (0..40).fold(Message::default(), |graph, _| {
        let attribute = Message::default().bytes(1, "body").message(6, graph).int(20, 5);
        Message::default().message(1, node("Loop", "", &[], &["y"]).message(5, attribute))
    });
    let error = parse(model(deep)).unwrap_err();
    assert!(error.contains("must be at most 32 deep in others"), "{error}");
}

#[test]
fn values_that_do_not_fit_their_shape_are_refused_when_they_are_read() {
    let short = Message::default().int(1, 1 << 40).int(2, 1).bytes(8, "w").bytes(9, [0; 8]);
    let list = Message::default().int(1, 3).int(2, 3).bytes(8, "v").int(5, 1).int(5, 300).int(5, 3);
    let text = Message::default().int(1, 1).int(2, 8).bytes(8, "s");
    let graph =
        [short, list, text].into_iter().fold(Message::default(), |graph, tensor| graph.message(5, tensor));
    let model = parse(model(graph)).unwrap();
    for (name, expected) in [
        ("w", "m.onnx: tensor `w` must be raw_data for f32 of shape [1099511627776], got 8 bytes"),
        ("v", "m.onnx: tensor `v` must be values that i8 can hold"),
        ("s", "m.onnx: the element type string of tensor `s` is not supported"),
    ] {
        let error = model.graph.constants[name].load().unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn typed_values_of_every_type_are_read() {
    let f16 = Message::default().int(1, 2).int(2, 10).bytes(8, "h").bytes(5, [0x80, 0x78, 0x80, 0x80, 0x02]);
    let graph = Message::default().message(5, f16);
    let model = parse(model(graph)).unwrap();
    let values = model.graph.constants["h"].load().unwrap();
    assert_eq!(values.values().dtype(), DType::F16);
    assert_eq!(values.values().get(0).map(f64::from), Some(1.0));
    assert_eq!(values.values().get(1).map(f64::from), Some(-0.0));
}

fn external(location: &str, offset: &str, length: &str) -> Message {
    let entry = |key: &str, value: &str| Message::default().bytes(1, key).bytes(2, value);
    Message::default()
        .int(1, 2)
        .int(2, 1)
        .bytes(8, "w")
        .message(13, entry("location", location))
        .message(13, entry("offset", offset))
        .message(13, entry("length", length))
        .int(14, 1)
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("outstride-io-{}-{name}", std::process::id()));
    std::fs::create_dir_all(folder.join("inside")).unwrap();
    folder
}

#[test]
fn external_data_is_read_from_the_models_folder_only() {
    let folder = folder("external");
    let path = folder.join("inside/m.onnx");
    std::fs::write(folder.join("inside/w.bin"), [0, 0, 0, 0, 0, 0, 128, 63, 0, 0, 0, 64]).unwrap();
    std::fs::write(folder.join("secret.bin"), [0; 64]).unwrap();
    let load = |location: &str, offset: &str, length: &str| {
        let graph = Message::default().message(5, external(location, offset, length));
        std::fs::write(&path, model(graph).0).unwrap();
        let model = Model::open(&path).map_err(|error| error.to_string())?;
        model.graph.constants["w"].load().map_err(|error| error.to_string())
    };
    let values = load("w.bin", "4", "8").unwrap();
    assert_eq!(values.values().get(1).map(f64::from), Some(2.0));
    assert!(load("./w.bin", "4", "8").is_ok());
    for (location, offset, length, expected) in [
        ("../secret.bin", "0", "8", "leads elsewhere"),
        ("/etc/hostname", "0", "8", "leads elsewhere"),
        ("", "0", "8", "leads elsewhere"),
        (
            "none.bin",
            "0",
            "8",
            "must be a file in the model's folder or below it, got `none.bin`, No such file",
        ),
        ("w.bin", "8", "8", "must be within the 12 bytes of the file"),
        ("w.bin", "18446744073709551615", "8", "must be within the 12 bytes of the file"),
        ("w.bin", "0", "4", "f32 of shape [2] in as many bytes, got 4 bytes"),
        ("w.bin", "x", "8", "external_data.offset must be a number of bytes, got `x`"),
    ] {
        let error = load(location, offset, length).unwrap_err();
        assert!(error.contains(expected), "{location}: {error}");
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("../secret.bin", folder.join("inside/link.bin")).unwrap();
        let error = load("link.bin", "0", "8").unwrap_err();
        assert!(error.contains("a link that leads elsewhere; copy the file here"), "{error}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn gigabytes_of_external_data_cost_nothing_until_they_are_asked_for() {
    let folder = folder("large");
    let path = folder.join("m.onnx");
    let data = std::fs::File::create(folder.join("w.bin")).unwrap();
    data.set_len(2 << 30).unwrap();
    let entry = |key: &str, value: &str| Message::default().bytes(1, key).bytes(2, value);
    let tensor = Message::default()
        .int(1, 1 << 29)
        .int(2, 1)
        .bytes(8, "w")
        .message(13, entry("location", "w.bin"))
        .int(14, 1);
    let graph =
        Message::default().message(1, node("ConvTranspose", "up", &["x", "w"], &["y"])).message(5, tensor);
    std::fs::write(&path, model(graph).0).unwrap();
    let begin = std::time::Instant::now();
    let model = Model::open(&path).unwrap();
    assert_eq!(model.layers()[0].scope.constant("w").unwrap().shape(), [1 << 29]);
    assert!(begin.elapsed().as_secs_f64() < 0.5);
    std::fs::remove_dir_all(folder).unwrap();
}
