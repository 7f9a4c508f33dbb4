//! Bias and the seven activations, in every element type, and non-finite values that stay where they belong.

use outstride::{Activation, Axis, ConvTranspose, Epilogue, Geometry, IntegerOverflow, Tensor, torch};
use proptest::prelude::*;

use crate::support::for_each_number;
use crate::support::generate::{Problem, geometries};
use crate::support::number::Number;
use crate::support::run::{self, SATURATE, assert_same};
use crate::support::scatter;

const ALL: [Activation; 8] = [
    Activation::Identity,
    Activation::Relu,
    Activation::Tanh,
    Activation::Sigmoid,
    Activation::HardSwish,
    Activation::LeakyRelu { alpha: 0.3 },
    Activation::Clip { min: -7.5, max: 9.25 },
    Activation::HardSigmoid { alpha: 0.05, beta: 0.4 },
];

/// The functions as the operator's documentation writes them, for finite values.
fn formula(activation: Activation, v: f64) -> f64 {
    match activation {
        Activation::Identity => v,
        Activation::Relu => v.max(0.0),
        Activation::Tanh => v.tanh(),
        Activation::Sigmoid => 1.0 / (1.0 + (-v).exp()),
        Activation::HardSwish => v * (v / 6.0 + 0.5).clamp(0.0, 1.0),
        Activation::LeakyRelu { alpha } => v.max(0.0) + f64::from(alpha) * v.min(0.0),
        Activation::Clip { min, max } => v.max(min.into()).min(max.into()),
        Activation::HardSigmoid { alpha, beta } => (f64::from(alpha) * v + f64::from(beta)).clamp(0.0, 1.0),
    }
}

fn check_activations<T: Number>(geometry: &Geometry, seed: u64) {
    let problem = Problem::<T>::new(geometry.clone(), seed);
    let sums = scatter::sums(geometry, &problem.x, &problem.w, Some(&problem.bias));
    for activation in ALL {
        let epilogue = Epilogue { activation, ..SATURATE };
        let expected: Vec<T> =
            sums.iter().map(|&sum| T::nearest(formula(activation, T::sum_as_real(sum)))).collect();
        let what = format!("{} of {}", activation.name(), T::DTYPE);
        assert_same(&what, geometry, &run::reference(&problem, &epilogue), &expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_activation_follows_its_formula_in_every_element_type(geometry in geometries(), seed: u64) {
        for_each_number!(check_activations(&geometry, seed));
    }

    #[test]
    fn non_finite_values_reach_exactly_the_outputs_they_feed(geometry in geometries(), seed: u64, pick: prop::sample::Index) {
        for special in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN] {
            let finite = Problem::<f32>::new(geometry.clone(), seed);
            let mut of_x = finite.clone();
            if !of_x.x.is_empty() {
                let at = pick.index(of_x.x.len());
                of_x.x[at] = special;
            }
            let mut of_w = finite.clone();
            if !of_w.w.is_empty() {
                let at = pick.index(of_w.w.len());
                of_w.w[at] = special;
            }
            let mut of_bias = finite;
            if !of_bias.bias.is_empty() {
                let at = pick.index(of_bias.bias.len());
                of_bias.bias[at] = special;
            }
            for problem in [of_x, of_w, of_bias] {
                let expected = run::expected(&problem, IntegerOverflow::Saturate);
                assert_same("non-finite", &geometry, &run::reference(&problem, &SATURATE), &expected);
            }
        }
    }
}

#[test]
fn a_gap_of_the_stride_holds_the_bias_however_infinite_the_weights() {
    let axis = Axis { input: 2, kernel: 2, stride: 3, dilation: 1, output: 5, pad_begin: 0 };
    let geometry = Geometry::new(1, 1, 1, 1, vec![axis]).unwrap();
    let problem = Problem {
        geometry: geometry.clone(),
        x: vec![0.0f32, 1.0],
        w: vec![f32::INFINITY, 1.0],
        bias: vec![0.0],
    };
    let expected = [f32::NAN, 0.0, 0.0, f32::INFINITY, 1.0];
    assert_same("locality", &geometry, &run::reference(&problem, &SATURATE), &expected);
}

#[test]
fn an_operator_of_any_dialect_takes_an_activation() {
    let weight = Tensor::from_vec(&[1, 1, 2], vec![1.0f32, -2.0]).unwrap();
    let attributes = torch::ConvTranspose { stride: vec![2], ..Default::default() };
    let op = ConvTranspose::new(&attributes, weight.view(), Some(&[1.0])).unwrap();
    let x = Tensor::from_vec(&[1, 1, 2], vec![3.0, -5.0]).unwrap();
    assert_eq!(op.run(x.view()).unwrap().data(), [4.0, -5.0, -4.0, 11.0]);
    for (activation, expected) in [
        (Activation::Relu, [4.0, 0.0, 0.0, 11.0]),
        (Activation::LeakyRelu { alpha: 0.5 }, [4.0, -2.5, -2.0, 11.0]),
        (Activation::Clip { min: -4.5, max: 6.0 }, [4.0, -4.5, -4.0, 6.0]),
        (Activation::HardSigmoid { alpha: 0.125, beta: 0.5 }, [1.0, 0.0, 0.0, 1.0]),
        (Activation::HardSwish, [4.0, 0.0, 0.0, 11.0]),
    ] {
        let activated = op.clone().with_activation(activation).run(x.view()).unwrap();
        assert_eq!(activated.data(), expected, "{activation:?}");
    }
    let tanh = op.clone().with_activation(Activation::Tanh).run(x.view()).unwrap();
    let sigmoid = op.with_activation(Activation::Sigmoid).run(x.view()).unwrap();
    for (position, sum) in [4.0f64, -5.0, -4.0, 11.0].into_iter().enumerate() {
        assert!((f64::from(tanh.data()[position]) - sum.tanh()).abs() < 1e-6);
        assert!((f64::from(sigmoid.data()[position]) - 1.0 / (1.0 + (-sum).exp())).abs() < 1e-6);
    }
}
