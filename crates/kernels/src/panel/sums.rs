//! The sums of a tile, in registers.

use crate::simd::Simd;

/// The sums of a tile before anything is added to them in this step.
///
/// # Safety
///
/// As [`panel`](super::panel); with `resume`, there must be as many sums of steps before.
#[inline(always)]
pub(super) unsafe fn begin<S: Simd, const ROWS: usize, const VECTORS: usize>(
    resume: bool,
    out: *const S::Scalar,
) -> [[S::Vector; VECTORS]; ROWS] {
    // SAFETY: handed on from the caller.
    unsafe {
        let mut sums = [[S::splat(S::Scalar::default()); VECTORS]; ROWS];
        if resume {
            for row in 0..ROWS {
                for vector in 0..VECTORS {
                    sums[row][vector] = S::load(out.add((row * VECTORS + vector) * S::LANES));
                }
            }
        }
        sums
    }
}

/// Puts the sums of a chain aside, added to those of the chains before if there were any, and begins another one.
///
/// # Safety
///
/// As [`panel`](super::panel); there must be room for the sums.
#[inline(always)]
pub(super) unsafe fn put_aside<S: Simd, const ROWS: usize, const VECTORS: usize>(
    sums: &mut [[S::Vector; VECTORS]; ROWS],
    is_first: bool,
    out: *mut S::Scalar,
) {
    // SAFETY: handed on from the caller.
    unsafe {
        if !is_first {
            join::<S, ROWS, VECTORS>(sums, out);
        }
        keep::<S, ROWS, VECTORS>(sums, out);
        *sums = [[S::splat(S::Scalar::default()); VECTORS]; ROWS];
    }
}

/// Adds the sums that were put aside.
///
/// # Safety
///
/// As [`put_aside`].
#[inline(always)]
pub(super) unsafe fn join<S: Simd, const ROWS: usize, const VECTORS: usize>(
    sums: &mut [[S::Vector; VECTORS]; ROWS],
    out: *const S::Scalar,
) {
    for row in 0..ROWS {
        for vector in 0..VECTORS {
            // SAFETY: handed on from the caller.
            unsafe {
                let aside = S::load(out.add((row * VECTORS + vector) * S::LANES));
                sums[row][vector] = S::add(sums[row][vector], aside);
            }
        }
    }
}

/// Stores sums into a tile, `[row][column]`.
///
/// # Safety
///
/// As [`panel`](super::panel); there must be room for them.
#[inline(always)]
pub(super) unsafe fn keep<S: Simd, const ROWS: usize, const VECTORS: usize>(
    sums: &[[S::Vector; VECTORS]; ROWS],
    out: *mut S::Scalar,
) {
    for row in 0..ROWS {
        for vector in 0..VECTORS {
            // SAFETY: handed on from the caller.
            unsafe { S::store(out.add((row * VECTORS + vector) * S::LANES), sums[row][vector]) };
        }
    }
}

/// Adds the bias, if there is one. Returns whether the sums were finite; without a bias there are others to come, and nobody asks.
///
/// # Safety
///
/// As [`panel`](super::panel); the bias must have a value for every column.
#[inline(always)]
pub(super) unsafe fn add_bias<S: Simd, const ROWS: usize, const VECTORS: usize>(
    sums: &mut [[S::Vector; VECTORS]; ROWS],
    bias: Option<&[S::Scalar]>,
) -> bool {
    let Some(bias) = bias else { return true };
    // SAFETY: the caller vouches for the instruction set and the bias.
    unsafe {
        let zero = S::splat(S::Scalar::default());
        let mut trace = zero;
        for vector in 0..VECTORS {
            let bias = S::load(bias.as_ptr().add(vector * S::LANES));
            let mut of_vector = zero;
            for sums in &mut *sums {
                // Zero times anything but a finite value is NaN.
                of_vector = S::multiply_add(sums[vector], zero, of_vector);
                sums[vector] = S::add(sums[vector], bias);
            }
            trace = S::add(trace, of_vector);
        }
        !S::any_nan(trace)
    }
}
