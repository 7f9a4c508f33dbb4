//! The activations on vectors.
//!
//! `exp` reduces its argument by multiples of ln 2 and evaluates a short polynomial (f32) or rational function (f64);
//! `tanh` uses an odd approximation near zero and `exp` elsewhere. Both are good to a few units in the last place.

// The coefficients are written with all the digits they were derived with.
#![allow(clippy::excessive_precision)]

use outstride_spec::Activation;

use crate::simd::{Scalar, Simd};

/// The approximations of one element type.
pub(crate) trait Approximations: Scalar {
    /// `exp(r)` for `|r| ≤ ln 2 / 2`.
    ///
    /// # Safety
    ///
    /// The CPU must have `S`'s instruction set.
    unsafe fn exp_reduced<S: Simd<Scalar = Self>>(r: S::Vector) -> S::Vector;

    /// `tanh(v)` for `|v| < 0.625`.
    ///
    /// # Safety
    ///
    /// The CPU must have `S`'s instruction set.
    unsafe fn tanh_small<S: Simd<Scalar = Self>>(v: S::Vector) -> S::Vector;

    /// The two parts of ln 2, the first with few enough bits that small multiples of it are exact.
    const LN_2: [f64; 2];

    /// Beyond these, `exp` is zero or infinite in this type.
    const EXP_RANGE: [f64; 2];
}

/// `coefficients[0]·v^n + … + coefficients[n]`
#[inline(always)]
unsafe fn polynomial<S: Simd>(v: S::Vector, coefficients: &[f64]) -> S::Vector {
    // SAFETY: the caller vouches for the instruction set.
    unsafe {
        let constant = |value: f64| S::splat(S::Scalar::from_f64(value));
        let mut sum = constant(coefficients[0]);
        for &coefficient in &coefficients[1..] {
            sum = S::multiply_add(sum, v, constant(coefficient));
        }
        sum
    }
}

impl Approximations for f32 {
    const LN_2: [f64; 2] = [0.693359375, -2.12194440e-4];
    const EXP_RANGE: [f64; 2] = [-87.0, 88.8];

    #[inline(always)]
    unsafe fn exp_reduced<S: Simd<Scalar = Self>>(r: S::Vector) -> S::Vector {
        // SAFETY: the caller vouches for the instruction set.
        unsafe {
            let tail = polynomial::<S>(
                r,
                &[
                    1.9875691500e-4,
                    1.3981999507e-3,
                    8.3334519073e-3,
                    4.1665795894e-2,
                    1.6666665459e-1,
                    5.0000001201e-1,
                ],
            );
            S::multiply_add(S::multiply(tail, r), r, S::add(r, S::splat(1.0)))
        }
    }

    #[inline(always)]
    unsafe fn tanh_small<S: Simd<Scalar = Self>>(v: S::Vector) -> S::Vector {
        // SAFETY: the caller vouches for the instruction set.
        unsafe {
            let square = S::multiply(v, v);
            let tail = polynomial::<S>(
                square,
                &[
                    -5.70498872745e-3,
                    2.06390887954e-2,
                    -5.37397155531e-2,
                    1.33314422036e-1,
                    -3.33332819422e-1,
                ],
            );
            S::multiply_add(S::multiply(tail, square), v, v)
        }
    }
}

impl Approximations for f64 {
    const LN_2: [f64; 2] = [6.93145751953125e-1, 1.42860682030941723212e-6];
    const EXP_RANGE: [f64; 2] = [-708.0, 710.0];

    #[inline(always)]
    unsafe fn exp_reduced<S: Simd<Scalar = Self>>(r: S::Vector) -> S::Vector {
        // SAFETY: the caller vouches for the instruction set.
        unsafe {
            let square = S::multiply(r, r);
            let p = polynomial::<S>(
                square,
                &[1.26177193074810590878e-4, 3.02994407707441961300e-2, 9.99999999999999999910e-1],
            );
            let odd = S::multiply(r, p);
            let q = polynomial::<S>(
                square,
                &[3.00198505138664455042e-6, 2.52448340349684104192e-3, 2.27265548208155028766e-1, 2.0],
            );
            let quotient = S::divide(odd, S::multiply_add(odd, S::splat(-1.0), q));
            S::multiply_add(quotient, S::splat(2.0), S::splat(1.0))
        }
    }

