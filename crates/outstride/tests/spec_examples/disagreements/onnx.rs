//! ONNX and the nhwc domain of ONNX Runtime.

use outstride::DialectName::{Onnx, OrtNhwc};
use outstride::{DType, Policy, bf16, f16};

use crate::case::{Case, POLICIES, floats, int, ints, text};

const FIRST_6: [f32; 6] = [1.0, 10.0, 102.0, 20.0, 203.0, 30.0];
const LAST_6: [f32; 6] = [10.0, 102.0, 20.0, 203.0, 30.0, 300.0];
const WORDS: [&str; 4] = ["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"];

/// The same case in both spellings; the data of one channel is the same in either layout.
fn in_both(build: impl Fn(Case) -> Case) -> [Case; 2] {
    [Onnx, OrtNhwc].map(|dialect| build(Case::with_stride_2(dialect)))
}

#[test]
fn the_odd_element_of_output_shape_follows_the_newer_rule_in_every_opset() {
    for opset in [1, 10, 11, 21, 22, 23] {
        for case in in_both(|case| case.version(opset).output_size([6])) {
            case.clone().set("auto_pad", text("SAME_UPPER")).gives(&FIRST_6);
            case.clone().set("auto_pad", text("SAME_LOWER")).gives(&LAST_6);
            case.clone().set("auto_pad", text("VALID")).gives(&LAST_6);
            case.gives(&LAST_6);
        }
    }
}

#[test]
fn same_means_input_times_stride_in_every_opset() {
    for opset in [1, 11, 22] {
        for case in in_both(|case| case.version(opset)) {
            case.clone().set("auto_pad", text("SAME_UPPER")).gives(&FIRST_6);
            case.set("auto_pad", text("SAME_LOWER")).gives(&LAST_6);
        }
    }
}

#[test]
fn an_output_shape_beyond_the_full_extent_ends_in_zeros() {
    for word in WORDS {
        for case in in_both(|case| case.output_size([8]).set("auto_pad", text(word))) {
            case.gives(&[1.0, 10.0, 102.0, 20.0, 203.0, 30.0, 300.0, 0.0]);
        }
    }
}

#[test]
fn same_with_a_stride_beyond_the_kernel_keeps_the_full_size() {
    let full = [1.0, 10.0, 100.0, 0.0, 0.0, 2.0, 20.0, 200.0, 0.0, 0.0, 3.0, 30.0, 300.0];
    for word in ["SAME_UPPER", "SAME_LOWER"] {
        for case in in_both(|case| case.set("strides", ints([5])).set("auto_pad", text(word))) {
            case.gives(&full);
        }
    }
}

#[test]
fn output_padding_enters_the_total_of_same() {
    for word in ["SAME_UPPER", "SAME_LOWER"] {
        // The full extent with output padding is 8, so one element goes at either end.
        for case in in_both(|case| case.set("output_padding", ints([1])).set("auto_pad", text(word))) {
            case.gives(&LAST_6);
        }
    }
}

#[test]
fn output_shape_holds_spatial_sizes_only() {
    for case in in_both(|case| case.output_size([1, 1, 6])) {
        case.is_refused("bad-length");
    }
}

#[test]
fn an_output_shape_below_the_input_size_is_computed() {
    for case in in_both(|case| case.output_size([2])) {
        case.gives(&[20.0, 203.0]);
    }
}

#[test]
fn an_output_shape_beyond_full_plus_stride_is_refused() {
    for size in [9, 12, i64::MAX] {
        for case in in_both(|case| case.output_size([size])) {
            case.is_refused("output-shape-too-large");
        }
    }
}

#[test]
fn output_padding_is_bounded_by_stride_or_dilation_in_the_text_and_by_the_stride_at_run_time() {
    for case in in_both(|case| case.set("output_padding", ints([2]))) {
        case.is_refused("output-padding-too-large");
    }
    for case in in_both(|case| case.set("output_padding", ints([2])).set("dilations", ints([3]))) {
        let dilated = [1.0, 0.0, 2.0, 10.0, 3.0, 20.0, 100.0, 30.0, 200.0, 0.0, 300.0, 0.0, 0.0];
        case.gives_under(Policy::Spec, &dilated);
        case.is_refused_under(Policy::Runtime, "output-padding-too-large");
    }
    for case in in_both(|case| case.set("output_padding", ints([3])).set("dilations", ints([3]))) {
        case.is_refused("output-padding-too-large");
    }
    for case in in_both(|case| case.set("output_padding", ints([-1]))) {
        case.is_refused("bad-value");
    }
}

