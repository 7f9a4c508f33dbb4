//! The rows of tiles: inputs on their way in, sums on their way out.

use std::arch::x86_64::*;

use super::super::avx512::{Avx512F32, below};
use super::super::finish::first_lanes;
use crate::matrix::{PART_ROW, TINY, VANISHING};
use crate::transpose::turned;

/// As [`copy_rows`], but cuts numbers into parts, each `part` behind the one before.
///
/// # Safety
///
/// The CPU must have AVX-512 with BF16; all positions must be readable, and as many rows of all parts writable.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
pub(super) unsafe fn split<const PARTS: usize>(
    source: *const f32,
    stride: isize,
    count: usize,
    channels: usize,
    target: *mut u16,
    (pitch, step): (usize, usize),
    part: usize,
) -> bool {
    let magnitude = _mm512_set1_epi32(i32::MAX);
    let one = _mm512_set1_epi32(1);
    let tiny = _mm512_set1_epi32(TINY.to_bits() as i32 - 1);
    let mut found = 0;
    for position in 0..count {
        for (number, first) in (0..channels).step_by(PART_ROW).enumerate() {
            let [low, high] = first_lanes(channels - first);
            // SAFETY: the caller vouches for the channels of the position; the masks leave out others.
            let mut halves = unsafe {
                let from = source.offset(position as isize * stride).add(first);
                [_mm512_maskz_loadu_ps(low, from), _mm512_maskz_loadu_ps(high, from.wrapping_add(16))]
            };
            for half in halves {
                // Less one, zero is the largest of all.
                let bits = _mm512_sub_epi32(_mm512_and_si512(_mm512_castps_si512(half), magnitude), one);
                found |= _mm512_cmplt_epu32_mask(bits, tiny);
            }
            let row = target.wrapping_add(position * pitch + number * step);
            for number in 0..PARTS {
                let rounded = halves.map(|half| _mm512_cvtneps_pbh(half));
                for (half, rounded) in halves.iter_mut().zip(rounded) {
                    *half = _mm512_sub_ps(*half, _mm512_cvtpbh_ps(rounded));
                }
                for (half, rounded) in rounded.into_iter().enumerate() {
                    let to = row.wrapping_add(number * part + half * 16);
                    // SAFETY: both are 32 bytes of plain bits; the caller vouches for the target.
                    unsafe {
                        _mm256_storeu_si256(to.cast(), std::mem::transmute::<__m256bh, __m256i>(rounded));
                    }
                }
            }
        }
    }
    found != 0
}

/// Whether all sums are finite and, where it matters, none [vanishes](crate::matrix::VANISHING).
///
/// # Safety
///
/// The CPU must have AVX-512.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
pub(super) unsafe fn are_sound(sums: &[f32], tiny_inputs: bool) -> bool {
    let zero = _mm512_setzero_ps();
    let bound = _mm512_set1_ps(if tiny_inputs { VANISHING } else { -1.0 });
    let (mut trace, mut vanishing) = (zero, 0);
    for sums in sums.chunks_exact(16) {
        // SAFETY: a chunk has 16 elements.
        let sums = unsafe { _mm512_loadu_ps(sums.as_ptr()) };
        // Zero times anything but a finite value is NaN.
        trace = _mm512_fmadd_ps(sums, zero, trace);
        vanishing |= _mm512_cmp_ps_mask::<_CMP_LT_OQ>(_mm512_abs_ps(sums), bound);
    }
    vanishing == 0 && _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(trace, trace) == 0
}

/// Adds the bias to rows as long as it. Returns whether all results are finite.
///
/// # Safety
///
/// The CPU must have AVX-512.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
pub(super) unsafe fn add_bias(sums: &mut [f32], bias: &[f32]) -> bool {
    let zero = _mm512_setzero_ps();
    let mut trace = zero;
    for (column, bias_of_column) in bias.chunks_exact(16).enumerate() {
        // SAFETY: a chunk has 16 elements.
        let bias_of_column = unsafe { _mm512_loadu_ps(bias_of_column.as_ptr()) };
        for row in sums.chunks_exact_mut(bias.len()) {
            let sums = &mut row[column * 16..][..16];
            // SAFETY: these are 16 elements.
            let sum = unsafe { _mm512_add_ps(_mm512_loadu_ps(sums.as_ptr()), bias_of_column) };
            // Zero times anything but a finite value is NaN.
            trace = _mm512_fmadd_ps(sum, zero, trace);
            // SAFETY: as above.
            unsafe { _mm512_storeu_ps(sums.as_mut_ptr(), sum) };
        }
    }
    _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(trace, trace) == 0
}

