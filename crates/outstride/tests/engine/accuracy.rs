//! Rounding errors are no worse than those of plain summation.

use outstride::{Activation, TensorView};

use crate::layers::{Layer, Numbers, PATHS, expected, isas, prepare};

#[test]
fn the_error_stays_within_that_of_plain_summation() {
    let mut numbers = Numbers(0xacc);
    for _ in 0..40 {
        let layer = Layer::draw(&mut numbers, 1);
        let geometry = layer.geometry();
        let x: Vec<f32> = numbers.reals(geometry.input_shape().iter().product());
        let w: Vec<f32> = numbers.reals(geometry.filter_shape().iter().product());
        let exact = expected(&layer, &x, &w, None, Activation::Identity);
        let kernel: usize = geometry.axes().iter().map(|axis| axis.kernel).product();
        let terms = (geometry.in_channels_per_group() * kernel) as f64;
        // Every partial sum of n products of values below 1 is below n: each addition errs by at most n·ε/2.
        let bound = terms * terms * f64::from(f32::EPSILON) / 2.0 + f64::from(f32::EPSILON);
        let (shape, _) = layer.stored(&geometry.input_shape());
        for isa in isas() {
            for path in PATHS {
                let op = prepare(&layer, &w, None, isa, path);
                let y = op.run(TensorView::from_slice(&shape, &x).unwrap()).unwrap();
                for (&got, &want) in y.data().iter().zip(&exact) {
                    let error = (f64::from(got) - f64::from(want)).abs();
                    assert!(error <= bound, "{isa} {path:?}: error {error:e} above {bound:e}, {layer:?}");
                }
            }
        }
    }
}
