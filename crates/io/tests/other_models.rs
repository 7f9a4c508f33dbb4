//! OpenVINO IR and oneDNN's files.

use std::path::Path;

use outstride_io::model::{Attribute, Dim, Format};
use outstride_io::{Model, Source};
use outstride_spec::{DType, DialectName};

fn parse(name: &str, text: &str) -> Result<Model, String> {
    Model::parse(Source::memory(Path::new(name), text.as_bytes().to_vec())).map_err(|error| error.to_string())
}

const IR: &str = r#"<net name="n" version="11"><layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data shape="?,4,8" element_type="f16"/>
  <output><port id="0" precision="FP16"><dim>-1</dim><dim>4</dim><dim>8</dim></port></output></layer>
<layer id="1" name="w" type="Parameter" version="opset1"><data shape="4,2,3" element_type="f16"/>
  <output><port id="0" precision="FP16"><dim>4</dim><dim>2</dim><dim>3</dim></port></output></layer>
<layer id="2" name="up" type="ConvolutionBackpropData" version="opset1">
  <data strides="2" dilations="1" pads_begin="1" pads_end="0" auto_pad="explicit" output_padding=""/>
  <input><port id="0"/><port id="1"/></input>
  <output><port id="2" precision="FP16"><dim>-1</dim><dim>2</dim><dim>16</dim></port></output></layer>
<layer id="3" name="up" type="Result" version="opset1"><input><port id="0"/></input></layer>
</layers><edges>
<edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>
<edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>
<edge from-layer="2" from-port="2" to-layer="3" to-port="0"/>
</edges></net>"#;

#[test]
fn an_ir_becomes_a_graph() {
    let model = parse("m.xml", IR).unwrap();
    assert_eq!(model.format, Format::OpenvinoIr);
    assert_eq!(
        (model.graph.inputs.as_slice(), model.graph.outputs.as_slice()),
        (["x", "w"].map(String::from).as_slice(), ["up"].map(String::from).as_slice())
    );
    assert_eq!(model.graph.types["x"].shape, Some(vec![Dim::Unknown, Dim::Known(4), Dim::Known(8)]));
    assert_eq!(model.graph.types["x"].dtype, Some(DType::F16));
    let layers = model.layers();
    assert_eq!(layers[0].dialect, DialectName::Openvino);
    assert!(matches!(&layers[0].node.attributes["strides"], Attribute::Ints(list) if *list == [2]));
    assert!(matches!(&layers[0].node.attributes["output_padding"], Attribute::Ints(list) if list.is_empty()));
    // Without an ending that says so, the first byte does.
    assert_eq!(parse("model", IR).unwrap().layers().len(), 1);
}

#[test]
fn broken_irs_are_refused_with_the_place() {
    let constant =
        r#"type="Const" version="opset1"><data shape="4,2,3" element_type="f16" offset="0" size="48"/>"#;
    let parameter = r#"type="Parameter" version="opset1"><data shape="4,2,3" element_type="f16"/>"#;
    for (text, expected) in [
        (IR.replace("<layers>", ""), "m.xml: the file must be XML, got"),
        ("<a/>".into(), "m.xml: the file must be an OpenVINO IR, which is one <net>, got <a>"),
        (
            IR.replace("strides=\"2\"", "strides=\"2;2\""),
            "m.xml: layer 2 (`up`): `strides` must be integers such as 2,2, got `2;2`",
        ),
        (
            IR.replace("from-layer=\"1\"", "from-layer=\"7\""),
            "m.xml: the edge from layer 7, port 0 must be from a port of a layer",
        ),
        (IR.replace(" type=\"Result\"", ""), "m.xml: <layer> at line 10 must be with an attribute `type`"),
        (
            IR.replace(parameter, constant),
            "m.xml: layer 1 (`w`) must be with m.bin beside it, got no such file",
        ),
    ] {
        let error = parse("m.xml", &text).unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    }
    for cut in (0..IR.len()).step_by(7) {
        assert!(parse("m.xml", &IR[..cut]).is_err(), "{cut}");
    }
}

const GRAPH: &str = r#"{"version": "3.9.0", "engine_kind": "cpu", "graph": [{"id": 7, "name": "up", "kind": "ConvTranspose",
  "attrs": {"strides": {"type": "s64[]", "value": [2, 2]}, "output_padding": {"type": "s64[]", "value": [0,0,0,0,0,0,0,0,0,0,0,0]},
            "data_format": {"type": "string", "value": "NCX"}},
  "inputs": [{"id": 0, "dtype": "bf16", "shape": [1, 4, 8, 8], "layout_type": "strided"}, {"id": 1, "dtype": "bf16", "shape": [4, 2, 3, 3]}],
  "outputs": [{"id": 2, "dtype": "bf16", "shape": [1, 2, -1, -1]}]}]}"#;

