//! OpenVINO, both operators.

use outstride::DialectName::{Openvino, OpenvinoGroup};
use outstride::openvino::output_shape;
use outstride::{DType, Policy, TensorType};

use crate::case::{Case, POLICIES, ints, text};

const FULL: [f32; 7] = [1.0, 10.0, 102.0, 20.0, 203.0, 30.0, 300.0];

/// The same case for both operators; with one channel the data is the same.
fn in_both(build: impl Fn(Case) -> Case) -> [Case; 2] {
    [Openvino, OpenvinoGroup].map(|dialect| build(Case::with_stride_2(dialect)))
}

#[test]
fn without_same_the_text_splits_the_total_and_the_runtime_starts_as_written() {
    let (derived, from_zero) = ([10.0, 102.0, 20.0, 203.0, 30.0], [1.0, 10.0, 102.0, 20.0, 203.0]);
    for word in ["explicit", "valid"] {
        for case in in_both(|case| case.set("auto_pad", text(word)).output_size([5])) {
            case.gives_under(Policy::Spec, &derived);
            case.gives_under(Policy::Runtime, &from_zero);
            let padded = case.set("pads_begin", ints([1])).set("pads_end", ints([3]));
            padded.gives_under(Policy::Spec, &derived);
            padded.gives_under(Policy::Runtime, if word == "explicit" { &derived } else { &from_zero });
        }
    }
}

#[test]
fn the_odd_element_goes_where_the_formula_puts_it() {
    for case in in_both(|case| case.output_size([6])) {
        case.clone().set("auto_pad", text("same_upper")).gives(&FULL[1..]);
        case.set("auto_pad", text("same_lower")).gives(&FULL[..6]);
    }
}

#[test]
fn auto_pad_without_an_output_shape_pads_nothing() {
    for word in ["same_upper", "same_lower", "valid", "SAME_UPPER", "Valid"] {
        for case in in_both(|case| {
            case.set("auto_pad", text(word)).set("pads_begin", ints([2])).set("pads_end", ints([1]))
        }) {
            case.gives(&FULL);
        }
    }
    for case in in_both(|case| case.set("pads_begin", ints([2])).set("pads_end", ints([1]))) {
        case.clone().set("auto_pad", text("EXPLICIT")).gives(&FULL[2..6]);
        case.gives(&FULL[2..6]);
    }
    for word in ["notset", "", "None", "SAME"] {
        for case in in_both(|case| case.set("auto_pad", text(word))) {
            case.is_refused("bad-auto-pad");
        }
    }
}

#[test]
fn an_output_shape_beyond_the_full_extent_ends_in_zeros() {
    let expected = [FULL.as_slice(), &[0.0; 5]].concat();
    for word in ["explicit", "same_upper", "same_lower", "valid"] {
        for case in in_both(|case| case.set("auto_pad", text(word)).output_size([12])) {
            case.gives(&expected);
        }
    }
}

#[test]
fn output_padding_has_no_upper_bound() {
    for case in in_both(|case| case.set("output_padding", ints([3]))) {
        case.gives(&[FULL.as_slice(), &[0.0; 3]].concat());
    }
}

#[test]
fn negative_pads_and_output_padding_are_refused() {
    for name in ["pads_begin", "pads_end", "output_padding"] {
        for case in in_both(|case| case.set(name, ints([-1]))) {
            case.is_refused("bad-value");
        }
    }
}

#[test]
fn an_empty_output_is_accepted_and_a_negative_one_refused() {
    for policy in POLICIES {
        for case in in_both(|case| case.set("pads_begin", ints([3])).set("pads_end", ints([4]))) {
            assert_eq!(case.run(policy).unwrap().shape(), [1, 1, 0]);
        }
        for case in in_both(|case| case.output_size([0])) {
            assert_eq!(case.run(policy).unwrap().shape(), [1, 1, 0]);
        }
    }
    for case in in_both(|case| case.set("pads_begin", ints([4])).set("pads_end", ints([4]))) {
        case.is_refused("empty-output");
    }
    for case in in_both(|case| case.output_size([-1])) {
        case.is_refused("bad-value");
    }
}

#[test]
fn required_lists_may_be_empty_but_not_absent() {
    for case in in_both(|case| {
        case.set("strides", ints([]))
            .set("dilations", ints([]))
            .set("pads_begin", ints([]))
            .set("pads_end", ints([]))
    }) {
        case.gives(&[1.0, 12.0, 123.0, 230.0, 300.0]);
    }
    for name in ["strides", "dilations", "pads_begin", "pads_end"] {
        for case in in_both(|case| case.unset(name)) {
            case.is_refused("missing-attribute");
        }
        for case in in_both(|case| case.set(name, ints([1, 1]))) {
            case.is_refused("bad-length");
        }
    }
    for name in ["strides", "dilations"] {
        for case in in_both(|case| case.set(name, ints([0]))) {
            case.is_refused("bad-value");
        }
    }
}

#[test]
fn integers_are_summed_exactly_and_saturate_and_f64_keeps_its_bits() {
    let product = |x: f32, w: f32| Case::new(Openvino).x(&[1, 1, 1], &[x]).w(&[1, 1, 1], &[w]);
    for policy in POLICIES {
        let large = |value: f32| if value == 1.0 { (1 << 24) + 1 } else { value as i32 };
        assert_eq!(product(100.0, 1.0).run_as(policy, large).unwrap().data(), [1677721700]);
        assert_eq!(product(100.0, 2.0).run_as(policy, |value| value as i8).unwrap().data(), [127]);
        assert_eq!(product(-100.0, 2.0).run_as(policy, |value| value as i8).unwrap().data(), [-128]);
        assert_eq!(product(200.0, 2.0).run_as(policy, |value| value as u8).unwrap().data(), [255]);
        let y = product(3.0, 1.0).run_as(policy, |value| f64::from(value) / 3.0 + 2f64.powi(-40)).unwrap();
        assert_eq!(y.data(), [(1.0 + 2f64.powi(-40)) * (1.0 / 3.0 + 2f64.powi(-40))]);
    }
}