/// Which of some bf16 numbers are neither zero nor at least [`TINY`](crate::matrix::TINY).
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn tiny(numbers: __m512i) -> __mmask32 {
    let magnitude = _mm512_and_si512(numbers, _mm512_set1_epi16(i16::MAX));
    // Less one, zero is the largest of all.
    let less_one = _mm512_sub_epi16(magnitude, _mm512_set1_epi16(1));
    _mm512_cmplt_epu16_mask(less_one, _mm512_set1_epi16((TINY.to_bits() >> 16) as i16 - 1))
}

/// Copies positions `stride` apart, of so many channels side by side, to rows of 32 `pitch` apart with zeros behind them, every
/// further 32 channels `step` apart. Returns whether a number other than zero was [tiny](crate::matrix::TINY).
///
/// # Safety
///
/// The CPU must have AVX-512; all positions must be readable, and as many rows writable.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) unsafe fn copy_rows(
    source: *const u16,
    stride: isize,
    count: usize,
    channels: usize,
    target: *mut u16,
    (pitch, step): (usize, usize),
) -> bool {
    let mut found = 0;
    for position in 0..count {
        for (number, first) in (0..channels).step_by(PART_ROW).enumerate() {
            // SAFETY: the caller vouches for the channels of the position, and for the rows; the mask leaves out others.
            unsafe {
                let from = source.offset(position as isize * stride).add(first);
                let row = _mm512_maskz_loadu_epi16(below(channels - first) as __mmask32, from.cast());
                found |= tiny(row);
                _mm512_storeu_si512(target.add(position * pitch + number * step).cast(), row);
            }
        }
    }
    found != 0
}

/// Copies positions side by side, of channels at some distances, to rows of 32 `pitch` apart with zeros behind them. Returns whether a
/// number other than zero was [tiny](crate::matrix::TINY).
///
/// # Safety
///
/// The CPU must have AVX-512; all positions of all channels must be readable, and as many rows writable.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) unsafe fn turn_rows(
    source: *const u16,
    distances: &[isize],
    count: usize,
    target: *mut u16,
    pitch: usize,
) -> bool {
    let mut found = 0;
    let channel = |index: usize, first: usize, mask: __mmask32| {
        let Some(&distance) = distances.get(index) else { return _mm512_setzero_si512() };
        // SAFETY: the caller vouches for the channel's positions; the mask leaves out others.
        unsafe { _mm512_maskz_loadu_epi16(mask, source.wrapping_offset(distance).wrapping_add(first).cast()) }
    };
    for first in (0..count).step_by(32) {
        let there = (count - first).min(32);
        let mask = below(there) as __mmask32;
        // Pairs of channels: positions 0 to 3 and 4 to 7 of every eight.
        let mut pairs = [[_mm512_setzero_ps(); 16]; 2];
        for pair in 0..16 {
            let (even, odd) = (channel(2 * pair, first, mask), channel(2 * pair + 1, first, mask));
            found |= tiny(even) | tiny(odd);
            pairs[0][pair] = _mm512_castsi512_ps(_mm512_unpacklo_epi16(even, odd));
            pairs[1][pair] = _mm512_castsi512_ps(_mm512_unpackhi_epi16(even, odd));
        }
        for (half, pairs) in pairs.into_iter().enumerate() {
            // SAFETY: the caller vouches for AVX-512.
            let rows = unsafe { turned::<Avx512F32>(pairs) };
            for (index, row) in rows.into_iter().enumerate() {
                let position = index / 4 * 8 + half * 4 + index % 4;
                if position < there {
                    // SAFETY: the caller vouches for the rows of all positions.
                    unsafe { _mm512_storeu_ps(target.add((first + position) * pitch).cast(), row) };
                }
            }
        }
    }
    found != 0
}
