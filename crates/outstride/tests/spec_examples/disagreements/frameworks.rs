//! PyTorch, TensorFlow and JAX.

use outstride::DialectName::{Jax, Tensorflow, Torch};
use outstride::{AttributeValue, DType, Policy, Request};

use crate::case::{Case, POLICIES, int, ints, pairs, text, texts};

const FULL: [f32; 7] = [1.0, 10.0, 102.0, 20.0, 203.0, 30.0, 300.0];

fn flag(value: bool) -> AttributeValue {
    AttributeValue::Bool(value)
}

mod torch {
    use super::*;

    #[test]
    fn an_empty_output_is_refused_for_every_batch_size() {
        for batch in [1, 2] {
            let case = Case::new(Torch).set("padding", int(3)).w(&[2, 1, 3], &[1.0; 6]);
            case.x(&[batch, 2, 4], &vec![1.0; batch * 8]).is_refused("empty-output");
        }
    }

    #[test]
    fn of_the_integers_only_i64_is_accepted() {
        for policy in POLICIES {
            for dtype in DType::ALL {
                let found = Case::new(Torch).resolve_as(dtype, policy);
                assert_eq!(found.is_ok(), dtype.is_float() || dtype == DType::I64, "{dtype}");
            }
        }
        let y = Case::with_stride_2(Torch).run_as(Policy::Spec, |value| value as i64).unwrap();
        assert_eq!(y.data(), [1, 10, 102, 20, 203, 30, 300]);
        let wrapped = Case::new(Torch).x(&[1, 1, 1], &[1.0]).w(&[1, 1, 1], &[1.0]);
        let y = wrapped.run_as(Policy::Spec, |_| i64::MAX).unwrap();
        assert_eq!(y.data(), [i64::MAX.wrapping_mul(i64::MAX)]);
    }

    #[test]
    fn an_argument_is_one_integer_a_list_of_one_or_one_per_axis() {
        let case = Case::new(Torch).x(&[1, 1, 1, 2], &[1.0, 2.0]).w(&[1, 1, 1, 2], &[1.0, 10.0]);
        for stride in [int(2), ints([2]), ints([2, 2])] {
            case.clone().set("stride", stride).gives(&[1.0, 10.0, 2.0, 20.0]);
        }
        case.clone().set("stride", ints([2, 1])).gives(&[1.0, 12.0, 20.0]);
        case.set("stride", ints([2, 1, 1])).is_refused("bad-length");
    }

    #[test]
    fn padding_crops_both_ends_and_output_padding_extends_the_last() {
        let case = Case::with_stride_2(Torch);
        case.clone().set("padding", int(1)).gives(&FULL[1..6]);
        case.clone().set("padding", int(1)).set("output_padding", int(1)).gives(&FULL[1..]);
        case.clone().set("output_padding", int(1)).gives(&[FULL.as_slice(), &[0.0]].concat());
        case.clone().set("output_padding", int(2)).is_refused("output-padding-too-large");
        let dilated = case.set("output_padding", int(2)).set("dilation", int(3));
        assert_eq!(dilated.run(Policy::Spec).unwrap().shape(), [1, 1, 13]);
    }

    #[test]
    fn an_unbatched_input_gives_an_unbatched_output() {
        let y = Case::with_stride_2(Torch).x(&[1, 3], &[1.0, 2.0, 3.0]).run(Policy::Spec).unwrap();
        assert_eq!((y.shape(), y.data()), ([1, 7].as_slice(), FULL.as_slice()));
        Case::new(Torch).x(&[3], &[1.0; 3]).is_refused("bad-rank");
    }

    #[test]
    fn output_size_lies_between_the_smallest_size_and_one_stride_more() {
        let case = Case::with_stride_2(Torch).set("padding", int(1));
        case.clone().set("output_size", ints([5])).gives(&FULL[1..6]);
        case.clone().set("output_size", ints([6])).gives(&FULL[1..]);
        case.clone().set("output_size", ints([9, 9, 6])).gives(&FULL[1..]);
        for size in [4, 7, i64::MIN, i64::MAX] {
            case.clone().set("output_size", ints([size])).is_refused("bad-value");
        }
        case.set("output_size", ints([1, 6])).is_refused("bad-length");
    }

