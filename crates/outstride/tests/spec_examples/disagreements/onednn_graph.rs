//! oneDNN Graph.

use outstride::DialectName::OnednnGraph;
use outstride::{DType, Policy};

use crate::case::{Case, POLICIES, int, ints, text};

fn stride_2() -> Case {
    Case::with_stride_2(OnednnGraph)
}

#[test]
fn the_filter_format_goes_by_either_name_and_in_all_four_orders() {
    // I = 2, O = 1, X = 2; w[i, o, t] is 1, 10 for i = 0 and 100, 1000 for i = 1.
    let case = Case::new(OnednnGraph).x(&[1, 1, 2], &[1.0, 2.0]);
    let expected = [201.0, 2010.0];
    for (format, shape, values) in [
        ("XIO", [2, 2, 1], [1.0, 100.0, 10.0, 1000.0]),
        ("XOI", [2, 1, 2], [1.0, 100.0, 10.0, 1000.0]),
        ("OIX", [1, 2, 2], [1.0, 10.0, 100.0, 1000.0]),
        ("IOX", [2, 1, 2], [1.0, 10.0, 100.0, 1000.0]),
    ] {
        for name in ["filter_format", "weights_format"] {
            case.clone().set(name, text(format)).w(&shape, &values).gives(&expected);
        }
    }
    case.w(&[2, 2, 1], &[1.0, 100.0, 10.0, 1000.0]).gives(&expected);

    let both = stride_2().set("filter_format", text("XIO"));
    assert!(both.clone().set("weights_format", text("XIO")).run(Policy::Spec).is_ok());
    both.set("weights_format", text("IOX")).is_refused("conflicting-attributes");
    stride_2().set("filter_format", text("IXO")).is_refused("bad-format");
    stride_2().set("weights_format", text("xio")).is_refused("bad-format");
    stride_2().set("data_format", text("NHWC")).is_refused("bad-format");
}

#[test]
fn groups_divide_the_output_channels_of_the_filter() {
    // Two groups of two inputs and one output each; XIO is (1, 4, 1).
    let case = Case::new(OnednnGraph)
        .x(&[1, 1, 4], &[1.0, 2.0, 3.0, 4.0])
        .w(&[1, 4, 1], &[1.0, 10.0, 100.0, 1000.0])
        .set("groups", int(2));
    case.gives(&[21.0, 4300.0]);
    let ncx = case.x(&[1, 4, 1], &[1.0, 2.0, 3.0, 4.0]).set("data_format", text("NCX")).bias(&[0.5, -0.5]);
    ncx.gives(&[21.5, 4299.5]);
}

#[test]
fn auto_pad_is_read_in_any_case() {
    for word in ["same_upper", "SAME_UPPER", "Same_Upper"] {
        stride_2().set("auto_pad", text(word)).gives(&[1.0, 10.0, 102.0, 20.0, 203.0, 30.0]);
    }
    for word in ["same_lower", "SAME_LOWER"] {
        stride_2().set("auto_pad", text(word)).gives(&[10.0, 102.0, 20.0, 203.0, 30.0, 300.0]);
    }
    let cropped = stride_2().set("pads_begin", ints([1])).set("pads_end", ints([2]));
    for word in ["None", "NONE", "none"] {
        cropped.clone().set("auto_pad", text(word)).gives(&[10.0, 102.0, 20.0, 203.0]);
    }
    for word in ["valid", "VALID"] {
        cropped.clone().set("auto_pad", text(word)).gives(&[1.0, 10.0, 102.0, 20.0, 203.0, 30.0, 300.0]);
    }
    for word in ["", "notset", "SAME", "explicit"] {
        stride_2().set("auto_pad", text(word)).is_refused("bad-auto-pad");
    }
}

#[test]
fn same_leaves_output_padding_out_of_its_total() {
    let case = stride_2().set("output_padding", ints([1]));
    case.clone().set("auto_pad", text("same_upper")).gives(&[1.0, 10.0, 102.0, 20.0, 203.0, 30.0, 300.0]);
    case.set("auto_pad", text("same_lower")).gives(&[10.0, 102.0, 20.0, 203.0, 30.0, 300.0, 0.0]);
}

#[test]
fn same_with_a_stride_beyond_the_kernel_keeps_the_full_size() {
    let full = [1.0, 10.0, 100.0, 0.0, 0.0, 2.0, 20.0, 200.0, 0.0, 0.0, 3.0, 30.0, 300.0];
    for word in ["same_upper", "same_lower"] {
        stride_2().set("strides", ints([5])).set("auto_pad", text(word)).gives(&full);
    }
}

