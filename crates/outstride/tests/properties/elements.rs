//! Every element type, one to six spatial axes, overflow, and linearity.

use outstride::{Axis, Epilogue, Geometry, IntegerOverflow, Tensor, bf16, f16, reference};
use proptest::prelude::*;
use proptest::strategy::ValueTree;

use crate::support::for_each_number;
use crate::support::generate::{AxisSizes, Problem, axes, geometries, values, wide_values};
use crate::support::number::Number;
use crate::support::run::{self, SATURATE, assert_same};

fn check_against_scatter<T: Number>(geometry: &Geometry, seed: u64) {
    let problem = Problem::<T>::new(geometry.clone(), seed);
    let expected = run::expected(&problem, IntegerOverflow::Saturate);
    assert_same(T::DTYPE.name(), geometry, &run::reference(&problem, &SATURATE), &expected);
}

fn check_overflow<T: Number>(geometry: &Geometry, seed: u64) {
    let count = |shape: Vec<usize>| shape.into_iter().product();
    let problem = Problem::<T> {
        x: wide_values(seed, count(geometry.input_shape())),
        w: wide_values(!seed, count(geometry.filter_shape())),
        bias: wide_values(seed ^ 1, geometry.out_channels()),
        geometry: geometry.clone(),
    };
    for overflow in [IntegerOverflow::Saturate, IntegerOverflow::Wrap] {
        let epilogue = Epilogue { overflow, ..SATURATE };
        let expected = run::expected(&problem, overflow);
        assert_same(T::DTYPE.name(), geometry, &run::reference(&problem, &epilogue), &expected);
    }
}

fn geometries_of(spatial: usize) -> impl Strategy<Value = Geometry> {
    let axes = prop::collection::vec(axes(AxisSizes::for_spatial(spatial)), spatial);
    (1usize..=2, 1usize..=2, 1usize..=2, axes).prop_map(|(groups, inputs, outputs, axes)| {
        Geometry::new(1, groups, groups * inputs, groups * outputs, axes).unwrap()
    })
}

proptest! {
    #[test]
    fn every_element_type_sums_what_the_definition_says(geometry in geometries(), seed: u64) {
        for_each_number!(check_against_scatter(&geometry, seed));
    }

    #[test]
    fn sums_beyond_the_type_saturate_or_wrap(geometry in geometries(), seed: u64) {
        for_each_number!(check_overflow(&geometry, seed));
    }

    #[test]
    fn it_is_linear_in_the_input(geometry in geometries(), seed: u64, a in -3i64..=3, b in -3i64..=3) {
        let mut first = Problem::<i64>::new(geometry, seed);
        first.bias.fill(0);
        let second = Problem { x: values(!seed, first.x.len()), ..first.clone() };
        let x = first.x.iter().zip(&second.x).map(|(first, second)| a * first + b * second);
        let both = Problem { x: x.collect(), ..first.clone() };
        let [first, second, both] = [first, second, both].map(|problem| run::reference(&problem, &SATURATE));
        let expected: Vec<i64> = first.iter().zip(second).map(|(first, second)| a * first + b * second).collect();
        prop_assert_eq!(both, expected);
    }
}

#[test]
fn one_to_six_spatial_axes_are_all_the_same() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for spatial in 1..=6 {
        for seed in 0..20 {
            let geometry = geometries_of(spatial).new_tree(&mut runner).unwrap().current();
            check_against_scatter::<f32>(&geometry, seed);
            check_against_scatter::<i16>(&geometry, seed);
        }
    }
}

#[test]
fn element_types_may_differ_between_the_tensors() {
    let axis = Axis { input: 2, kernel: 2, stride: 1, dilation: 1, output: 3, pad_begin: 0 };
    let geometry = Geometry::new(1, 1, 1, 1, vec![axis]).unwrap();

    let x = Tensor::from_vec(&[1, 1, 2], vec![200u8, 255]).unwrap();
    let w = Tensor::from_vec(&[1, 1, 1, 2], vec![-100i8, 3]).unwrap();
    let mut y = Tensor::from_vec(&[1, 1, 3], vec![0i16; 3]).unwrap();
    let bias = Some([7i32].as_slice());
    reference::conv_transpose(&geometry, &SATURATE, x.view(), w.view(), bias, y.view_mut()).unwrap();
    assert_eq!(y.data(), [-19993, 600 - 25500 + 7, 772]);

    let x = Tensor::from_vec(&[1, 1, 2], [0.5, 1024.0].map(f16::from_f32).to_vec()).unwrap();
    let w = Tensor::from_vec(&[1, 1, 1, 2], [3.0, 1024.0].map(bf16::from_f32).to_vec()).unwrap();
    let mut y = Tensor::from_vec(&[1, 1, 3], vec![0f64; 3]).unwrap();
    let bias = Some([0.125f32].as_slice());
    reference::conv_transpose(&geometry, &SATURATE, x.view(), w.view(), bias, y.view_mut()).unwrap();
    assert_eq!(y.data(), [1.625, 512.0 + 3072.0 + 0.125, 1048576.125]);
}

#[test]
fn half_precision_is_rounded_once_after_the_whole_sum() {
    let axis = Axis { input: 1, kernel: 1, stride: 1, dilation: 1, output: 1, pad_begin: 0 };
    let geometry = Geometry::new(1, 1, 4, 1, vec![axis]).unwrap();
    // Rounded after each addition, 2048 + 1 + 1 + 1 stays 2048; the true sum 2051 rounds to 2052.
    let problem = Problem {
        geometry: geometry.clone(),
        x: [2048.0, 1.0, 1.0, 1.0].map(f16::from_f32).to_vec(),
        w: vec![f16::ONE; 4],
        bias: vec![f16::ZERO],
    };
    assert_eq!(run::reference(&problem, &SATURATE), [f16::from_f32(2052.0)]);
    let problem = Problem {
        geometry,
        x: [256.0, 1.0, 1.0, 1.0].map(bf16::from_f32).to_vec(),
        w: vec![bf16::ONE; 4],
        bias: vec![bf16::ZERO],
    };
    assert_eq!(run::reference(&problem, &SATURATE), [bf16::from_f32(260.0)]);
}