    #[test]
    fn what_it_does_not_take_is_refused() {
        let case = Case::new(Torch);
        for (name, value, kind) in [
            ("stride", int(0), "bad-value"),
            ("dilation", int(0), "bad-value"),
            ("groups", int(0), "bad-value"),
            ("groups", int(2), "bad-groups"),
            ("padding", int(-1), "bad-value"),
            ("output_padding", int(-1), "bad-value"),
            ("padding", text("same"), "bad-value"),
            ("padding_mode", text("reflect"), "bad-format"),
            ("strides", int(1), "unknown-attribute"),
        ] {
            case.clone().set(name, value).is_refused(kind);
        }
        assert!(case.clone().set("padding_mode", text("zeros")).run(Policy::Spec).is_ok());
        case.clone().x(&[1, 1, 0], &[]).is_refused("bad-value");
        case.clone().x(&[1, 0, 3], &[]).w(&[0, 1, 3], &[]).is_refused("bad-value");
        case.clone().w(&[1, 0, 3], &[]).is_refused("bad-value");
        case.clone().w(&[1, 1, 0], &[]).is_refused("bad-value");
        case.clone().x(&[1, 2, 3], &[1.0; 6]).is_refused("channel-mismatch");
        case.clone().x(&[1; 6], &[1.0]).w(&[1; 6], &[1.0]).is_refused("bad-rank");
        assert_eq!(case.resolve_with_bias(&[2]).unwrap_err().kind(), "bias-shape");
    }

    #[test]
    fn a_function_s_name_fixes_the_number_of_axes() {
        let named = |op: &str| {
            let mut case = Case::new(Torch);
            case.request = Request { op: Some(op.into()), ..case.request };
            case
        };
        named("conv_transpose1d").gives(&[1.0, 12.0, 123.0, 230.0, 300.0]);
        named("conv_transpose2d").is_refused("bad-rank");
        named("conv_transpose").is_refused("bad-format");
    }
}

mod tensorflow {
    use super::*;

    #[test]
    fn dilations_and_channels_first_are_accepted() {
        let case = Case::with_stride_2(Tensorflow).set("dilations", int(2));
        case.clone()
            .set("output_shape", ints([1, 9, 1]))
            .gives(&[1.0, 0.0, 12.0, 0.0, 123.0, 0.0, 230.0, 0.0, 300.0]);
        let first = Case::with_stride_2(Tensorflow)
            .set("data_format", text("NCW"))
            .x(&[1, 1, 3], &[1.0, 2.0, 3.0])
            .set("output_shape", ints([1, 1, 7]));
        first.gives(&FULL);
    }

    #[test]
    fn output_shape_must_agree_with_everything() {
        let case = Case::with_stride_2(Tensorflow);
        let shaped = |shape| case.clone().set("output_shape", ints(shape));
        for size in [7, 8] {
            assert!(shaped([1, size, 1]).run(Policy::Spec).is_ok());
        }
        for size in [6, 9, 0, -1, i64::MAX, i64::MIN] {
            shaped([1, size, 1]).is_refused("output-shape-inconsistent");
        }
        shaped([2, 7, 1]).is_refused("batch-mismatch");
        shaped([1, 7, 2]).is_refused("channel-mismatch");
        case.clone().set("output_shape", ints([7])).is_refused("bad-length");
        let same = case.set("padding", text("SAME"));
        for size in [5, 6] {
            assert!(same.clone().set("output_shape", ints([1, size, 1])).run(Policy::Spec).is_ok());
        }
        for size in [4, 7] {
            same.clone().set("output_shape", ints([1, size, 1])).is_refused("output-shape-inconsistent");
        }
    }

    #[test]
    fn same_crops_the_odd_element_at_the_end() {
        let same = Case::with_stride_2(Tensorflow).set("padding", text("SAME"));
        same.clone().set("output_shape", ints([1, 6, 1])).gives(&FULL[..6]);
        same.clone().set("output_shape", ints([1, 5, 1])).gives(&FULL[1..6]);
        same.unset("padding").set("output_shape", ints([1, 6, 1])).gives(&FULL[..6]);
    }

