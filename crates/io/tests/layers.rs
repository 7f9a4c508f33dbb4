//! Layers files and problem strings: what they mean, and what is said of those that mean nothing.

use std::path::Path;

use outstride_io::layers::{Layer, LayerError};
use proptest::prelude::*;

fn parse(text: &str) -> Result<Vec<Layer>, LayerError> {
    Layer::parse_file(Path::new("layers.json"), text.as_bytes())
}

fn message<T: std::fmt::Debug>(result: Result<T, LayerError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn the_layers_of_benches_are_layers_with_names_of_their_own() {
    let benches = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches");
    let files = ["layers.json", "further-layers.json"];
    let layers = files.map(|file| Layer::read_file(&benches.join(file)).unwrap()).concat();
    let names: std::collections::BTreeSet<&str> = layers.iter().map(|layer| layer.id.as_str()).collect();
    assert_eq!(names.len(), layers.len());
}

#[test]
fn a_file_needs_no_more_than_the_shapes() {
    let text = r#"[{"id": "up", "d": 2, "n": 1, "cin": 8, "cout": 4, "in": [5, 6], "k": [3, 4], "s": [2, 1], "p": [1, 0]}]"#;
    let layers = parse(text).unwrap();
    let expected = Layer {
        id: "up".into(),
        batch: 1,
        in_channels: 8,
        out_channels: 4,
        groups: 1,
        input: vec![5, 6],
        kernel: vec![3, 4],
        strides: vec![2, 1],
        dilations: vec![1, 1],
        pads_begin: vec![1, 0],
        pads_end: vec![1, 0],
        output_padding: vec![0, 0],
        skip: vec![],
    };
    assert_eq!(layers, [expected]);
}

#[test]
fn a_file_may_say_everything() {
    let text = r#"[{"id": "all", "d": 1, "n": 2, "cin": 8, "cout": 4, "in": [5], "k": [3], "s": [2], "p": [1],
        "pe": [0], "op": [1], "dil": [3], "g": 4, "skip": ["torch"], "remark": "for people"}]"#;
    let layer = &parse(text).unwrap()[0];
    assert_eq!((layer.groups, &*layer.pads_end, &*layer.output_padding), (4, &[0][..], &[1][..]));
    assert_eq!((&*layer.dilations, &*layer.skip), (&[3][..], &["torch".to_owned()][..]));
    assert_eq!(layer.filter_shape(), [8, 1, 3]);
    assert_eq!(layer.channels_last_input_shape(), [2, 5, 8]);
}

