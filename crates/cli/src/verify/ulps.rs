//! Errors in units in the last place.

use anyhow::{Result, bail};
use outstride::{Call, DType, Element, Epilogue, Tensor, TensorView, bf16, f16, reference};
use outstride_io::{AnyTensor, Storable};
use serde::Serialize;

use super::canonical::{Canonical, doubles};
use crate::convolve::{Tensors, values_of, with_element};
use crate::relayout::Order;

/// Fewer units than this are never held against anyone.
const FEWEST_ALLOWED: f64 = 8.0;

/// How far a result is from the reference, at its worst.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Errors {
    /// In units in the last place of the element itself.
    pub(super) ulps: f64,
    /// In units in the last place of the sum of the products' magnitudes.
    pub(super) magnitude_ulps: f64,
    /// What `magnitude_ulps` may be.
    pub(super) allowed: f64,
    pub(super) within: bool,
}

/// The distance of neighbouring values at 1; 1 for integers.
pub(super) fn epsilon(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 2f64.powi(-10),
        DType::Bf16 => 2f64.powi(-7),
        DType::F32 => 2f64.powi(-23),
        DType::F64 => f64::EPSILON,
        _ => 1.0,
    }
}

/// The distance of neighbouring values at a value, subnormal ones left out.
fn ulp(value: f64, dtype: DType) -> f64 {
    if !dtype.is_float() {
        return 1.0;
    }
    let smallest = match dtype {
        DType::F16 => 2f64.powi(-14),
        DType::F64 => f64::MIN_POSITIVE,
        _ => f64::from(f32::MIN_POSITIVE),
    };
    2f64.powf(value.abs().max(smallest).log2().floor()) * epsilon(dtype)
}

/// As many units as there are products: no order of summation exceeds that. Integers are not rounded at all.
pub(super) fn allowed(canonical: &Canonical, dtype: DType, tolerance: Option<f64>) -> f64 {
    let usual = || if dtype.is_float() { canonical.products().max(FEWEST_ALLOWED) } else { 0.0 };
    tolerance.unwrap_or_else(usual)
}

/// Holds what the engine computed against the reference in the same types.
pub(super) fn errors(
    canonical: &Canonical,
    tensors: &Tensors<'_>,
    call: &Call,
    computed: &AnyTensor,
    tolerance: Option<f64>,
) -> Result<Errors> {
    let dtype = computed.values().dtype();
    let expected = with_element!(dtype, reference_values(tensors, call))?;
    let computed = Order::of_data(&call.output, computed.shape()).gather(&doubles(computed));
    let order = Order::of_data(&call.output, &call.output_shape());
    let magnitudes = order.gather(&canonical.magnitudes()?);
    let (mut ulps, mut magnitude_ulps) = (0f64, 0f64);
    for ((&expected, &computed), &magnitude) in expected.iter().zip(&computed).zip(&magnitudes) {
        let distance = distance(expected, computed);
        ulps = ulps.max(distance / ulp(expected, dtype));
        magnitude_ulps = magnitude_ulps.max(distance / ulp(magnitude.max(expected.abs()), dtype));
    }
    let allowed = allowed(canonical, dtype, tolerance);
    Ok(Errors { ulps, magnitude_ulps, allowed, within: magnitude_ulps <= allowed })
}

/// How far apart two values are; equal non-finite ones are not apart at all.
pub(super) fn distance(a: f64, b: f64) -> f64 {
    match (a - b).abs() {
        _ if a == b || (a.is_nan() && b.is_nan()) => 0.0,
        distance if distance.is_finite() => distance,
        _ => f64::INFINITY,
    }
}

/// The reference's result, rounded to the element type, in canonical order.
fn reference_values<T: Element + Storable>(tensors: &Tensors<'_>, call: &Call) -> Result<Vec<f64>> {
    let geometry = &call.geometry;
    let data = Order::of_data(&call.input, tensors.input.shape());
    let filter = Order::of_filter(&call.filter, tensors.filter.shape(), geometry.groups());
    let x = TensorView::from_parts(values_of::<T>(tensors.input)?, data.offset, &data.shape, &data.strides)?;
    let w = TensorView::from_parts(
        values_of::<T>(tensors.filter)?,
        filter.offset,
        &filter.shape,
        &filter.strides,
    )?;
    let bias = tensors.bias.map(values_of::<T>).transpose()?;
    let shape = geometry.output_shape();
    let mut y = Tensor::from_vec(&shape, vec![T::default(); shape.iter().product()])?;
    let epilogue = Epilogue { activation: call.activation, overflow: call.overflow };
    reference::conv_transpose(geometry, &epilogue, x, w, bias, y.view_mut())?;
    Ok(y.into_vec().into_iter().map(|value| f64::from(value.number())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_follow_the_exponent() {
        assert_eq!(ulp(1.0, DType::F32), f64::from(f32::EPSILON));
        assert_eq!(ulp(-5.0, DType::F32), 4.0 * f64::from(f32::EPSILON));
        assert_eq!(ulp(0.75, DType::F64), f64::EPSILON / 2.0);
        assert_eq!(ulp(1000.0, DType::I8), 1.0);
        assert!(ulp(0.0, DType::F16) > 0.0);
    }

    #[test]
    fn distances_know_infinities_and_nan() {
        assert_eq!(distance(f64::NAN, f64::NAN), 0.0);
        assert_eq!(distance(f64::INFINITY, f64::INFINITY), 0.0);
        assert_eq!(distance(f64::INFINITY, 1.0), f64::INFINITY);
        assert_eq!(distance(f64::NAN, 1.0), f64::INFINITY);
        assert_eq!(distance(1.0, 3.0), 2.0);
    }
}