#[test]
fn an_output_shape_may_be_given_although_the_library_has_no_such_attribute() {
    let case = stride_2().set("pads_begin", ints([3])).output_size([5]);
    for word in ["None", "same_lower", "valid", "same_upper"] {
        case.clone().set("auto_pad", text(word)).gives(&[10.0, 102.0, 20.0, 203.0, 30.0]);
    }
    let padded = case.set("output_padding", ints([1]));
    padded.clone().set("auto_pad", text("same_upper")).gives(&[10.0, 102.0, 20.0, 203.0, 30.0]);
    padded.gives(&[102.0, 20.0, 203.0, 30.0, 300.0]);
    stride_2()
        .output_size([12])
        .gives(&[1.0, 10.0, 102.0, 20.0, 203.0, 30.0, 300.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    stride_2().output_size([1, 6, 1]).is_refused("bad-length");
    stride_2().output_size([-1]).is_refused("bad-value");
}

#[test]
fn output_padding_is_unbounded_in_the_text_and_bounded_by_the_stride_at_run_time() {
    let case = stride_2().set("output_padding", ints([2]));
    case.gives_under(Policy::Spec, &[1.0, 10.0, 102.0, 20.0, 203.0, 30.0, 300.0, 0.0, 0.0]);
    case.is_refused_under(Policy::Runtime, "output-padding-too-large");
    stride_2().set("output_padding", ints([-1])).is_refused("bad-value");
}

#[test]
fn groups_must_be_positive_and_divide_the_input_channels() {
    for groups in [0, -1] {
        stride_2().set("groups", int(groups)).is_refused("bad-value");
    }
    stride_2().set("groups", int(2)).is_refused("bad-groups");
}

#[test]
fn an_empty_output_is_accepted_and_a_negative_one_refused() {
    let pads = |end: i64| stride_2().set("pads_begin", ints([3])).set("pads_end", ints([end]));
    for policy in POLICIES {
        let y = pads(4).run(policy).unwrap();
        assert_eq!((y.shape(), y.data()), ([1, 0, 1].as_slice(), [].as_slice()));
    }
    pads(5).is_refused("empty-output");
}

#[test]
fn any_rank_from_three_up_is_accepted() {
    let four = |value| ints([value; 4]);
    let case = Case::new(OnednnGraph)
        .x(&[1, 1, 1, 1, 2, 1], &[1.0, 2.0])
        .w(&[1, 2, 1, 2, 1, 1], &[1.0, 10.0, 100.0, 1000.0])
        .set("strides", four(1))
        .set("dilations", four(1))
        .set("pads_begin", four(0))
        .set("pads_end", four(0));
    case.gives(&[1.0, 12.0, 20.0, 100.0, 1200.0, 2000.0]);
    stride_2().x(&[1, 3], &[1.0; 3]).is_refused("bad-rank");
    stride_2().w(&[3, 1], &[1.0; 3]).is_refused("bad-rank");
}

#[test]
fn lists_have_one_entry_per_spatial_axis() {
    for name in ["output_padding", "strides", "dilations", "pads_begin", "pads_end"] {
        stride_2().set(name, ints([1, 1])).is_refused("bad-length");
    }
}

#[test]
fn negative_pads_are_refused_even_where_they_would_be_ignored() {
    for name in ["pads_begin", "pads_end"] {
        stride_2().set(name, ints([-1])).is_refused("bad-value");
        stride_2().set(name, ints([-1])).set("auto_pad", text("valid")).is_refused("bad-value");
    }
}

#[test]
fn four_attributes_are_required_even_where_auto_pad_makes_them_unused() {
    for name in ["strides", "pads_begin", "pads_end", "dilations"] {
        stride_2().set("auto_pad", text("valid")).unset(name).is_refused("missing-attribute");
    }
    stride_2().set("kernel_shape", ints([3])).is_refused("unknown-attribute");
    for name in ["strides", "dilations"] {
        stride_2().set(name, ints([0])).is_refused("bad-value");
    }
}

#[test]
fn tensors_that_do_not_fit_together_are_refused() {
    stride_2().x(&[1, 1, 3], &[1.0; 3]).is_refused("channel-mismatch");
    assert_eq!(stride_2().resolve_with_bias(&[2]).unwrap_err().kind(), "bias-shape");
    for dtype in DType::ALL {
        let allowed = matches!(dtype, DType::F32 | DType::F16 | DType::Bf16);
        for policy in POLICIES {
            assert_eq!(stride_2().resolve_as(dtype, policy).is_ok(), allowed, "{dtype}");
        }
    }
}
