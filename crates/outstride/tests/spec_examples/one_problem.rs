//! One problem in four dialects: x = [1, 2, 3], w = [1, 10, 100], stride 2. The full output is 1 10 102 20 203 30 300.

use outstride::DialectName::{OnednnGraph, Onnx, Openvino, OpenvinoGroup, OrtNhwc, Tensorflow};
use outstride::{DialectName, Policy};

use crate::case::{Case, int, ints, text};

const FULL: [f32; 7] = [1.0, 10.0, 102.0, 20.0, 203.0, 30.0, 300.0];

fn first_6() -> &'static [f32] {
    &[1.0, 10.0, 102.0, 20.0, 203.0, 30.0]
}

fn last_6() -> &'static [f32] {
    &[10.0, 102.0, 20.0, 203.0, 30.0, 300.0]
}

fn auto_pad(dialect: DialectName, word: &str) -> Case {
    Case::with_stride_2(dialect).set("auto_pad", text(word))
}

#[test]
fn same_upper_without_an_output_size() {
    auto_pad(Onnx, "SAME_UPPER").gives(first_6());
    auto_pad(OrtNhwc, "SAME_UPPER").gives(first_6());
    auto_pad(OnednnGraph, "same_upper").gives(first_6());
    auto_pad(Openvino, "same_upper").gives(&FULL);
    auto_pad(OpenvinoGroup, "same_upper").gives(&FULL);
    let same = Case::with_stride_2(Tensorflow).set("padding", text("SAME"));
    same.set("output_shape", ints([1, 6, 1])).gives(first_6());
}

#[test]
fn same_lower_without_an_output_size() {
    auto_pad(Onnx, "SAME_LOWER").gives(last_6());
    auto_pad(OrtNhwc, "SAME_LOWER").gives(last_6());
    auto_pad(OnednnGraph, "same_lower").gives(last_6());
    auto_pad(Openvino, "same_lower").gives(&FULL);
    auto_pad(OpenvinoGroup, "same_lower").gives(&FULL);
}

#[test]
fn output_6_with_same_upper() {
    auto_pad(Onnx, "SAME_UPPER").output_size([6]).gives(first_6());
    auto_pad(OrtNhwc, "SAME_UPPER").output_size([6]).gives(first_6());
    auto_pad(OnednnGraph, "same_upper").output_size([6]).gives_under(Policy::Spec, first_6());
    auto_pad(Openvino, "same_upper").output_size([6]).gives(last_6());
    auto_pad(OpenvinoGroup, "same_upper").output_size([6]).gives(last_6());
}

#[test]
fn output_6_with_same_lower() {
    auto_pad(Onnx, "SAME_LOWER").output_size([6]).gives(last_6());
    auto_pad(OrtNhwc, "SAME_LOWER").output_size([6]).gives(last_6());
    auto_pad(OnednnGraph, "same_lower").output_size([6]).gives_under(Policy::Spec, last_6());
    auto_pad(Openvino, "same_lower").output_size([6]).gives(first_6());
    auto_pad(OpenvinoGroup, "same_lower").output_size([6]).gives(first_6());
}

#[test]
fn output_6_without_auto_pad() {
    Case::with_stride_2(Onnx).output_size([6]).gives(last_6());
    Case::with_stride_2(OrtNhwc).output_size([6]).gives(last_6());
    Case::with_stride_2(OnednnGraph).output_size([6]).gives_under(Policy::Spec, last_6());
    for dialect in [Openvino, OpenvinoGroup] {
        let case = Case::with_stride_2(dialect).output_size([6]);
        case.gives_under(Policy::Spec, first_6());
        case.gives_under(Policy::Runtime, first_6());
        let padded = case.set("pads_begin", ints([1]));
        padded.gives_under(Policy::Spec, first_6());
        padded.gives_under(Policy::Runtime, last_6());
    }
}

#[test]
fn output_8() {
    let longer = [FULL.as_slice(), &[0.0]].concat();
    for dialect in [Onnx, OrtNhwc, Openvino, OpenvinoGroup, OnednnGraph] {
        Case::with_stride_2(dialect).output_size([8]).gives(&longer);
    }
    Case::with_stride_2(Tensorflow).set("output_shape", ints([1, 8, 1])).gives(&longer);
}

#[test]
fn stride_5_with_same_upper() {
    let full = [1.0, 10.0, 100.0, 0.0, 0.0, 2.0, 20.0, 200.0, 0.0, 0.0, 3.0, 30.0, 300.0];
    auto_pad(Onnx, "SAME_UPPER").set("strides", ints([5])).gives(&full);
    auto_pad(OrtNhwc, "SAME_UPPER").set("strides", ints([5])).gives(&full);
    auto_pad(Openvino, "same_upper").set("strides", ints([5])).gives(&full);
    auto_pad(OpenvinoGroup, "same_upper").set("strides", ints([5])).gives(&full);
    auto_pad(OnednnGraph, "same_upper").set("strides", ints([5])).gives(&full);
    let same = Case::with_stride_2(Tensorflow).set("strides", int(5)).set("padding", text("SAME"));
    same.set("output_shape", ints([1, 15, 1])).gives(&[full.as_slice(), &[0.0, 0.0]].concat());
}