    #[test]
    fn explicit_pads_are_for_two_axes_in_the_order_of_the_data() {
        let case = Case::new(Tensorflow)
            .x(&[1, 1, 3, 1], &[1.0, 2.0, 3.0])
            .w(&[1, 3, 1, 1], &[1.0, 10.0, 100.0])
            .set("strides", ints([1, 2]));
        let last = case.clone().set("padding", pairs([[0, 0], [0, 0], [1, 2], [0, 0]]));
        last.set("output_shape", ints([1, 1, 4, 1])).gives(&FULL[1..5]);
        let first = case
            .clone()
            .x(&[1, 1, 1, 3], &[1.0, 2.0, 3.0])
            .set("data_format", text("NCHW"))
            .set("padding", pairs([[0, 0], [0, 0], [0, 0], [1, 2]]));
        first.set("output_shape", ints([1, 1, 1, 4])).gives(&FULL[1..5]);

        let shaped = case.set("output_shape", ints([1, 1, 4, 1]));
        shaped.clone().set("padding", pairs([[1, 0], [0, 0], [1, 2], [0, 0]])).is_refused("bad-value");
        shaped.clone().set("padding", pairs([[0, 0], [0, 0], [-1, 4], [0, 0]])).is_refused("bad-value");
        shaped.set("padding", pairs([[0, 0], [1, 2]])).is_refused("bad-length");
        let flat = Case::with_stride_2(Tensorflow).set("padding", pairs([[0, 0], [1, 2], [0, 0]]));
        flat.set("output_shape", ints([1, 4, 1])).is_refused("bad-length");
    }

    #[test]
    fn strides_may_carry_entries_for_batch_and_channels() {
        let case = Case::with_stride_2(Tensorflow);
        for strides in [int(2), ints([2]), ints([1, 2, 1])] {
            case.clone().set("strides", strides).gives(&FULL);
        }
        case.clone().set("strides", ints([1, 2, 2])).is_refused("bad-value");
        case.clone().set("dilations", ints([2, 1, 1])).is_refused("bad-value");
        case.clone().set("strides", ints([1, 2])).is_refused("bad-length");
        case.clone().unset("strides").is_refused("missing-attribute");
        case.unset("output_shape").is_refused("missing-attribute");
    }

    #[test]
    fn what_it_does_not_take_is_refused() {
        let case = Case::with_stride_2(Tensorflow);
        case.clone().set("padding", text("same")).is_refused("bad-auto-pad");
        case.clone().set("data_format", text("NXC")).is_refused("bad-format");
        case.clone().set("data_format", text("NHWC")).is_refused("bad-rank");
        case.clone().set("groups", int(1)).is_refused("unknown-attribute");
        assert_eq!(case.resolve_with_bias(&[1]).unwrap_err().kind(), "unexpected-tensor");
        for dtype in DType::ALL {
            let found = case.resolve_as(dtype, Policy::Spec);
            assert_eq!(found.is_ok(), dtype.is_float() || dtype == DType::I32, "{dtype}");
        }
    }
}

mod jax {
    use super::*;

    #[test]
    fn the_kernel_is_flipped_unless_transposed() {
        let case = Case::with_stride_2(Jax);
        case.clone().gives(&FULL);
        let flipped = [100.0, 10.0, 201.0, 20.0, 302.0, 30.0, 3.0];
        case.clone().set("transpose_kernel", flag(false)).gives(&flipped);
        case.unset("transpose_kernel").gives(&flipped);
    }

    #[test]
    fn transposing_the_kernel_swaps_its_channel_letters() {
        // Two inputs, one output, kernel size 1.
        let case = Case::new(Jax).x(&[1, 1, 2], &[1.0, 2.0]);
        case.clone().w(&[1, 1, 2], &[1.0, 10.0]).gives(&[21.0]);
        case.clone().w(&[1, 2, 1], &[1.0, 10.0]).is_refused("channel-mismatch");
        case.unset("transpose_kernel").w(&[1, 2, 1], &[1.0, 10.0]).gives(&[21.0]);
    }

