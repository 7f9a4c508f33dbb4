//! Every reason to refuse a request, reached through the public API, with the message a user gets to read: it names the
//! attribute or tensor, the axis where there is one, what was expected, what came, and what to do where that is not plain.

use std::collections::BTreeSet;

use outstride_spec::DType::{Bf16, Bool, F32, F64, I8};
use outstride_spec::DialectName::{
    Jax, OnednnGraph, Onnx, Openvino, OpenvinoGroup, OrtNhwc, Tensorflow, Torch,
};
use outstride_spec::{
    AttributeValue, Axis, DType, DialectName, Geometry, Operands, Policy, Request, SpecError, TensorType,
    openvino,
};

/// A call that its dialect accepts until something is changed.
struct Call {
    dialect: DialectName,
    request: Request,
    policy: Policy,
    input: (DType, Vec<usize>),
    filter: (DType, Vec<usize>),
    bias: Option<(DType, Vec<usize>)>,
}

fn ints<const N: usize>(values: [i64; N]) -> AttributeValue {
    AttributeValue::List(values.map(AttributeValue::Int).into())
}

fn text(word: &str) -> AttributeValue {
    AttributeValue::Text(word.into())
}

/// Input (1, 4, 5, 5), four input channels, six output channels and a kernel of 3×3, in the dialect's layouts.
fn call(dialect: DialectName) -> Call {
    let (first, last) = (vec![1, 4, 5, 5], vec![1, 5, 5, 4]);
    let (input, filter) = match dialect {
        Onnx | Openvino | Torch => (first, vec![4, 6, 3, 3]),
        OrtNhwc => (last, vec![4, 6, 3, 3]),
        OpenvinoGroup => (first, vec![2, 2, 3, 3, 3]),
        OnednnGraph | Jax => (last, vec![3, 3, 4, 6]),
        Tensorflow => (last, vec![3, 3, 6, 4]),
    };
    let call = Call {
        dialect,
        request: Request::default(),
        policy: Policy::Spec,
        input: (F32, input),
        filter: (F32, filter),
        bias: None,
    };
    match dialect {
        Onnx | OrtNhwc | Torch => call,
        OnednnGraph | Openvino | OpenvinoGroup => call
            .set("strides", ints([1, 1]))
            .set("dilations", ints([1, 1]))
            .set("pads_begin", ints([0, 0]))
            .set("pads_end", ints([0, 0])),
        Tensorflow => call.set("strides", ints([1, 1])).set("output_shape", ints([1, 5, 5, 6])),
        Jax => call.set("strides", ints([1, 1])).set("padding", text("SAME")),
    }
}

impl Call {
    fn set(mut self, name: &str, value: AttributeValue) -> Self {
        self.request.attributes.insert(name.into(), value);
        self
    }

    fn unset(mut self, name: &str) -> Self {
        self.request.attributes.remove(name);
        self
    }

    fn op(self, op: &str) -> Self {
        Call { request: Request { op: Some(op.into()), ..self.request }, ..self }
    }

    fn version(self, version: i64) -> Self {
        Call { request: Request { version: Some(version), ..self.request }, ..self }
    }

    fn third_input<const N: usize>(self, sizes: [i64; N]) -> Self {
        Call { request: Request { output_shape: Some(sizes.into()), ..self.request }, ..self }
    }

    fn runtime(self) -> Self {
        Call { policy: Policy::Runtime, ..self }
    }

    fn input<const N: usize>(self, dtype: DType, shape: [usize; N]) -> Self {
        Call { input: (dtype, shape.into()), ..self }
    }

    fn filter<const N: usize>(self, dtype: DType, shape: [usize; N]) -> Self {
        Call { filter: (dtype, shape.into()), ..self }
    }

    fn bias<const N: usize>(self, dtype: DType, shape: [usize; N]) -> Self {
        Call { bias: Some((dtype, shape.into())), ..self }
    }