#[test]
fn a_graph_of_onednn_is_read() {
    let model = parse("g.json", GRAPH).unwrap();
    assert_eq!(model.producer.as_deref(), Some("oneDNN 3.9.0"));
    let layers = model.layers();
    assert_eq!((layers[0].name.as_str(), layers[0].dialect), ("up", DialectName::OnednnGraph));
    assert!(matches!(&layers[0].node.attributes["output_padding"], Attribute::Ints(list) if *list == [0, 0]));
    assert_eq!(model.graph.types["0"].dtype, Some(DType::Bf16));
    assert_eq!(model.graph.types["2"].shape.as_ref().unwrap()[3], Dim::Unknown);
    assert_eq!((model.graph.inputs.len(), model.graph.outputs.len()), (2, 1));
}

#[test]
fn broken_graphs_are_refused_with_the_place() {
    for (text, expected) in [
        ("{".to_owned(), "g.json: the file must be JSON"),
        ("{}".to_owned(), "g.json: `graph` must be present"),
        (GRAPH.replace("\"kind\"", "\"kinds\""), "g.json: `graph[0].kind` must be present"),
        (
            GRAPH.replace("\"NCX\"", "{}"),
            "g.json: `graph[0].attrs.data_format.value` must be a number, a text or a list",
        ),
        (
            GRAPH.replace("\"id\": 1", "\"id\": \"1\""),
            "g.json: `graph[0].inputs[1].id` must be a 64-bit integer",
        ),
        (
            "[1]".to_owned(),
            "g.json: the file must be a layers file or a oneDNN graph, got g.json: layer number 0",
        ),
    ] {
        let error = parse("g.json", &text).unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn lines_of_a_log_become_layers_each_once() {
    let line = "onednn_verbose,v1,primitive,exec,cpu,jit:avx512_core,deconvolution,forward_training,src:bf16::blocked:acdb::f0 \
                wei:bf16::blocked:Acdb16a::f0 bia:undef::undef::: dst:bf16::blocked:acdb::f0,attr-scratchpad:user,\
                alg:deconvolution_direct,g2mb1_ic16oc8_ih8oh16kh4sh2dh0ph1_iw8ow16kw4sw2dw0pw1,0.05";
    let log = format!(
        "onednn_verbose,v1,info,oneDNN v3.9.0\n{line}\n{line}\n{}\n{}\n",
        line.replace("forward_training", "backward_data"),
        line.replace(",deconvolution,", ",convolution,"),
    );
    let model = parse("log.txt", &log).unwrap();
    assert_eq!((model.format, model.layers().len()), (Format::Layers, 1));
    let layers = model.layers();
    let node = layers[0].node;
    assert_eq!(model.graph.types[&node.inputs[0]].dtype, Some(DType::Bf16));
    assert_eq!(model.graph.types[&node.inputs[0]].sizes(), Some(vec![1, 16, 8, 8]));
    assert_eq!(model.graph.types[&node.inputs[1]].sizes(), Some(vec![16, 4, 4, 4]));
}

#[test]
fn a_layer_is_listed_once_in_every_type_and_integers_are_openvinos() {
    let line = |dtype: &str| {
        format!(
            "onednn_verbose,v1,primitive,exec,cpu,jit,deconvolution,forward_inference,src:{dtype}::blocked:acb::f0,,,g2mb1_ic4oc6_iw8kw4sw2pw1,1\n"
        )
    };
    let model = parse("log.txt", &[line("f32"), line("s8"), line("f32")].concat()).unwrap();
    let layers = model.layers();
    let ops: Vec<&str> = layers.iter().map(|layer| layer.node.op.as_str()).collect();
    assert_eq!(ops, ["ConvTranspose", "GroupConvolutionBackpropData"]);
    let filter = |index: usize| model.graph.types[&layers[index].node.inputs[1]].sizes().unwrap();
    assert_eq!((filter(0), filter(1)), (vec![4, 3, 4], vec![2, 2, 3, 4]));
    for layer in &layers {
        layer.request().read(layer.dialect).unwrap();
    }
}

#[test]
fn problem_strings_are_read_one_a_line_with_remarks() {
    let model = parse("p.txt", "# mine\nmb1_ic16oc8_ih8kh4sh2ph1\n\nic4oc4_iw8kw2sw2nsmall\n").unwrap();
    let names: Vec<String> = model.layers().into_iter().map(|layer| layer.name).collect();
    assert_eq!(names, ["mb1_ic16oc8_ih8kh4sh2ph1", "small"]);
    let error = parse("p.txt", "mb1_ic16oc8_ih8kh4\nmb1_zz3\n").unwrap_err();
    assert!(
        error.starts_with("p.txt: line 2 must be a problem string or a line of a verbose log"),
        "{error}"
    );
    let error = parse("p.txt", "onednn_verbose,v1,info\n").unwrap_err();
    assert!(error.contains("got neither"), "{error}");
}
