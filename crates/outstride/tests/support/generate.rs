//! Problems to test with: geometries of every shape, and values that tell positions apart.

use outstride::{Axis, Geometry};
use proptest::prelude::*;

use super::number::Number;

/// A geometry and the values of its tensors, all in canonical order.
#[derive(Clone, Debug)]
pub(crate) struct Problem<T> {
    pub(crate) geometry: Geometry,
    pub(crate) x: Vec<T>,
    pub(crate) w: Vec<T>,
    pub(crate) bias: Vec<T>,
}

impl<T: Number> Problem<T> {
    /// The same numbers for every element type, as far as the type holds them: small enough that floats stay exact.
    pub(crate) fn new(geometry: Geometry, seed: u64) -> Self {
        let count = |shape: Vec<usize>| shape.into_iter().product();
        Problem {
            x: values(seed, count(geometry.input_shape())),
            w: values(seed ^ 0x5DEE_CE66, count(geometry.filter_shape())),
            bias: values(seed ^ 0xB5AD_4ECE, geometry.out_channels()),
            geometry,
        }
    }
}

/// Integers from −4 to 4; for unsigned types from 0 to 4.
pub(crate) fn values<T: Number>(seed: u64, length: usize) -> Vec<T> {
    let unsigned = T::UNSIGNED;
    bytes(seed)
        .take(length)
        .map(|byte| byte.rem_euclid(9) - 4)
        .map(|value| T::from_byte(if unsigned { value.abs() } else { value }))
        .collect()
}

/// Values over the whole range of a byte, for sums that leave the narrow types.
pub(crate) fn wide_values<T: Number>(seed: u64, length: usize) -> Vec<T> {
    bytes(seed).take(length).map(T::from_byte).collect()
}

/// A linear congruential generator: enough to tell positions apart.
fn bytes(seed: u64) -> impl Iterator<Item = i8> {
    let step = |state: &u64| Some(state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407));
    std::iter::successors(step(&seed), step).map(|state| (state >> 56) as i8)
}

/// Every relation of kernel, stride, dilation, crop and output that an axis can have, within `sizes`.
pub(crate) fn axes(sizes: AxisSizes) -> impl Strategy<Value = Axis> {
    (0..=sizes.input, 1..=sizes.kernel, 1usize..=5, 1usize..=3, 0..=sizes.output, -4i64..=8).prop_map(
        |(input, kernel, stride, dilation, output, pad_begin)| Axis {
            input,
            kernel,
            stride,
            dilation,
            output,
            pad_begin,
        },
    )
}

/// The largest sizes of an axis.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AxisSizes {
    pub(crate) input: usize,
    pub(crate) kernel: usize,
    pub(crate) output: usize,
}

impl AxisSizes {
    /// Sizes at which a problem of that many axes takes microseconds.
    pub(crate) fn for_spatial(spatial: usize) -> Self {
        let (input, kernel, output) =
            [(12, 9, 40), (5, 5, 12), (4, 3, 6), (3, 2, 4), (2, 2, 3), (2, 2, 3)][spatial.clamp(1, 6) - 1];
        AxisSizes { input, kernel, output }
    }
}

/// Geometries of one to six spatial axes, with groups, empty tensors, negative crops and outputs beyond the full extent.
pub(crate) fn geometries() -> impl Strategy<Value = Geometry> {
    let spatial = prop_oneof![4 => 1usize..=1, 4 => 2usize..=2, 2 => 3usize..=3, 1 => 4usize..=6];
    spatial.prop_flat_map(|spatial| {
        let axes = prop::collection::vec(axes(AxisSizes::for_spatial(spatial)), spatial);
        let channels = || prop_oneof![1 => Just(0usize), 12 => 1usize..=3];
        (prop_oneof![1 => Just(0usize), 12 => 1usize..=2], 1usize..=3, channels(), channels(), axes).prop_map(
            |(batch, groups, inputs, outputs, axes)| {
                Geometry::new(batch, groups, groups * inputs, groups * outputs, axes).unwrap()
            },
        )
    })
}
