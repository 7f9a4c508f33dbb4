//! Sums of tiles on their way to memory: finished in registers, rounded once, stored.

mod lines;
mod narrow;
mod requantize;
mod rows;
mod turned;

use std::arch::x86_64::*;

use super::avx512::{Avx512F32, below};
use crate::matrix::NARROW_COLUMNS;
use crate::simd::Simd;

pub(super) use narrow::{Narrow, Nearest};
pub(super) use requantize::{REQUANTIZE, Requantized, TURN, requantize_now};
pub(super) use rows::{finish, finish_now};
pub(super) use turned::{turn_bf16, turn_f16, turn_f32};

/// What becomes of sums in registers. Not a closure, which would be compiled by itself, without the instruction set.
trait Steps {
    /// # Safety
    ///
    /// The CPU must have AVX-512.
    unsafe fn finished(&mut self, sums: [__m512; 2]) -> [__m512; 2];
}

/// Work in pieces, which can be done between other things.
pub(super) trait Work {
    /// Pieces that are left.
    fn len(&self) -> usize;

    /// Does so many pieces, or all that are left.
    ///
    /// # Safety
    ///
    /// The CPU must have what the work needs.
    unsafe fn advance(&mut self, pieces: usize);
}

/// Who does work, at some time.
pub(super) trait Worker {
    /// Has all of it done.
    ///
    /// # Safety
    ///
    /// The CPU must have what the work and the worker need.
    unsafe fn have_done(self, work: &mut impl Work);
}

/// Does it now.
pub(super) struct Now;

impl Worker for Now {
    #[inline(always)]
    unsafe fn have_done(self, work: &mut impl Work) {
        // SAFETY: handed on from the caller.
        unsafe { work.advance(usize::MAX) };
    }
}

/// No work.
pub(super) struct Idle;

impl Work for Idle {
    #[inline(always)]
    fn len(&self) -> usize {
        0
    }

    #[inline(always)]
    unsafe fn advance(&mut self, _pieces: usize) {}
}

/// Adds the bias, and if `BOUNDED` brings the result within the bounds.
struct AddBias<const BOUNDED: bool> {
    bias: [__m512; 2],
    least: __m512,
    greatest: __m512,
    /// NaN where a sum with its bias was not finite, otherwise zero.
    trace: [__m512; 2],
}

impl<const BOUNDED: bool> AddBias<BOUNDED> {
    /// # Safety
    ///
    /// The CPU must have AVX-512.
    #[inline(always)]
    unsafe fn new(bias: [__m512; 2], (least, greatest): (f32, f32)) -> Self {
        // SAFETY: handed on from the caller.
        unsafe {
            AddBias {
                bias,
                least: _mm512_set1_ps(least),
                greatest: _mm512_set1_ps(greatest),
                trace: [_mm512_setzero_ps(); 2],
            }
        }
    }

    /// Whether all sums with their bias were finite.
    ///
    /// # Safety
    ///
    /// The CPU must have AVX-512.
    #[inline(always)]
    unsafe fn were_finite(&self) -> bool {
        let [one, other] = self.trace;
        // SAFETY: handed on from the caller.
        unsafe { _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(one, other) == 0 }
    }
}

impl<const BOUNDED: bool> Steps for AddBias<BOUNDED> {
    #[inline(always)]
    unsafe fn finished(&mut self, mut sums: [__m512; 2]) -> [__m512; 2] {
        for ((value, bias), trace) in sums.iter_mut().zip(self.bias).zip(&mut self.trace) {
            // SAFETY: the caller vouches for AVX-512.
            unsafe {
                *value = _mm512_add_ps(*value, bias);
                // Zero times anything but a finite value is NaN.
                *trace = _mm512_fmadd_ps(*value, _mm512_setzero_ps(), *trace);
                if BOUNDED {
                    *value = Avx512F32::at_most(Avx512F32::at_least(*value, self.least), self.greatest);
                }
            }
        }
        sums
    }
}

/// The first `count` lanes of two vectors.
#[inline(always)]
pub(super) fn first_lanes(count: usize) -> [__mmask16; 2] {
    let mask = below(count);
    [mask as __mmask16, (mask >> 16) as __mmask16]
}

/// As many values as there are columns, for two vectors: those of a row, or of two [rows of one](NARROW_COLUMNS).
///
/// # Safety
///
/// The CPU must have AVX-512, and the values must be readable.
#[inline(always)]
unsafe fn load_for_columns(from: *const f32, columns: usize) -> [__m512; 2] {
    // SAFETY: handed on from the caller.
    let [first, second] = unsafe { load(from, columns) };
    [first, if columns <= NARROW_COLUMNS { first } else { second }]
}

/// As many values as there are columns, in two vectors.
///
/// # Safety
///
/// The CPU must have AVX-512, and the values must be readable.
#[inline(always)]
unsafe fn load(from: *const f32, columns: usize) -> [__m512; 2] {
    let masks = first_lanes(columns);
    // SAFETY: the caller vouches for the values; the masks leave out others.
    unsafe {
        [
            _mm512_maskz_loadu_ps(masks[0], from),
            _mm512_maskz_loadu_ps(masks[1], from.wrapping_add(Avx512F32::LANES)),
        ]
    }
}

/// [`crate::storage::range_of`] by this instruction set.
///
/// # Safety
///
/// The CPU must have AVX-512.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) unsafe fn range_of(distances: &[isize]) -> (isize, isize) {
    crate::storage::range_of(distances)
}
