//! Running the library on canonical values, and comparing with the independent sums.

use outstride::{Epilogue, Geometry, IntegerOverflow, TensorView, TensorViewMut, reference};

use super::generate::Problem;
use super::number::Number;
use super::scatter;

pub(crate) const SATURATE: Epilogue =
    Epilogue { activation: outstride::Activation::Identity, overflow: IntegerOverflow::Saturate };

/// The reference engine on row-major canonical tensors, into poisoned memory.
pub(crate) fn reference<T: Number>(problem: &Problem<T>, epilogue: &Epilogue) -> Vec<T> {
    let Problem { geometry, x, w, bias } = problem;
    let shape = geometry.output_shape();
    let mut y = vec![T::poison(); shape.iter().product()];
    reference::conv_transpose(
        geometry,
        epilogue,
        TensorView::from_slice(&geometry.input_shape(), x).unwrap(),
        TensorView::from_slice(&geometry.filter_shape(), w).unwrap(),
        Some(bias),
        TensorViewMut::from_slice(&shape, &mut y).unwrap(),
    )
    .unwrap();
    y
}

/// What the problem must yield.
pub(crate) fn expected<T: Number>(problem: &Problem<T>, overflow: IntegerOverflow) -> Vec<T> {
    let Problem { geometry, x, w, bias } = problem;
    let sums = scatter::sums(geometry, x, w, Some(bias));
    sums.into_iter().map(|sum| T::rounded(sum, overflow)).collect()
}

/// Fails with the first element that differs.
#[track_caller]
pub(crate) fn assert_same<T: Number>(what: &str, geometry: &Geometry, found: &[T], expected: &[T]) {
    assert_eq!(found.len(), expected.len(), "{what}: length, {geometry}");
    let differs = (0..found.len()).find(|&position| !found[position].same(expected[position]));
    if let Some(position) = differs {
        let index = scatter::unravel(position, &geometry.output_shape());
        let (found, expected) = (found[position], expected[position]);
        panic!("{what}: element {index:?} is {found:?}, expected {expected:?}; {geometry}");
    }
}