#[test]
fn errors_of_a_file_name_the_layer_and_the_field() {
    let with = |from: &str, to: &str| {
        let good = r#"[{"id": "a", "d": 1, "n": 1, "cin": 8, "cout": 4, "in": [5], "k": [3], "s": [2], "p": [1], "g": 2}]"#;
        assert!(good.contains(from));
        message(parse(&good.replace(from, to)))
    };
    for (from, to, expected) in [
        (r#""in": [5], "#, "", "layers.json: layer a: `in` must be present, got nothing"),
        ("[5]", "[5, 5]", "layers.json: layer a: `in` must be a list of 1, one per axis, got [5,5]"),
        ("[5]", "[-5]", "layers.json: layer a: `in[0]` must be at least 0, got -5"),
        ("[3]", "[0.5]", "layers.json: layer a: `k[0]` must be a 64-bit integer, got 0.5"),
        (r#""d": 1"#, r#""d": 0"#, "layers.json: layer a: `d` must be at least 1, got 0"),
        (r#""g": 2"#, r#""g": 3"#, "layers.json: layer a: `g` must be a divisor of `cin`, which is 8, got 3"),
        (r#""g": 2"#, r#""g": 0"#, "layers.json: layer a: `g` must be a divisor of `cin`, which is 8, got 0"),
        (r#""id": "a", "#, "", "layers.json: layer number 0: `id` must be present, got nothing"),
    ] {
        assert_eq!(with(from, to), expected);
    }
    assert_eq!(message(parse("{}")), "layers.json: the file must be a list, got an object with 0 fields");
    assert!(message(parse("[")).starts_with("layers.json is not JSON: "));
    let missing = message(Layer::read_file(Path::new("no-such-file.json")));
    assert!(missing.starts_with("cannot read no-such-file.json: "), "{missing}");
    let twice =
        r#"{"id": "a", "d": 1, "n": 1, "cin": 1, "cout": 1, "in": [5], "k": [3], "s": [2], "p": [1]}"#;
    let error = message(parse(&format!("[{twice}, {twice}]")));
    assert_eq!(error, "layers.json: layer a: `id` must be unique, got it twice");
}

#[test]
fn a_problem_string_is_what_onednn_makes_of_it() {
    let square: Layer = "mb1_ic16oc8_ih8oh16kh4sh2ph1".parse().unwrap();
    assert_eq!(square.id, "mb1_ic16oc8_ih8oh16kh4sh2ph1");
    assert_eq!((square.input, square.kernel, square.strides), (vec![8, 8], vec![4, 4], vec![2, 2]));
    assert_eq!((square.pads_end, square.output_padding), (vec![1, 1], vec![0, 0]));

    let row: Layer = "g2ic16oc8iw8kw4sw2dw1nrow".parse().unwrap();
    assert_eq!((&*row.id, row.batch, row.groups), ("row", 2, 2));
    assert_eq!((row.input, row.dilations, row.pads_end), (vec![8], vec![2], vec![0]));

    let cube: Layer = r#"mb1ic4oc4id8kd2sd2n"a cube""#.parse().unwrap();
    assert_eq!((&*cube.id, cube.input), ("a cube", vec![8, 8, 8]));

    let oblong: Layer = "mb1_ic4oc4_ih5kh3sh2ph1_iw9kw2".parse().unwrap();
    assert_eq!((oblong.input, oblong.strides), (vec![5, 9], vec![2, 1]));
    assert_eq!((oblong.pads_begin, oblong.pads_end), (vec![1, 0], vec![1, 0]));
}

#[test]
fn an_output_size_decides_the_end() {
    let end = |text: &str| {
        let layer: Layer = text.parse().unwrap();
        (layer.pads_begin[0], layer.pads_end[0], layer.output_padding[0])
    };
    // (8 − 1)·2 + 3 = 17 in full.
    assert_eq!(end("ic1oc1iw8kw3sw2"), (0, 0, 0));
    assert_eq!(end("ic1oc1iw8kw3sw2pw1"), (1, 1, 0));
    assert_eq!(end("ic1oc1iw8kw3sw2ow16pw1"), (1, 0, 0));
    assert_eq!(end("ic1oc1iw8kw3sw2ow16pw2"), (2, 0, 1));
    assert_eq!(end("ic1oc1iw8kw3sw2ow14"), (1, 2, 0));
    assert_eq!(end("ic1oc1iw8kw3sw2ow18"), (0, 0, 1));
}

#[test]
fn errors_of_a_problem_string_name_the_field() {
    for (text, problem) in [
        ("ic16oc8", "`iw` is missing; give ih for a square, id for a cube, iw for one axis"),
        ("ic16_ih8kh4", "`oc` is missing"),
        ("ic16oc8_ih8", "`kh` is missing"),
        ("ic16oc8_id8kd4_ih8kh4", "`iw` and `kw` are missing: there are values for d and h only"),
        ("ic16oc8_id8kd4_iw8kw4", "`ih` and `kh` are missing: there are values for d and w only"),
        ("ic16oc8_ih0kh4", "`ih` must be at least 1, got 0"),
        ("ic16oc8_ih8kh4kh5", "`kh` is given twice"),
        ("ic16oc8_ihxkh4", "`ihxkh` is no field"),
        ("ic16oc8_ih_kh4", "`ih` must be followed by a number"),
        ("ic16oc8_ih99999999999999999999kh4", "`ih` must be at most 1099511627776"),
        ("g3ic16oc8_ih8kh4", "`g` must be a divisor of `ic`, which is 16, got 3"),
        ("ic16oc8_ih8kh4n", "`n` must be followed by a name"),
        ("-3", "`-3` is no field"),
    ] {
        let error = message(text.parse::<Layer>());
        let expected = format!("problem string `{text}`: {problem}");
        assert!(error.starts_with(&expected), "{error}\n{expected}");
    }
}

proptest! {
    #[test]
    fn no_text_panics(text in "\\PC*", fields in "((g|mb|[io]c|[ioksp][dhw]|d[dhw]|n)[0-9]{0,13}_?){0,12}") {
        let _ = text.parse::<Layer>();
        let _ = fields.parse::<Layer>();
        let _ = parse(&text);
    }
}
