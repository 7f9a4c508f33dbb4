//! Layers of small integers, whose sums are exact in any order: results must equal the reference's, bit for bit. Those of Winograd's
//! filtering are a rounding away.

use std::sync::Arc;

use outstride::{Activation, Element, Path, Tensor, TensorView, bf16, f16};

use crate::layers::{Layer, Numbers, PATHS, Scoped, expected, isas, nearest, prepare};

/// Whether two results are the same; all NaN are.
fn same<T: Element<Wide = f64>>(a: T, b: T) -> bool {
    a == b || (a.widen().is_nan() && b.widen().is_nan())
}

/// Whether they are the same but for roundings, much smaller than the integers that results are made of.
fn nearly_same<T: Element<Wide = f64>>(a: T, b: T) -> bool {
    same(a, b) || (a.widen() - b.widen()).abs() < 0.01
}

/// Runs a layer every way there is and compares with the reference. Returns whether dilated taps were taken for neighbours.
fn check<T: Element<Wide = f64>>(numbers: &mut Numbers, layer: &Layer, special: Option<f64>) -> bool {
    let geometry = layer.geometry();
    let mut x: Vec<T> = numbers.values(geometry.input_shape().iter().product());
    let mut w: Vec<T> = numbers.values(geometry.filter_shape().iter().product());
    let bias: Vec<T> = numbers.values(layer.out_channels);
    let bias = (numbers.below(4) > 0).then_some(bias.as_slice());
    if let Some(special) = special {
        let target = if numbers.below(2) == 0 { &mut x } else { &mut w };
        let index = numbers.below(target.len());
        target[index] = nearest(special);
    }
    let activation =
        numbers.pick(&[Activation::Identity, Activation::Relu, Activation::Clip { min: -2.0, max: 5.0 }]);
    let expected = expected(layer, &x, &w, bias, activation);
    let (x_shape, _) = layer.stored(&geometry.input_shape());
    let (y_shape, _) = layer.stored(&geometry.output_shape());
    let mut by_lattices = false;
    for isa in isas() {
        for path in PATHS {
            let op = prepare(layer, &w, bias, isa, path).with_activation(activation);
            let plan = op.plan(&x_shape).unwrap();
            by_lattices |= plan.lattices().iter().any(|&apart| apart > 1);
            // Where the path was not forced, parts of the layer may take different ones.
            let is_exact = path.is_some_and(|path| path != Path::Winograd && path == plan.path());
            let agree = if is_exact { same } else { nearly_same };
            for threads in [1, 3] {
                let op = op.clone().with_executor(Arc::new(Scoped(threads)));
                let mut y = Tensor::from_vec(&y_shape, vec![nearest(-77.0); expected.len()]).unwrap();
                op.run_into(TensorView::from_slice(&x_shape, &x).unwrap(), y.view_mut()).unwrap();
                let differs = y.data().iter().zip(&expected).position(|(a, b)| !agree(*a, *b));
                if let Some(index) = differs {
                    panic!(
                        "{isa} {path:?} {threads} threads: element {index} is {:?}, expected {:?}\n{layer:?}\n{}",
                        y.data()[index],
                        expected[index],
                        plan.explain(),
                    );
                }
            }
        }
    }
    by_lattices
}

#[test]
fn small_layers_equal_the_reference() {
    let mut numbers = Numbers(0x5eed);
    for _ in 0..400 {
        let layer = Layer::draw(&mut numbers, 0);
        check::<f32>(&mut numbers, &layer, None);
        let layer = Layer::draw(&mut numbers, 0);
        check::<bf16>(&mut numbers, &layer, None);
        check::<f16>(&mut numbers, &layer, None);
    }
}

#[test]
fn long_rows_of_far_reaching_taps_equal_the_reference() {
    let mut numbers = Numbers(0x10c);
    let layer = Layer::of_long_rows(1500, 9, 32, 2);
    check::<f32>(&mut numbers, &layer, None);
    check::<f32>(&mut numbers, &layer, Some(f64::INFINITY));
}

