//! Between integer sums and the real numbers they stand for, always in 32 bits: plain loops, compiled for every instruction
//! set.

use crate::simd::Scalar;

/// `value · scale + bias`, in rows as long as these; one of each is for all values.
#[inline(always)]
pub(crate) fn dequantize<T: Scalar>(values: &mut [T], scales: &[f32], bias: &[f32]) {
    if let (&[scale], &[bias]) = (scales, bias) {
        for value in values {
            *value = real(*value, scale, bias);
        }
        return;
    }
    for row in values.chunks_exact_mut(scales.len().max(1)) {
        for ((value, &scale), &bias) in row.iter_mut().zip(scales).zip(bias) {
            *value = real(*value, scale, bias);
        }
    }
}

#[inline(always)]
fn real<T: Scalar>(value: T, scale: f32, bias: f32) -> T {
    let product = value.to_f64() as f32 * scale;
    T::from_f64((product + bias).into())
}

/// `round(value / scale) + zero point`
#[inline(always)]
pub(crate) fn quantize<T: Scalar>(values: &mut [T], scale: f32, zero_point: f32) {
    for value in values {
        let quotient = (value.to_f64() as f32 / scale).round_ties_even();
        *value = T::from_f64((quotient + zero_point).into());
    }
}