#[test]
fn every_numeric_type_is_accepted_and_booleans_are_not() {
    for policy in POLICIES {
        for dtype in DType::ALL {
            for case in in_both(|case| case) {
                let found = case.resolve_as(dtype, policy).map_err(|error| error.kind());
                let numeric = dtype != DType::Bool;
                assert_eq!(found, numeric.then(|| vec![1, 1, 7]).ok_or("unsupported-dtype"), "{dtype}");
            }
        }
    }
    for case in in_both(|case| case) {
        assert_eq!(case.resolve_with_bias(&[1]).unwrap_err().kind(), "unexpected-tensor");
    }
}

#[test]
fn one_group_is_legal() {
    let case = Case::new(OpenvinoGroup)
        .x(&[1, 2, 1], &[1.0, 2.0])
        .w(&[1, 2, 3, 1], &[1.0, 2.0, 3.0, 10.0, 20.0, 30.0]);
    case.gives(&[21.0, 42.0, 63.0]);
}

#[test]
fn groups_are_the_first_axis_of_the_filter() {
    let case = Case::new(OpenvinoGroup)
        .x(&[1, 4, 1], &[1.0, 2.0, 3.0, 4.0])
        .w(&[2, 2, 1, 1], &[1.0, 10.0, 100.0, 1000.0]);
    case.gives(&[21.0, 4300.0]);
    case.clone().x(&[1, 3, 1], &[1.0; 3]).is_refused("channel-mismatch");
    case.w(&[0, 2, 1, 1], &[]).is_refused("bad-value");
}

#[test]
fn the_spatial_axes_of_a_grouped_filter_are_in_the_order_of_the_data() {
    let case = Case::new(OpenvinoGroup)
        .x(&[1, 1, 1, 2], &[1.0, 2.0])
        .w(&[1, 1, 1, 2, 3], &[1.0, 10.0, 100.0, 2.0, 20.0, 200.0])
        .set("strides", ints([1, 1]))
        .set("dilations", ints([1, 1]))
        .set("pads_begin", ints([0, 0]))
        .set("pads_end", ints([0, 0]));
    assert_eq!(case.run(Policy::Spec).unwrap().shape(), [1, 1, 2, 4]);
    case.gives(&[1.0, 12.0, 120.0, 200.0, 2.0, 24.0, 240.0, 400.0]);
}

#[test]
fn ranks_are_three_to_five() {
    let [case, grouped] = in_both(|case| {
        let lists = ["strides", "dilations", "pads_begin", "pads_end"];
        lists.into_iter().fold(case, |case, name| case.set(name, ints([])))
    });
    for rank in 3..=5 {
        case.clone().x(&vec![1; rank], &[5.0]).w(&vec![1; rank], &[7.0]).gives(&[35.0]);
        grouped.clone().x(&vec![1; rank], &[5.0]).w(&vec![1; rank + 1], &[7.0]).gives(&[35.0]);
    }
    for rank in [2, 6] {
        case.clone().x(&vec![1; rank], &[1.0]).w(&vec![1; rank], &[1.0]).is_refused("bad-rank");
        grouped.clone().x(&vec![1; rank], &[1.0]).w(&vec![1; rank + 1], &[1.0]).is_refused("bad-rank");
    }
    case.x(&[1; 4], &[1.0]).is_refused("bad-rank");
    grouped.x(&[1; 3], &[1.0]).w(&[1; 3], &[1.0]).is_refused("bad-rank");
}

#[test]
fn an_empty_input_gives_what_the_formula_says() {
    for policy in POLICIES {
        for dialect in [Openvino, OpenvinoGroup] {
            let y = Case::new(dialect).x(&[1, 1, 0], &[]).run(policy).unwrap();
            assert_eq!((y.shape(), y.data()), ([1, 1, 2].as_slice(), [0.0, 0.0].as_slice()));
        }
    }
}

#[test]
fn no_channels_give_zeros_or_nothing() {
    for policy in POLICIES {
        let y = Case::new(Openvino).x(&[1, 0, 3], &[]).w(&[0, 2, 3], &[]).run(policy).unwrap();
        assert_eq!((y.shape(), y.data()), ([1, 2, 5].as_slice(), [0.0; 10].as_slice()));
        let y = Case::new(Openvino).w(&[1, 0, 3], &[]).run(policy).unwrap();
        assert_eq!((y.shape(), y.data()), ([1, 0, 5].as_slice(), [].as_slice()));
    }
}

#[test]
fn the_third_input_is_a_list_of_integers_without_batch_and_channels() {
    let check = |dtype, shape: &[usize]| output_shape(&TensorType::new(dtype, shape), &[5, 6]);
    for dtype in DType::ALL {
        let found = check(dtype, &[2]).map_err(|error| error.kind());
        assert_eq!(found, dtype.is_integer().then(|| vec![5, 6]).ok_or("unsupported-dtype"), "{dtype}");
    }
    assert_eq!(check(DType::I64, &[1, 2]).unwrap_err().kind(), "bad-rank");
    for case in in_both(|case| case.output_size([1, 1, 6])) {
        case.is_refused("bad-length");
    }
    for case in in_both(|case| case.output_size([])) {
        case.is_refused("bad-length");
    }
}
