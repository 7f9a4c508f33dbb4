//! The same values in another order of axes.

use super::scatter::unravel;

/// A row-major tensor whose axis `a` is axis `order[a]` of the row-major tensor given.
pub(crate) fn permute<T: Copy>(values: &[T], shape: &[usize], order: &[usize]) -> (Vec<usize>, Vec<T>) {
    let permuted: Vec<usize> = order.iter().map(|&axis| shape[axis]).collect();
    let values = (0..values.len())
        .map(|position| {
            let mut index = vec![0; shape.len()];
            for (&axis, i) in order.iter().zip(unravel(position, &permuted)) {
                index[axis] = i;
            }
            values[super::scatter::ravel(&index, shape)]
        })
        .collect();
    (permuted, values)
}

/// Undoes [`permute`]: `order[a]` is the axis of the result that axis `a` of `values` becomes.
pub(crate) fn unpermute<T: Copy>(values: &[T], shape: &[usize], order: &[usize]) -> (Vec<usize>, Vec<T>) {
    let mut inverse = vec![0; order.len()];
    for (place, &axis) in order.iter().enumerate() {
        inverse[axis] = place;
    }
    permute(values, shape, &inverse)
}

/// The values with every one of the `axes` back to front.
pub(crate) fn flip<T: Copy>(values: &[T], shape: &[usize], axes: std::ops::Range<usize>) -> Vec<T> {
    (0..values.len())
        .map(|position| {
            let mut index = unravel(position, shape);
            for axis in axes.clone() {
                index[axis] = shape[axis] - 1 - index[axis];
            }
            values[super::scatter::ravel(&index, shape)]
        })
        .collect()
}

/// `(first, X…, second)` out of `(first, second, X…)`
pub(crate) fn channels_last(spatial: usize) -> Vec<usize> {
    [0].into_iter().chain(2..2 + spatial).chain([1]).collect()
}

/// `(X…, a, b)` out of `(·, ·, X…)`, where `a` and `b` are 0 and 1 in either order.
pub(crate) fn spatial_first(spatial: usize, [a, b]: [usize; 2]) -> Vec<usize> {
    (2..2 + spatial).chain([a, b]).collect()
}