#[test]
fn larger_layers_equal_the_reference() {
    let mut numbers = Numbers(0xbeef);
    let mut far = 0;
    for _ in 0..150 {
        let layer = Layer::draw(&mut numbers, 1);
        far += usize::from(check::<f32>(&mut numbers, &layer, None));
        let layer = Layer::draw(&mut numbers, 1);
        far += usize::from(check::<f64>(&mut numbers, &layer, None));
        let layer = Layer::draw(&mut numbers, 1);
        far += usize::from(check::<bf16>(&mut numbers, &layer, None));
        let layer = Layer::draw(&mut numbers, 1);
        far += usize::from(check::<f16>(&mut numbers, &layer, None));
    }
    assert!(far > 20, "only {far} layers had taps far from each other");
}

/// Too large for one box, and cut where blocks of rows end.
#[test]
fn large_batches_equal_the_reference() {
    let mut numbers = Numbers(0xba7c4);
    for (batch, out_channels) in [(64, 32), (96, 32), (64, 20)] {
        let mut layer = Layer::draw(&mut numbers, 0);
        layer.become_batch(batch, 1000, out_channels);
        check::<f32>(&mut numbers, &layer, None);
        check::<bf16>(&mut numbers, &layer, None);
    }
}

/// With more weights than threads pass over together: they share the phases out.
#[test]
fn layers_of_many_phases_equal_the_reference() {
    let mut numbers = Numbers(0xfc8);
    for (stride, input, channels) in [(16, 5, 21), (8, 6, 40), (16, 3, 4)] {
        for channels_first in [true, false] {
            let mut layer = Layer::draw(&mut numbers, 0);
            layer.channels_first = channels_first;
            layer.become_many_phases(stride, input, channels);
            check::<f32>(&mut numbers, &layer, None);
            check::<bf16>(&mut numbers, &layer, None);
            check::<f32>(&mut numbers, &layer, Some(f64::NAN));
        }
    }
}

/// More rows than products are kept of at a time.
#[test]
fn tall_maps_equal_the_reference() {
    let mut numbers = Numbers(0x7a11);
    for input in [[300, 5], [150, 16], [70, 37]] {
        for channels_first in [true, false] {
            let mut layer = Layer::draw(&mut numbers, 0);
            layer.channels_first = channels_first;
            layer.become_tall(input);
            check::<f32>(&mut numbers, &layer, None);
            check::<f64>(&mut numbers, &layer, Some(f64::NAN));
        }
    }
}

#[test]
fn many_outputs_that_no_tap_reaches_equal_the_reference() {
    let mut numbers = Numbers(0x9a9);
    for channels_first in [true, false] {
        let mut layer = Layer::draw(&mut numbers, 0);
        layer.channels_first = channels_first;
        layer.become_sparse();
        check::<f32>(&mut numbers, &layer, None);
        layer.axes.reverse();
        layer.pads_end.reverse();
        check::<bf16>(&mut numbers, &layer, None);
    }
}

/// Rows of both axes are stored together if they are short, whether phases share panels or not.
#[test]
fn short_rows_with_gaps_equal_the_reference() {
    let mut numbers = Numbers(0x6a9);
    for input in [[9, 2], [30, 1], [5, 70]] {
        for out_channels in [3, 20, 40] {
            let mut layer = Layer::draw(&mut numbers, 0);
            layer.channels_first = true;
            layer.become_gaps(input, out_channels);
            check::<f32>(&mut numbers, &layer, None);
            check::<bf16>(&mut numbers, &layer, None);
            check::<f16>(&mut numbers, &layer, Some(f64::NAN));
        }
    }
}

#[test]
fn non_finite_values_stay_where_they_belong() {
    let mut numbers = Numbers(0xface);
    for special in [f64::INFINITY, f64::NAN, f64::NEG_INFINITY] {
        for _ in 0..150 {
            let layer = Layer::draw(&mut numbers, 0);
            check::<f32>(&mut numbers, &layer, Some(special));
            check::<f64>(&mut numbers, &layer, Some(special));
            check::<bf16>(&mut numbers, &layer, Some(special));
            check::<f16>(&mut numbers, &layer, Some(special));
        }
        for _ in 0..40 {
            let layer = Layer::draw(&mut numbers, 1);
            check::<f32>(&mut numbers, &layer, Some(special));
            check::<f64>(&mut numbers, &layer, Some(special));
        }
    }
}