    fn resolve(&self) -> Result<Vec<usize>, SpecError> {
        let of = |tensor: &(DType, Vec<usize>)| (tensor.0, tensor.1.clone());
        let (input, filter) = (of(&self.input), of(&self.filter));
        let mut operands =
            Operands::new(TensorType::new(input.0, &input.1), TensorType::new(filter.0, &filter.1));
        if let Some((dtype, shape)) = &self.bias {
            operands = operands.with_bias(TensorType::new(*dtype, shape));
        }
        Ok(self.request.read(self.dialect)?.resolve(&operands, self.policy)?.output_shape())
    }

    fn refused(self) -> SpecError {
        match self.resolve() {
            Err(error) => error,
            Ok(shape) => panic!("{} accepted {:?} with output {shape:?}", self.dialect, self.request),
        }
    }
}

/// Each refusal with its kind and its message.
fn refusals() -> Vec<(SpecError, &'static str, &'static str)> {
    let refusals: Vec<(Call, &str, &str)> = vec![
        (
            call(Onnx).set("stride", ints([2, 2])),
            "unknown-attribute",
            "onnx has no attribute `stride`; it knows auto_pad, dilations, group, kernel_shape, output_padding, \
             output_shape, pads, strides",
        ),
        (
            call(Torch).set("strides", ints([2, 2])),
            "unknown-attribute",
            "torch has no attribute `strides`; it knows dilation, groups, output_padding, output_size, padding, \
             padding_mode, stride",
        ),
        (
            call(Openvino).unset("pads_end"),
            "missing-attribute",
            "the required attribute `pads_end` is missing; openvino has no default for it, so write it out",
        ),
        (
            call(Tensorflow).unset("output_shape"),
            "missing-attribute",
            "the required attribute `output_shape` is missing; tensorflow has no default for it, so write it out",
        ),
        (
            call(Jax).unset("padding"),
            "missing-attribute",
            "the required attribute `padding` is missing; jax has no default for it, so write it out",
        ),
        (
            call(Onnx).set("strides", text("2,2")),
            "bad-value",
            "attribute `strides` must be a list of integers, got `2,2`",
        ),
        (
            call(Onnx).set("group", AttributeValue::Float(1.5)),
            "bad-value",
            "attribute `group` must be an integer, got 1.5",
        ),
        (
            call(Torch).set("padding", text("same")),
            "bad-value",
            "attribute `padding` must be an integer or a list of integers, got `same`",
        ),
        (
            call(OrtNhwc).set("activation_params", AttributeValue::Bool(true)),
            "bad-value",
            "attribute `activation_params` must be a list of numbers, got true",
        ),
        (
            call(Onnx).set("auto_pad", AttributeValue::Int(1)),
            "bad-value",
            "attribute `auto_pad` must be a string, got 1",
        ),
        (
            call(Jax).set("dimension_numbers", text("NHWC")),
            "bad-value",
            "attribute `dimension_numbers` must be a list of strings, got `NHWC`",
        ),
        (
            call(Jax).set("transpose_kernel", AttributeValue::Int(1)),
            "bad-value",
            "attribute `transpose_kernel` must be true or false, got 1",
        ),
        (
            call(Jax).set("padding", ints([1, 1])),
            "bad-value",
            "attribute `padding` must be a string or a list of integer pairs, got [1, 1]",
        ),
        (
            call(Onnx).set("auto_pad", text("same_upper")),
            "bad-auto-pad",
            "`auto_pad` must be one of NOTSET, SAME_UPPER, SAME_LOWER, VALID, got `same_upper`",
        ),
        (
            call(Openvino).set("auto_pad", text("notset")),
            "bad-auto-pad",
            "`auto_pad` must be one of explicit, same_upper, same_lower, valid, got `notset`",
        ),
        (
            call(OnednnGraph).set("filter_format", text("HWIO")),
            "bad-format",
            "`filter_format` must be one of XIO, OIX, XOI, IOX, got `HWIO`",
        ),
        (
            call(Tensorflow).set("data_format", text("NXC")),
            "bad-format",
            "`data_format` must be one of NWC, NCW, NHWC, NCHW, NDHWC, NCDHW, got `NXC`",
        ),
        (
            call(Torch).op("conv_transpose4d"),
            "bad-format",
            "`op` must be one of conv_transpose1d, conv_transpose2d, conv_transpose3d, got `conv_transpose4d`",
        ),
        (call(Onnx).set("strides", ints([1, 0])), "bad-value", "`strides`[1] must be at least 1, got 0"),
        (call(Onnx).set("pads", ints([0, 0, -2, 0])), "bad-value", "`pads`[2] must be at least 0, got -2"),
        (call(Onnx).set("group", AttributeValue::Int(0)), "bad-value", "`group` must be at least 1, got 0"),
        (call(Onnx).version(0), "bad-value", "`opset` must be at least 1, got 0"),
        (
            call(Onnx).filter(F32, [4, 6, 3, 0]),
            "bad-value",
            "the kernel size of W[3] must be at least 1, got 0",
        ),
        (
            call(Torch).set("output_size", ints([7, 9])),
            "bad-value",
            "`output_size`[1] must be from 7 to 7, got 9",
        ),
        (
            call(Jax)
                .set("dimension_numbers", AttributeValue::List(["NHWC", "HWIO", "NHCC"].map(text).into())),
            "bad-value",
            "`dimension_numbers.out` must be N, C and 2 distinct spatial letters, the same in lhs, rhs and out, \
             got `NHCC`",
        ),
        (
            call(Onnx).set("strides", ints([2])),
            "bad-length",
            "`strides` has 1 entries, expected 2, one per spatial axis",
        ),
        (
            call(Onnx).set("pads", ints([1, 1])),
            "bad-length",
            "`pads` has 2 entries, expected 4: all beginnings, then all ends",
        ),
        (
            call(Onnx).set("output_shape", ints([1, 6, 7, 7])),
            "bad-length",
            "`output_shape` has 4 entries, expected 2: the spatial sizes only, without batch and channels",
        ),
        (
            call(Tensorflow).set("output_shape", ints([5, 5])),
            "bad-length",
            "`output_shape` has 2 entries, expected 4: the full shape of the output, batch and channels included",
        ),
        (
            call(Onnx).set("auto_pad", text("VALID")).set("pads", ints([0, 0, 0, 0])),
            "conflicting-attributes",
            "`pads` cannot be combined with an `auto_pad` other than NOTSET; remove one of them",
        ),
        (
            call(OnednnGraph).set("filter_format", text("XIO")).set("weights_format", text("XOI")),
            "conflicting-attributes",
            "`filter_format` cannot be combined with a different `weights_format`; they are two names of one attribute: \
             keep one",
        ),
        (
            call(Onnx).input(F32, [4, 5]),
            "bad-rank",
            "X has rank 2, expected at least 3: 2 and one per spatial axis",
        ),
        (call(Onnx).input(F32, [1, 4, 5]), "bad-rank", "X has rank 3, expected 4 to match W"),
        (call(Openvino).filter(F32, [4, 6]), "bad-rank", "filter has rank 2, expected 3 to 5"),
        (call(OpenvinoGroup).filter(F32, [1; 7]), "bad-rank", "filter has rank 7, expected 4 to 6"),
        (
            call(Torch).input(F32, [5, 5]),
            "bad-rank",
            "input has rank 2, expected 4 (batched) or 3 (unbatched) to match weight",
        ),
        (call(Torch).op("conv_transpose1d"), "bad-rank", "weight has rank 4, expected 3"),
        (
            call(OrtNhwc).input(F32, [1, 5, 5, 3]),
            "channel-mismatch",
            "X has 3 channels on axis 3, expected 4 to match W",
        ),
        (
            call(Onnx).set("group", AttributeValue::Int(3)),
            "bad-groups",
            "`group` is 3, which does not divide the 4 input channels into whole groups",
        ),
        (
            call(Onnx).bias(F32, [6, 1]),
            "bias-shape",
            "B must have shape [6], one value per output channel, got [6, 1]",
        ),
        (
            call(Onnx).set("kernel_shape", ints([3, 5])),
            "kernel-shape-mismatch",
            "`kernel_shape` is [3, 5] but the spatial shape of W is [3, 3]; correct it or leave it out",
        ),
        (
            call(Onnx).set("output_padding", ints([0, 3])).set("dilations", ints([1, 3])),
            "output-padding-too-large",
            "`output_padding`[1] is 3, but must be less than 3, the larger of stride and dilation; larger values would \
             only append bias",
        ),
        (
            call(OnednnGraph).set("output_padding", ints([1, 0])).runtime(),
            "output-padding-too-large",
            "`output_padding`[0] is 1, but must be less than 1, the stride; larger values would only append bias",
        ),
        (
            call(Onnx).set("output_shape", ints([7, 8])),
            "output-shape-too-large",
            "`output_shape`[1] is 8, but this input, kernel and stride reach 7 at most",
        ),
        (
            call(Tensorflow).set("output_shape", ints([1, 5, 9, 6])),
            "output-shape-inconsistent",
            "`output_shape` gives 9 on spatial axis 1: a forward convolution of that size yields 9, but the input has 5; \
             use 5 to 5",
        ),
        (
            call(Tensorflow).set("output_shape", ints([2, 5, 5, 6])),
            "batch-mismatch",
            "`output_shape` says 2 for the batch, but the tensors say 1",
        ),
        (
            call(Tensorflow).set("output_shape", ints([1, 5, 5, -6])),
            "channel-mismatch",
            "`output_shape` says -6 for the channels, but the tensors say 6",
        ),
        (
            call(Onnx).set("pads", ints([0, 3, 0, 4])),
            "empty-output",
            "the output would have size 0 on spatial axis 1; reduce the pads",
        ),
        (
            call(OnednnGraph).set("pads_end", ints([9, 0])),
            "empty-output",
            "the output would have size -2 on spatial axis 0; reduce the pads",
        ),
        (
            call(OrtNhwc).set("activation", text("Clip")),
            "bad-activation",
            "activation `Clip` with 0 parameters is not one of Relu (0), Tanh (0), Sigmoid (0), HardSwish (0), \
             LeakyRelu (1), Clip (2), HardSigmoid (2)",
        ),
        (
            call(Onnx).version(13).input(Bf16, [1, 4, 5, 5]),
            "unsupported-dtype",
            "X has element type bf16; onnx allows f16, f32, f64",
        ),
        (
            call(Openvino).filter(Bool, [4, 6, 3, 3]),
            "unsupported-dtype",
            "filter has element type bool; openvino allows f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64",
        ),
        (
            call(Onnx).filter(F64, [4, 6, 3, 3]),
            "unsupported-dtype",
            "W has element type f64, but X has f32; onnx wants one type throughout",
        ),
        (
            call(Onnx).bias(F64, [6]),
            "unsupported-dtype",
            "B has element type f64, but X has f32; onnx wants one type throughout",
        ),
        (call(Openvino).bias(F32, [6]), "unexpected-tensor", "openvino takes no bias"),
        (call(Onnx).third_input([7, 7]), "unexpected-tensor", "onnx takes no output_shape input"),
        (
            call(Onnx).set("strides", ints([1, i64::MAX])),
            "overflow",
            "the value of `strides`[1] exceeds what 64-bit sizes can hold",
        ),
        (
            call(Onnx).input(F32, [1, 4, usize::MAX, 5]),
            "overflow",
            "the size of X[2] exceeds what 64-bit sizes can hold",
        ),
        (
            call(Onnx).set("strides", ints([1 << 56, 1])),
            "overflow",
            "the output size[0] exceeds what 64-bit sizes can hold",
        ),
        (
            call(Onnx).set("strides", ints([1 << 40, 1 << 40])),
            "overflow",
            "the element count of the output exceeds what 64-bit sizes can hold",
        ),
        (
            call(Onnx).filter(F32, [4, 1 << 40, 1 << 40, 1]),
            "overflow",
            "the element count of W exceeds what 64-bit sizes can hold",
        ),
    ];
    refusals.into_iter().map(|(call, kind, message)| (call.refused(), kind, message)).collect()
}