#[test]
fn negative_pads_are_refused() {
    for opset in [1, 11, 22] {
        for pads in [[-1, 0], [0, -1]] {
            for case in in_both(|case| case.version(opset).set("pads", ints(pads))) {
                case.is_refused("bad-value");
            }
        }
    }
}

#[test]
fn pads_and_auto_pad_exclude_each_other() {
    for opset in [1, 11, 22] {
        for word in &WORDS[1..] {
            for pads in [[1, 1], [0, 0]] {
                for case in
                    in_both(|case| case.version(opset).set("auto_pad", text(word)).set("pads", ints(pads)))
                {
                    case.is_refused("conflicting-attributes");
                }
            }
        }
        for case in
            in_both(|case| case.version(opset).set("auto_pad", text("NOTSET")).set("pads", ints([1, 0])))
        {
            case.gives(&LAST_6);
        }
    }
}

#[test]
fn pads_are_ignored_beside_output_shape() {
    for case in in_both(|case| case.output_size([6]).set("pads", ints([3, 3]))) {
        case.gives(&LAST_6);
    }
}

#[test]
fn a_pad_beyond_the_kernel_crops_further() {
    for case in in_both(|case| case.set("strides", ints([1])).set("pads", ints([3, 0]))) {
        case.gives(&[230.0, 300.0]);
    }
}