    #[inline(always)]
    unsafe fn tanh_small<S: Simd<Scalar = Self>>(v: S::Vector) -> S::Vector {
        // SAFETY: the caller vouches for the instruction set.
        unsafe {
            let square = S::multiply(v, v);
            let p = polynomial::<S>(
                square,
                &[-9.64399179425052238628e-1, -9.92877231001918586564e1, -1.61468768441708447952e3],
            );
            let q = polynomial::<S>(
                square,
                &[1.0, 1.12811678491632931402e2, 2.23548839060100448583e3, 4.84406305325125486048e3],
            );
            S::multiply_add(S::multiply(S::divide(p, q), square), v, v)
        }
    }
}

#[inline(always)]
unsafe fn exp<S: Simd>(v: S::Vector) -> S::Vector
where
    S::Scalar: Approximations,
{
    // SAFETY: the caller vouches for the instruction set.
    unsafe {
        let constant = |value: f64| S::splat(S::Scalar::from_f64(value));
        let [low, high] = S::Scalar::EXP_RANGE;
        let v = S::at_most(S::at_least(v, constant(low)), constant(high));
        let n = S::round(S::multiply(v, constant(std::f64::consts::LOG2_E)));
        let [ln2_high, ln2_low] = S::Scalar::LN_2;
        let r = S::multiply_add(n, constant(-ln2_high), v);
        let r = S::multiply_add(n, constant(-ln2_low), r);
        S::scale(S::Scalar::exp_reduced::<S>(r), n)
    }
}

#[inline(always)]
unsafe fn activate_vector<S: Simd>(v: S::Vector, activation: &Activation) -> S::Vector
where
    S::Scalar: Approximations,
{
    // SAFETY: the caller vouches for the instruction set.
    unsafe {
        let constant = |value: f64| S::splat(S::Scalar::from_f64(value));
        let (zero, one) = (constant(0.0), constant(1.0));
        let clamp01 = |v| S::at_most(S::at_least(v, zero), one);
        match *activation {
            Activation::Identity => v,
            Activation::Relu => S::at_least(v, zero),
            Activation::Sigmoid => {
                let negated = S::multiply(v, constant(-1.0));
                S::divide(one, S::add(one, exp::<S>(negated)))
            }
            Activation::Tanh => {
                // 1 − 2/(e^2v + 1) loses everything near zero, where the odd approximation serves.
                let e = exp::<S>(S::add(v, v));
                let large = S::multiply_add(S::divide(constant(2.0), S::add(e, one)), constant(-1.0), one);
                let size = S::at_least(v, S::multiply(v, constant(-1.0)));
                S::select_less(size, constant(0.625), S::Scalar::tanh_small::<S>(v), large)
            }
            Activation::HardSwish => {
                // (v + 3)/6 rather than v/6 + 0.5, which cancels near −3.
                let gate = S::multiply(S::add(v, constant(3.0)), constant(1.0 / 6.0));
                S::multiply(v, clamp01(gate))
            }
            Activation::LeakyRelu { alpha } => {
                S::select_less(v, zero, S::multiply(v, constant(alpha.into())), v)
            }
            Activation::Clip { min, max } => {
                S::at_most(S::at_least(v, constant(min.into())), constant(max.into()))
            }
            Activation::HardSigmoid { alpha, beta } => {
                clamp01(S::multiply_add(v, constant(alpha.into()), constant(beta.into())))
            }
        }
    }
}

/// Applies the activation to every value in place.
///
/// # Safety
///
/// The CPU must have `S`'s instruction set.
#[inline(always)]
pub(crate) unsafe fn activate<S: Simd>(values: &mut [S::Scalar], activation: &Activation)
where
    S::Scalar: Approximations,
{
    let mut chunks = values.chunks_exact_mut(S::LANES);
    for chunk in &mut chunks {
        // SAFETY: the caller vouches for the instruction set; a chunk has LANES elements.
        unsafe {
            let v = S::load(chunk.as_ptr());
            S::store(chunk.as_mut_ptr(), activate_vector::<S>(v, activation));
        }
    }
    let rest = chunks.into_remainder();
    let mut last = [S::Scalar::default(); 16];
    last[..rest.len()].copy_from_slice(rest);
    // SAFETY: the caller vouches for the instruction set; no vector has more than 16 lanes.
    unsafe {
        let v = S::load(last.as_ptr());
        S::store(last.as_mut_ptr(), activate_vector::<S>(v, activation));
    }
    rest.copy_from_slice(&last[..rest.len()]);
}