#[test]
fn the_calls_are_accepted_as_they_stand() {
    for dialect in DialectName::ALL {
        let accepted = call(dialect).resolve();
        assert!(accepted.is_ok(), "{dialect}: {accepted:?}");
    }
}

#[test]
fn every_refusal_says_what_is_wrong_and_where() {
    for (error, kind, message) in refusals() {
        assert_eq!(error.to_string(), message);
        assert_eq!(error.kind(), kind, "{message}");
    }
}

#[test]
fn every_variant_is_reachable() {
    let name =
        |error: &SpecError| format!("{error:?}").split([' ', '{']).next().unwrap_or_default().to_owned();
    let reached: BTreeSet<String> = refusals().iter().map(|(error, ..)| name(error)).collect();
    let declaration = include_str!("../src/error.rs").split("pub enum SpecError {").nth(1).unwrap();
    let declared: BTreeSet<String> = declaration
        .lines()
        .take_while(|line| *line != "}")
        .filter_map(|line| line.strip_prefix("    "))
        .filter(|line| line.starts_with(|first: char| first.is_ascii_uppercase()))
        .map(|line| line.split([' ', '{', ',']).next().unwrap_or_default().to_owned())
        .collect();
    assert!(declared.len() > 20, "{declared:?}");
    assert_eq!(reached, declared);
}