#[test]
fn groups_are_contiguous_and_each_has_its_own_bias() {
    let case = Case::new(Onnx)
        .x(&[1, 4, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
        .w(&[4, 1, 2], &[1.0, 10.0, -1.0, 2.0, 3.0, 1.0, 1.0, -2.0])
        .set("group", int(2))
        .bias(&[100.0, 200.0]);
    // Group 0: channels 0 and 1; group 1: channels 2 and 3.
    let first = [1.0 - 3.0, 10.0 + 2.0 + 6.0 - 4.0, 20.0 + 8.0].map(|sum| sum + 100.0);
    let second = [15.0 + 7.0, 5.0 + 18.0 - 14.0 + 8.0, 6.0 - 16.0].map(|sum| sum + 200.0);
    case.gives(&[first, second].concat());

    let wide = case.w(&[4, 2, 1], &[1.0, 2.0, 10.0, 20.0, 3.0, 4.0, 30.0, 40.0]);
    wide.bias(&[0.0, 0.5, 0.0, -0.5]).gives(&[31.0, 42.0, 62.5, 84.5, 225.0, 258.0, 299.5, 343.5]);
}

#[test]
fn output_shape_derives_pads_for_groups_too() {
    let case = Case::with_stride_2(Onnx)
        .x(&[1, 2, 3], &[1.0, 2.0, 3.0, 2.0, 4.0, 6.0])
        .w(&[2, 1, 3], &[1.0, 10.0, 100.0, 1.0, 10.0, 100.0])
        .set("group", int(2))
        .output_size([6]);
    let doubled = LAST_6.map(|value| 2.0 * value);
    case.gives(&[LAST_6, doubled].concat());
}

#[test]
fn an_empty_output_is_refused() {
    for pads in [[2, 3], [0, 5], [4, 4]] {
        for case in in_both(|case| case.set("strides", ints([1])).set("pads", ints(pads))) {
            case.is_refused("empty-output");
        }
    }
    for case in in_both(|case| case.output_size([0])) {
        case.is_refused("bad-value");
    }
}

#[test]
fn kernel_shape_must_be_the_filter_s() {
    for case in in_both(|case| case.set("kernel_shape", ints([3]))) {
        assert!(case.run(Policy::Spec).is_ok());
    }
    for wrong in [ints([2]), ints([3, 3]), ints([-3])] {
        for case in in_both(|case| case.set("kernel_shape", wrong.clone())) {
            case.is_refused("kernel-shape-mismatch");
        }
    }
}

#[test]
fn auto_pad_is_written_in_upper_case_or_left_empty() {
    for word in ["SAME", "same_upper", "Valid", "notset", "SAME_UPPER "] {
        for case in in_both(|case| case.set("auto_pad", text(word))) {
            case.is_refused("bad-auto-pad");
        }
    }
    for case in in_both(|case| case.set("auto_pad", text("")).set("pads", ints([1, 0]))) {
        case.gives(&LAST_6);
    }
}

#[test]
fn the_bias_is_one_dimensional_and_as_long_as_the_output_channels() {
    for case in in_both(|case| case) {
        assert!(case.resolve_with_bias(&[1]).is_ok());
        for shape in [[1, 1].as_slice(), &[2], &[0], &[]] {
            assert_eq!(case.resolve_with_bias(shape).unwrap_err().kind(), "bias-shape", "{shape:?}");
        }
    }
}

#[test]
fn element_types_are_those_of_the_opset_and_exact() {
    for policy in POLICIES {
        for dtype in DType::ALL {
            for opset in [1, 11, 21, 22] {
                let found = Case::new(Onnx).version(opset).resolve_as(dtype, policy);
                let allowed = matches!(dtype, DType::F16 | DType::F32 | DType::F64)
                    || (dtype == DType::Bf16 && opset == 22);
                assert_eq!(
                    found.map_err(|error| error.kind()),
                    allowed.then(|| vec![1, 1, 5]).ok_or("unsupported-dtype")
                );
            }
            for version in [1, 11] {
                let found = Case::new(OrtNhwc).version(version).resolve_as(dtype, policy);
                let allowed = matches!(dtype, DType::F16 | DType::F32 | DType::F64);
                assert_eq!(
                    found.map_err(|error| error.kind()),
                    allowed.then(|| vec![1, 5, 1]).ok_or("unsupported-dtype")
                );
            }
        }
        let case = Case::with_stride_2(Onnx);
        let expected = [1.0, 10.0, 102.0, 20.0, 203.0, 30.0, 300.0];
        assert_eq!(case.run_as(policy, f16::from_f32).unwrap().data(), expected.map(f16::from_f32));
        assert_eq!(case.run_as(policy, bf16::from_f32).unwrap().data(), expected.map(bf16::from_f32));
        // Beyond 24 bits, and beyond what an f32 computation could keep.
        let precise = case.run_as(policy, |value| f64::from(value) * 16777217.0).unwrap();
        assert_eq!(precise.data()[0], 16777217.0 * 16777217.0);
    }
}

#[test]
fn an_empty_input_gives_what_the_formula_says() {
    for policy in POLICIES {
        let empty = Case::new(Onnx).x(&[1, 1, 0], &[]).bias(&[7.0]);
        assert_eq!(empty.run(policy).unwrap().data(), [7.0, 7.0]);
        let nhwc = Case::new(OrtNhwc).x(&[1, 0, 1], &[]).bias(&[7.0]);
        assert_eq!(nhwc.run(policy).unwrap().data(), [7.0, 7.0]);
        for stride in [3, 5] {
            empty.clone().set("strides", ints([stride])).is_refused_under(policy, "empty-output");
        }
    }
}

#[test]
fn no_batch_gives_an_empty_tensor() {
    for policy in POLICIES {
        let y = Case::with_stride_2(Onnx).x(&[0, 1, 3], &[]).run(policy).unwrap();
        assert_eq!((y.shape(), y.data()), ([0, 1, 7].as_slice(), [].as_slice()));
        let y = Case::with_stride_2(OrtNhwc).x(&[0, 3, 1], &[]).run(policy).unwrap();
        assert_eq!((y.shape(), y.data()), ([0, 7, 1].as_slice(), [].as_slice()));
    }
}

#[test]
fn no_bias_is_a_bias_of_zeros() {
    for case in in_both(|case| case) {
        let without = case.run(Policy::Spec).unwrap();
        assert_eq!(case.bias(&[0.0]).run(Policy::Spec).unwrap(), without);
    }
}

#[test]
fn unknown_attributes_and_lists_of_the_wrong_length_are_refused() {
    for name in ["stride", "groups", "padding", "Strides", "pads_begin", ""] {
        for case in in_both(|case| case.set(name, ints([1]))) {
            case.is_refused("unknown-attribute");
        }
    }
    Case::new(Onnx).set("activation", text("Relu")).is_refused("unknown-attribute");
    for (name, list) in [
        ("strides", ints([1, 1])),
        ("dilations", ints([1, 1])),
        ("output_padding", ints([0, 0])),
        ("output_shape", ints([5, 5])),
        ("pads", ints([1])),
        ("pads", ints([1, 1, 1])),
    ] {
        for case in in_both(|case| case.set(name, list.clone())) {
            case.is_refused("bad-length");
        }
    }
}

#[test]
fn numbers_out_of_range_are_refused() {
    for (name, value, kind) in [
        ("strides", ints([0]), "bad-value"),
        ("strides", ints([-1]), "bad-value"),
        ("dilations", ints([0]), "bad-value"),
        ("group", int(0), "bad-value"),
        ("group", int(-1), "bad-value"),
        ("group", int(2), "bad-groups"),
        ("strides", text("2"), "bad-value"),
        ("group", ints([1]), "bad-value"),
    ] {
        for case in in_both(|case| case.set(name, value.clone())) {
            case.is_refused(kind);
        }
    }
    Case::new(Onnx).version(0).is_refused("bad-value");
}

#[test]
fn tensors_that_do_not_fit_together_are_refused() {
    let case = Case::new(Onnx);
    case.clone().x(&[1, 3], &[1.0; 3]).is_refused("bad-rank");
    case.clone().x(&[1, 1, 3, 1], &[1.0; 3]).is_refused("bad-rank");
    case.clone().w(&[1, 3], &[1.0; 3]).is_refused("bad-rank");
    case.clone().x(&[1, 3, 1], &[1.0; 3]).is_refused("channel-mismatch");
    case.w(&[1, 1, 0], &[]).is_refused("bad-value");
}

#[test]
fn any_number_of_spatial_axes_is_accepted() {
    let case = Case::new(Onnx)
        .x(&[1, 1, 1, 1, 1, 2], &[1.0, 2.0])
        .w(&[1, 1, 1, 2, 1, 2], &[1.0, 10.0, 100.0, 1000.0]);
    case.gives(&[1.0, 12.0, 20.0, 100.0, 1200.0, 2000.0]);
}

#[test]
fn the_nhwc_domain_applies_seven_activations() {
    let sums = [1.0f32, -1.0, 3.0, -4.0];
    let case = Case::new(OrtNhwc).x(&[1, 4, 1], &sums).w(&[1, 1, 1], &[1.0]);
    let with = |name: &str| case.clone().set("activation", text(name));
    with("Relu").gives(&[1.0, 0.0, 3.0, 0.0]);
    with("Relu").set("activation_params", floats([9.0])).gives(&[1.0, 0.0, 3.0, 0.0]);
    with("LeakyRelu").set("activation_params", floats([0.25])).gives(&[1.0, -0.25, 3.0, -1.0]);
    with("Clip").set("activation_params", floats([-2.0, 2.0])).gives(&[1.0, -1.0, 2.0, -2.0]);
    with("Clip").set("activation_params", floats([2.0, 0.5])).gives(&[0.5; 4]);
    with("HardSigmoid").set("activation_params", floats([0.25, 0.5])).gives(&[0.75, 0.25, 1.0, 0.0]);
    with("HardSwish").x(&[1, 3, 1], &[3.0, -3.0, 1.5]).gives(&[3.0, 0.0, 1.125]);
    let close = |name: &str, expected: fn(f64) -> f64| {
        let y = with(name).run(Policy::Spec).unwrap();
        for (&found, sum) in y.data().iter().zip(sums) {
            assert!((f64::from(found) - expected(sum.into())).abs() < 1e-6, "{name}({sum}) is {found}");
        }
    };
    close("Tanh", f64::tanh);
    close("Sigmoid", |v| 1.0 / (1.0 + (-v).exp()));
}

#[test]
fn the_nhwc_domain_applies_the_activation_after_the_bias() {
    let case = Case::new(OrtNhwc).x(&[1, 2, 1], &[1.0, -4.0]).w(&[1, 1, 1], &[1.0]).bias(&[2.0]);
    case.set("activation", text("Relu")).gives(&[3.0, 0.0]);
}

#[test]
fn other_activations_and_other_numbers_of_parameters_are_refused() {
    for name in ["Elu", "relu", "Identity", "", "RELU", "LeakyRelu", "Clip", "HardSigmoid"] {
        Case::new(OrtNhwc).set("activation", text(name)).is_refused("bad-activation");
    }
    for (name, params) in [("LeakyRelu", floats([0.1, 0.2])), ("Clip", floats([1.0; 2]))] {
        let case = Case::new(OrtNhwc).set("activation", text(name)).set("activation_params", params);
        assert_eq!(case.run(Policy::Spec).is_ok(), name == "Clip");
    }
    let three = Case::new(OrtNhwc).set("activation", text("Clip")).set("activation_params", floats([1.0; 3]));
    three.is_refused("bad-activation");
}
