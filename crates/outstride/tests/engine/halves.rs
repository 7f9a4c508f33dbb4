//! 16-bit floats: sums in 32 bits, rounded once.

use std::sync::Arc;

use outstride::{
    Activation, Element, Options, Path, Precision, Tensor, TensorView, TensorViewMut, bf16, f16,
};

use crate::layers::{Layer, Numbers, PATHS, Scoped, expected, isas, nearest, prepare, prepare_with};

/// The unit in the last place of a value of a type with this many bits of significand and this least exponent.
fn ulp(value: f64, bits: i32, least: i32) -> f64 {
    2f64.powi((value.abs().log2().floor() as i32).max(least) - bits + 1)
}

fn errs_by_less_than_one_place<T: Element<Wide = f64>>(seed: u64, bits: i32, least: i32) {
    let mut numbers = Numbers(seed);
    for round in 0..40 {
        let mut layer = Layer::draw(&mut numbers, 1);
        if round % 4 == 0 {
            layer.become_wide(numbers.pick(&[64, 100, 256]), 40);
        }
        let geometry = layer.geometry();
        let scale = 2f64.powi(numbers.pick(&[0, 0, -30, 8]));
        let x: Vec<T> = numbers.reals(geometry.input_shape().iter().product());
        let x: Vec<T> = x.into_iter().map(|value| nearest(value.widen() * scale)).collect();
        let w: Vec<T> = numbers.reals(geometry.filter_shape().iter().product());
        let wide = |values: &[T]| values.iter().map(|value| value.widen()).collect::<Vec<f64>>();
        let exact = expected(&layer, &wide(&x), &wide(&w), None, Activation::Identity);
        let size = |values: &[T]| values.iter().map(|value| value.widen().abs()).collect::<Vec<f64>>();
        // What the sum of the terms' magnitudes loses in 32 bits.
        let terms = expected(&layer, &size(&x), &size(&w), None, Activation::Identity);
        let (shape, _) = layer.stored(&geometry.input_shape());
        for isa in isas() {
            for path in PATHS {
                let y = prepare(&layer, &w, None, isa, path);
                let y = y.run(TensorView::from_slice(&shape, &x).unwrap()).unwrap();
                for ((got, &exact), &terms) in y.data().iter().zip(&exact).zip(&terms) {
                    let bound = ulp(exact, bits, least) / 2.0 + terms * 2f64.powi(-18);
                    let error = (got.widen() - exact).abs();
                    assert!(
                        error <= bound || got.widen() == nearest::<T>(exact).widen(),
                        "{isa} {path:?}: {got:?} for {exact:e}, {layer:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn bf16_is_rounded_once() {
    errs_by_less_than_one_place::<bf16>(0xb16, 8, -126);
}

#[test]
fn f16_is_rounded_once() {
    errs_by_less_than_one_place::<f16>(0xf16, 11, -14);
}

/// So many weights that they are kept in 16 bits, and read so where there are few positions.
fn heavy_layers_are_exact<T: Element<Wide = f64>>(seed: u64) {
    let mut numbers = Numbers(seed);
    for round in 0..12 {
        let layer = Layer::draw_heavy(&mut numbers);
        let geometry = layer.geometry();
        let mut x: Vec<T> = numbers.values(geometry.input_shape().iter().product());
        let mut w: Vec<T> = numbers.values(geometry.filter_shape().iter().product());
        match round % 4 {
            0 => *numbers.one_of(&mut x) = nearest(f64::INFINITY),
            1 => *numbers.one_of(&mut w) = nearest(f64::NEG_INFINITY),
            _ => (),
        }
        let expected = expected(&layer, &x, &w, None, Activation::Identity);
        let (shape, _) = layer.stored(&geometry.input_shape());
        for isa in isas() {
            for path in PATHS {
                let op = prepare(&layer, &w, None, isa, path);
                let y = op.run(TensorView::from_slice(&shape, &x).unwrap()).unwrap();
                for (got, expected) in y.data().iter().zip(&expected) {
                    let (got, expected) = (got.widen(), expected.widen());
                    let same = got == expected || got.is_nan() && expected.is_nan();
                    assert!(same, "{isa} {path:?}: {got:e} for {expected:e}, {layer:?}");
                }
            }
        }
    }
}

#[test]
fn many_weights_of_bf16_are_exact() {
    heavy_layers_are_exact::<bf16>(0xb16b);
}

#[test]
fn many_weights_of_f16_are_exact() {
    heavy_layers_are_exact::<f16>(0xf16f);
}

#[test]
fn weights_read_in_16_bits_give_the_same_bits_as_widened_ones() {
    let mut numbers = Numbers(0x16b);
    let mut by_two_kernels = 0;
    for _ in 0..6 {
        let one = Layer { batch: 1, ..Layer::draw_heavy(&mut numbers) };
        // Too many positions to read weights in 16 bits for them.
        let many = Layer { batch: 50, ..one.clone() };
        let x: Vec<f16> = numbers.reals(many.geometry().input_shape().iter().product());
        let w: Vec<f16> = numbers.reals(many.geometry().filter_shape().iter().product());
        let shape = |layer: &Layer| layer.stored(&layer.geometry().input_shape()).0;
        for isa in isas() {
            let op = prepare(&one, &w, None, isa, Some(Path::Panel));
            let kernel_of = |layer: &Layer| op.plan(&shape(layer)).unwrap().kernel().to_owned();
            by_two_kernels += usize::from(kernel_of(&one) != kernel_of(&many));
            let of_many = op.run(TensorView::from_slice(&shape(&many), &x).unwrap()).unwrap();
            let first = &x[..x.len() / many.batch];
            let of_one = op.run(TensorView::from_slice(&shape(&one), first).unwrap()).unwrap();
            assert_eq!(of_one.data(), &of_many.data()[..of_one.data().len()], "{isa}: {one:?}");
        }
    }
    assert!(by_two_kernels > 10, "{by_two_kernels}");
}

#[test]
fn plans_do_not_depend_on_what_ran_before() {
    let mut numbers = Numbers(0x91a);
    for _ in 0..12 {
        let few = Layer { batch: 2, ..Layer::draw_heavy(&mut numbers) };
        let many = Layer { batch: 50, ..few.clone() };
        let w: Vec<f16> = numbers.reals(few.geometry().filter_shape().iter().product());
        for isa in isas() {
            let op = prepare(&few, &w, None, isa, Some(Path::Panel)).with_executor(Arc::new(Scoped(8)));
            let plan_of = |layer: &Layer| {
                let plan = op.plan(&layer.stored(&layer.geometry().input_shape()).0).unwrap();
                (plan.kernel().to_owned(), plan.tasks(), plan.workspace_bytes())
            };
            let before = plan_of(&few);
            // These have the weights widened.
            plan_of(&many);
            assert_eq!(plan_of(&few), before, "{isa}: {few:?}");
        }
    }
}

/// A layer of one position whose output is a sum over channels.
fn sum_layer(terms: usize) -> Layer {
    let mut layer = Layer::draw(&mut Numbers(1), 0);
    layer.become_identity(1);
    layer.in_channels = terms;
    layer
}

#[test]
fn extremes_behave_as_a_wide_sum_rounded_once() {
    let huge = bf16::MAX.to_f32();
    let least = bf16::MIN_POSITIVE_SUBNORMAL.to_f32();
    let tiny = 2f32.powi(-40);
    let cases: [(&[f32], &[f32], f32, f32); 11] = [
        // Too large on the way only.
        (&[huge, huge, -huge], &[1.0, 1.0, 1.0], 0.0, huge),
        (&[huge, huge], &[1.0, 1.0], 0.0, f32::INFINITY),
        (&[huge, -huge, 1.0], &[2.0, 2.0, 1.0], 0.0, 1.0),
        (&[least], &[1.0], 0.0, least),
        (&[least, least], &[1.0, 1.0], 0.0, 2.0 * least),
        (&[2f32.powi(-100), 1.0], &[2f32.powi(-30), 0.0], 0.0, 2f32.powi(-130)),
        (&[f32::NAN], &[0.0], 0.0, f32::NAN),
        (&[1.0, f32::INFINITY], &[1.0, -1.0], 0.0, f32::NEG_INFINITY),
        // The bias decides.
        (&[1.0], &[0.0], 3.0 * least, 3.0 * least),
        (&[tiny], &[tiny], -tiny * tiny * (1.0 + 1.0 / 128.0), -tiny * tiny / 128.0),
        (&[1.0], &[1.0], f32::INFINITY, f32::INFINITY),
    ];
    for (x, w, bias, sum) in cases {
        // Also with enough channels for matrix tiles.
        for channels in [x.len(), 40] {
            let layer = sum_layer(channels);
            let padded = |values: &[f32]| {
                let values = values.iter().copied().chain(std::iter::repeat(0.0));
                values.take(channels).map(bf16::from_f32).collect::<Vec<_>>()
            };
            let (x, w) = (padded(x), padded(w));
            for isa in isas() {
                for path in PATHS {
                    let bias = [bf16::from_f32(bias)];
                    let op = prepare(&layer, &w, Some(&bias), isa, path);
                    let y = op.run(TensorView::from_slice(&[1, channels, 1], &x).unwrap()).unwrap();
                    let got = y.data()[0].to_f32();
                    assert!(
                        got == sum || got.is_nan() && sum.is_nan(),
                        "{isa} {path:?}: {got:e} for {sum:e} of {channels} channels"
                    );
                }
            }
        }
    }
}

#[test]
fn outputs_and_bias_may_stay_wide() {
    let mut numbers = Numbers(0x32);
    for _ in 0..30 {
        let layer = Layer::draw(&mut numbers, 1);
        let geometry = layer.geometry();
        let x: Vec<bf16> = numbers.values(geometry.input_shape().iter().product());
        let w: Vec<bf16> = numbers.values(geometry.filter_shape().iter().product());
        // More bits than a bf16 has.
        let bias: Vec<f32> = (0..layer.out_channels).map(|channel| 1.0 + channel as f32 / 4096.0).collect();
        let wide = |values: &[bf16]| values.iter().map(|value| value.to_f32()).collect::<Vec<f32>>();
        let expected = expected(&layer, &wide(&x), &wide(&w), Some(&bias), Activation::Identity);
        let (x_shape, _) = layer.stored(&geometry.input_shape());
        let (y_shape, _) = layer.stored(&geometry.output_shape());
        for isa in isas() {
            for path in PATHS {
                let op = crate::layers::prepare_wide(
                    &layer,
                    &w,
                    Some(&bias),
                    &Options { isa: Some(isa), path, ..Default::default() },
                );
                let mut y = vec![-77.0; expected.len()];
                let view = TensorViewMut::from_slice(&y_shape, &mut y).unwrap();
                op.run_wide_into(TensorView::from_slice(&x_shape, &x).unwrap(), view).unwrap();
                assert_eq!(y, expected, "{isa} {path:?} {layer:?}");
            }
        }
    }
}

#[test]
fn f32_is_rounded_to_bf16_only_where_that_is_asked_for() {
    let mut numbers = Numbers(0xb16c);
    let mut layer = Layer::draw(&mut numbers, 0);
    layer.become_wide(64, 40);
    let geometry = layer.geometry();
    let x: Vec<f32> = numbers.reals(geometry.input_shape().iter().product());
    let w: Vec<f32> = numbers.reals(geometry.filter_shape().iter().product());
    let exact = expected(&layer, &x, &w, None, Activation::Identity);
    let (shape, _) = layer.stored(&geometry.input_shape());
    let error = |precision: Precision| {
        let op = prepare_with(&layer, &w, None, &Options { precision, ..Default::default() });
        let y: Tensor<f32> = op.run(TensorView::from_slice(&shape, &x).unwrap()).unwrap();
        let errors = y.data().iter().zip(&exact).map(|(&got, &exact)| (got - exact).abs());
        errors.fold(0f32, f32::max)
    };
    assert!(error(Precision::Full) < 1e-4);
    // 256 products of numbers below one, each off by 2^-8 at most.
    assert!(error(Precision::Bf16Compute) < 1.0);
    if outstride::Isa::best() >= outstride::Isa::Amx {
        assert!(error(Precision::Bf16Compute) > 1e-3);
    }
}