#[test]
fn a_geometry_names_what_is_wrong_with_it() {
    let axis = Axis { input: 4, kernel: 3, stride: 2, dilation: 1, output: 8, pad_begin: 1 };
    let refusal = |groups, inputs, outputs, axes: &[Axis]| {
        Geometry::new(1, groups, inputs, outputs, axes.to_vec()).unwrap_err().to_string()
    };
    assert_eq!(refusal(1, 1, 1, &[]), "the operator has rank 0, expected at least one spatial axis");
    assert_eq!(
        refusal(3, 3, 4, &[axis]),
        "`groups` is 3, which does not divide the 4 output channels into whole groups"
    );
    assert_eq!(refusal(1, 1, 1, &[axis, Axis { stride: 0, ..axis }]), "stride[1] must be at least 1, got 0");
    assert_eq!(
        refusal(1, 1, 1, &[axis, Axis { pad_begin: i64::MIN, ..axis }]),
        "the padding[1] exceeds what 64-bit sizes can hold"
    );
}

#[test]
fn the_third_input_of_openvino_names_what_is_wrong_with_it() {
    let refusal = |dtype, shape: &[usize]| {
        openvino::output_shape(&TensorType::new(dtype, shape), &[7, 7]).unwrap_err().to_string()
    };
    assert_eq!(
        refusal(F32, &[2]),
        "output_shape has element type f32; openvino allows i8, i16, i32, i64, u8, u16, u32, u64"
    );
    assert_eq!(refusal(I8, &[1, 2]), "output_shape has rank 2, expected 1");
}

#[test]
fn unknown_names_list_the_known_ones() {
    assert_eq!(
        "onnxruntime".parse::<DialectName>().unwrap_err().to_string(),
        "`onnxruntime` is not a dialect; use one of onnx, ort-nhwc, onednn-graph, openvino, openvino-group, torch, \
         tensorflow, jax"
    );
    assert_eq!(
        "float".parse::<DType>().unwrap_err().to_string(),
        "`float` is not an element type; use one of f16, bf16, f32, f64, i8…i64, u8…u64, bool"
    );
}
