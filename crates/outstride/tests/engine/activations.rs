//! The vectorised activations against their definitions, on values of every size.

use outstride::{Activation, Element, Isa, Tensor, TensorView, bf16, f16};

use crate::layers::{Layer, Numbers, expected, isas, nearest, prepare};

const ALL: [Activation; 8] = [
    Activation::Identity,
    Activation::Relu,
    Activation::Tanh,
    Activation::Sigmoid,
    Activation::HardSwish,
    Activation::LeakyRelu { alpha: 0.1 },
    Activation::Clip { min: -1.5, max: 0.75 },
    Activation::HardSigmoid { alpha: 0.2, beta: 0.5 },
];

/// Inputs from the smallest to the largest, both signs, and what is not a number.
fn probes<T: Element<Wide = f64>>() -> Vec<T> {
    let sizes = (-60..60).flat_map(|exponent| [1.0, 1.37, 1.99].map(|lead: f64| lead * 2f64.powi(exponent)));
    let both = sizes.chain((0..400).map(|step| f64::from(step) * 0.05)).flat_map(|size| [size, -size]);
    both.chain([0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN]).map(nearest).collect()
}

/// Runs the probes through a layer that multiplies by one.
fn check<T: Element<Wide = f64>>(isa: Isa, ulp: f64, least: f64) {
    let x: Vec<T> = probes();
    let mut numbers = Numbers(1);
    let mut layer = Layer::draw(&mut numbers, 0);
    layer.become_identity(x.len());
    let w = [nearest(1.0)];
    for activation in ALL {
        let expected = expected(&layer, &x, &w, None, activation);
        let op = prepare(&layer, &w, None, isa, None).with_activation(activation);
        let (shape, _) = layer.stored(&layer.geometry().input_shape());
        let y: Tensor<T> = op.run(TensorView::from_slice(&shape, &x).unwrap()).unwrap();
        for ((&got, &want), &x) in y.data().iter().zip(&expected).zip(&x) {
            let (got, want, x) = (got.widen(), want.widen(), x.widen());
            let close = got == want || (got.is_nan() && want.is_nan());
            // A sum that cancels errs by its terms' last places, not by its own. Below the normal numbers the
            // approximations may flush to zero.
            let cancels = matches!(activation, Activation::HardSigmoid { .. });
            let scale = if cancels { want.abs().max(1.0) } else { want.abs() };
            let bound = 4.0 * ulp * scale + least;
            assert!(
                close || (got - want).abs() <= bound,
                "{isa} {activation:?}({x:e}) is {got:e}, expected {want:e}"
            );
        }
    }
}

#[test]
fn activations_follow_their_definitions() {
    for isa in isas() {
        check::<f32>(isa, f64::from(f32::EPSILON), 1e-37);
        check::<f64>(isa, f64::EPSILON, 1e-37);
        check::<f16>(isa, f64::from(f16::EPSILON), f64::from(f16::MIN_POSITIVE_SUBNORMAL));
        check::<bf16>(isa, f64::from(bf16::EPSILON), 1e-37);
    }
}
