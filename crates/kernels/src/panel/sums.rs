//! The sums of a tile, in registers.

use super::EarlierSums;
use crate::simd::Simd;

/// The sums of a tile before anything is added to them in this step.
///
/// # Safety
///
/// As [`panel`](super::panel); there must be as many earlier sums.
#[inline(always)]
pub(super) unsafe fn begin<S: Simd, const ROWS: usize, const VECTORS: usize>(
    earlier: EarlierSums,
    out: *const S::Scalar,
) -> [[S::Vector; VECTORS]; ROWS] {
    // SAFETY: handed on from the caller.
    unsafe {
        let mut sums = [[S::splat(S::Scalar::default()); VECTORS]; ROWS];
        if earlier == EarlierSums::GoOn {
            for row in 0..ROWS {
                for vector in 0..VECTORS {
                    sums[row][vector] = S::load(out.add((row * VECTORS + vector) * S::LANES));
                }
            }
        }
        sums
    }
}

/// Adds the sums of steps before, where that was left for the end.
///
/// # Safety
///
/// As [`begin`].
#[inline(always)]
pub(super) unsafe fn join<S: Simd, const ROWS: usize, const VECTORS: usize>(
    sums: &mut [[S::Vector; VECTORS]; ROWS],
    earlier: EarlierSums,
    out: *const S::Scalar,
) {
    if earlier != EarlierSums::Join {
        return;
    }
    for row in 0..ROWS {
        for vector in 0..VECTORS {
            // SAFETY: handed on from the caller.
            unsafe {
                let before = S::load(out.add((row * VECTORS + vector) * S::LANES));
                sums[row][vector] = S::add(sums[row][vector], before);
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