    #[test]
    fn words_fit_the_output_to_the_stride() {
        let case = Case::with_stride_2(Jax);
        case.clone().set("padding", text("SAME")).gives(&FULL[..6]);
        case.clone().set("padding", text("VALID")).gives(&FULL);
        let wide = case.set("strides", ints([5]));
        let full = [1.0, 10.0, 100.0, 0.0, 0.0, 2.0, 20.0, 200.0, 0.0, 0.0, 3.0, 30.0, 300.0, 0.0, 0.0];
        wide.clone().set("padding", text("SAME")).gives(&full);
        wide.set("padding", text("VALID")).gives(&full);
        for word in ["SAME_LOWER", "same", "valid", ""] {
            Case::with_stride_2(Jax).set("padding", text(word)).is_refused("bad-auto-pad");
        }
    }

    #[test]
    fn pairs_pad_the_dilated_input_unless_they_are_consistent() {
        let with = |low, high| Case::with_stride_2(Jax).set("padding", pairs([[low, high]]));
        with(2, 2).gives(&FULL);
        with(1, 2).gives(&FULL[1..]);
        with(0, 1).gives(&FULL[2..6]);
        with(-1, 2).gives(&FULL[3..]);
        with(4, 3).gives(&[&[0.0, 0.0], FULL.as_slice(), &[0.0]].concat());

        let consistent = |low, high| with(low, high).set("use_consistent_padding", flag(true));
        consistent(0, 0).gives(&FULL);
        consistent(1, 2).gives(&FULL[1..5]);
        consistent(-2, -1).gives(&[&[0.0, 0.0], FULL.as_slice(), &[0.0]].concat());
        consistent(4, 4).is_refused("empty-output");
        with(-3, -3).is_refused("empty-output");
        Case::with_stride_2(Jax).set("padding", pairs([[0, 0], [0, 0]])).is_refused("bad-length");
    }

    #[test]
    fn dimension_numbers_may_be_any_permutation() {
        // lhs (C, W, N, H), rhs (W, O, H, I), out (H, N, C, W): two inputs, one output; strides and pairs follow lhs.
        let case = Case::new(Jax)
            .unset("transpose_kernel")
            .set("dimension_numbers", texts(["CWNH", "WOHI", "HNCW"]))
            .set("strides", ints([2, 1]))
            .x(&[2, 2, 1, 1], &[1.0, 2.0, 3.0, 4.0])
            .w(&[1, 1, 2, 2], &[1.0, 10.0, 100.0, 1000.0]);
        // Along W the values are x·w at stride 2; along H the kernel (flipped) has [100, 1000] first, then [1, 10].
        let y = case.run(Policy::Spec).unwrap();
        assert_eq!(y.shape(), [2, 1, 1, 4]);
        assert_eq!(y.data(), [3100.0, 0.0, 4200.0, 0.0, 31.0, 0.0, 42.0, 0.0]);
        for numbers in
            [["NHWC", "HWIO", "NHW"], ["NHHC", "HWIO", "NHWC"], ["NHWC", "HDIO", "NHWC"], ["", "", ""]]
        {
            case.clone().set("dimension_numbers", texts(numbers)).is_refused("bad-value");
        }
        case.set("dimension_numbers", texts(["CWNH", "WOHI"])).is_refused("bad-length");
    }

    #[test]
    fn integers_wrap() {
        let y = Case::new(Jax).run_as(Policy::Spec, |value| value as i8).unwrap();
        assert_eq!(y.data(), [1, 12, 123, 230u8 as i8, (300 - 256) as i8]);
        for dtype in DType::ALL {
            assert_eq!(
                Case::new(Jax).resolve_as(dtype, Policy::Spec).is_ok(),
                dtype != DType::Bool,
                "{dtype}"
            );
        }
    }

    #[test]
    fn what_it_does_not_take_is_refused() {
        let case = Case::new(Jax);
        case.clone().unset("strides").is_refused("missing-attribute");
        case.clone().unset("padding").is_refused("missing-attribute");
        case.clone().set("groups", int(1)).is_refused("unknown-attribute");
        case.clone().set("transpose_kernel", int(1)).is_refused("bad-value");
        case.clone()
            .x(&[1; 6], &[1.0])
            .w(&[1; 6], &[1.0])
            .set("strides", ints([1; 4]))
            .is_refused("missing-attribute");
        assert_eq!(case.resolve_with_bias(&[1]).unwrap_err().kind(), "unexpected-tensor");
    }
}
