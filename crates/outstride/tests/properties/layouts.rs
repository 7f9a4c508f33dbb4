//! Where the values lie changes neither the results nor anything else in memory.

use std::sync::Arc;

use outstride::{
    ConvTranspose, Error, Geometry, IntegerOverflow, Limits, TensorViewMut, ViewError, jax, reference,
};
use proptest::prelude::*;

use crate::support::generate::{Problem, geometries};
use crate::support::memory::{Placed, arrangements, disjoint_arrangements};
use crate::support::run::{self, SATURATE, assert_same};

/// A dialect that can spell any geometry of one group, on canonical data and filters.
fn any_crop(geometry: &Geometry) -> jax::ConvTranspose {
    let axes = geometry.axes();
    let letters = &"ABDEFG"[..axes.len()];
    let data = format!("NC{letters}");
    jax::ConvTranspose {
        strides: axes.iter().map(|axis| axis.stride as i64).collect(),
        rhs_dilation: axes.iter().map(|axis| axis.dilation as i64).collect(),
        padding: jax::Padding::Explicit(axes.iter().map(|axis| (axis.pad_begin, axis.pad_end())).collect()),
        dimension_numbers: Some(jax::DimensionNumbers {
            lhs: data.clone(),
            rhs: format!("OI{letters}"),
            out: data,
        }),
        transpose_kernel: true,
        use_consistent_padding: true,
    }
}

fn one_group(geometry: &Geometry) -> Geometry {
    Geometry::new(
        geometry.batch(),
        1,
        geometry.in_channels_per_group(),
        geometry.out_channels_per_group(),
        geometry.axes().to_vec(),
    )
    .unwrap()
}

proptest! {
    #[test]
    fn the_reference_reads_and_writes_any_strides(
        geometry in geometries(),
        seed: u64,
        x_arrangement in arrangements(),
        w_arrangement in arrangements(),
        y_arrangement in disjoint_arrangements(),
    ) {
        let mut problem = Problem::<f32>::new(geometry.clone(), seed);
        let x = Placed::new(&problem.x, &geometry.input_shape(), &x_arrangement);
        let w = Placed::new(&problem.w, &geometry.filter_shape(), &w_arrangement);
        let mut y = Placed::poisoned(&geometry.output_shape(), &y_arrangement);
        reference::conv_transpose(&geometry, &SATURATE, x.view(), w.view(), Some(&problem.bias), y.view_mut()).unwrap();

        // Repeated axes show their first values again and again.
        (problem.x, problem.w) = (x.values(), w.values());
        let expected = run::expected(&problem, IntegerOverflow::Saturate);
        assert_same("strided", &geometry, &y.values(), &expected);
        prop_assert!(y.guards_are_intact(), "wrote beside the output");
    }

    #[test]
    fn an_operator_reads_and_writes_any_strides(
        geometry in geometries(),
        seed: u64,
        x_arrangement in arrangements(),
        w_arrangement in arrangements(),
        y_arrangement in disjoint_arrangements(),
    ) {
        let geometry = one_group(&geometry);
        let mut problem = Problem::<f32>::new(geometry.clone(), seed);
        problem.bias.fill(0.0);
        let x = Placed::new(&problem.x, &geometry.input_shape(), &x_arrangement);
        let w = Placed::new(&problem.w, &geometry.filter_shape()[1..], &w_arrangement);
        let mut y = Placed::poisoned(&geometry.output_shape(), &y_arrangement);
        let op = ConvTranspose::from_dialect(Arc::new(any_crop(&geometry)), w.view(), None, Limits::default()).unwrap();
        prop_assert_eq!(&op.resolve(&geometry.input_shape()).unwrap().geometry, &geometry);
        op.run_into(x.view(), y.view_mut()).unwrap();

        (problem.x, problem.w) = (x.values(), w.values());
        let expected = run::expected(&problem, IntegerOverflow::Saturate);
        assert_same("run_into", &geometry, &y.values(), &expected);
        prop_assert!(y.guards_are_intact(), "wrote beside the output");
        let owned = op.run(x.view()).unwrap();
        prop_assert_eq!(owned.shape(), geometry.output_shape());
        assert_same("run", &geometry, owned.data(), &expected);
    }
}

#[test]
fn an_output_that_would_overwrite_itself_is_refused() {
    let mut memory = [0.0f32; 8];
    for strides in [[0, 1], [1, 1], [2, 1]] {
        let refused = TensorViewMut::from_parts(&mut memory, 0, &[2, 3], &strides).map(drop);
        assert!(matches!(refused, Err(Error::View(ViewError::Overlap { .. }))), "{strides:?}: {refused:?}");
    }
}

#[test]
fn an_output_of_another_shape_is_refused_and_left_alone() {
    let axis = outstride::Axis { input: 2, kernel: 2, stride: 2, dilation: 1, output: 4, pad_begin: 0 };
    let geometry = Geometry::new(1, 1, 1, 1, vec![axis]).unwrap();
    let problem = Problem::<f32>::new(geometry.clone(), 1);
    let x = outstride::TensorView::from_slice(&geometry.input_shape(), &problem.x).unwrap();
    let w = outstride::TensorView::from_slice(&geometry.filter_shape()[1..], &problem.w).unwrap();
    let op = ConvTranspose::new(&any_crop(&geometry), w, None).unwrap();
    let mut memory = [9.0; 5];
    let refused = op.run_into(x, TensorViewMut::from_slice(&[1, 1, 5], &mut memory).unwrap()).unwrap_err();
    assert_eq!(refused, Error::OutputShape { expected: vec![1, 1, 4], found: vec![1, 1, 5] });
    assert_eq!(memory, [9.0; 5]);
}
