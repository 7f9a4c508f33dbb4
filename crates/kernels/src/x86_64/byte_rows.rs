//! Rows of bytes: inputs on their way in, sums on their way out. What comes between may be [matrix tiles](super::amx) or
//! [vectors](super::vnni).

use std::arch::x86_64::*;

use super::avx512::{Avx512F32, below};
use crate::matrix::BYTE_ROW;
use crate::quantize::{Requantization, Sums, requantize_from};

/// Copies positions `stride` apart, of so many channels side by side, to rows of 64 `pitch` apart with something behind them,
/// every further 64 channels `step` apart, every byte with the bits of `FLIP` turned over.
///
/// # Safety
///
/// The CPU must have AVX-512; all positions must be readable, and as many rows writable.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) unsafe fn copy_rows<const FLIP: u8>(
    source: *const u8,
    stride: isize,
    count: usize,
    channels: usize,
    target: *mut u16,
    (pitch, step): (usize, usize),
) {
    let flip = _mm512_set1_epi8(FLIP as i8);
    for position in 0..count {
        for (number, first) in (0..channels).step_by(BYTE_ROW).enumerate() {
            // SAFETY: the caller vouches for the channels of the position, and for the rows; the mask leaves out others.
            unsafe {
                let from = source.offset(position as isize * stride).add(first);
                let row = _mm512_maskz_loadu_epi8(below(channels - first), from.cast());
                let to = target.add(position * pitch + number * step);
                _mm512_storeu_si512(to.cast(), _mm512_xor_si512(row, flip));
            }
        }
    }
}

/// As [`copy_rows`], of positions side by side and channels at some distances.
///
/// # Safety
///
/// The CPU must have AVX-512; all positions of all channels must be readable, and as many rows writable.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) unsafe fn turn_rows<const FLIP: u8>(
    source: *const u8,
    distances: &[isize],
    count: usize,
    target: *mut u16,
    pitch: usize,
) {
    let flip = _mm512_set1_epi8(FLIP as i8);
    for first in (0..count).step_by(16) {
        let there = (count - first).min(16);
        let channel = |index: usize| {
            let Some(&distance) = distances.get(index) else { return _mm_setzero_si128() };
            let from = source.wrapping_offset(distance).wrapping_add(first).cast();
            // SAFETY: the caller vouches for the channel's positions; the mask leaves out others.
            unsafe {
                if there == 16 {
                    _mm_loadu_si128(from)
                } else {
                    _mm_maskz_loadu_epi8((1 << there) - 1, from.cast())
                }
            }
        };
        // Sixteen positions of channels 0, 16, 32 and 48, of 1, 17, 33 and 49, and so on.
        let mut rows = [_mm512_setzero_si512(); 16];
        for (index, row) in rows.iter_mut().enumerate() {
            let low = _mm512_castsi128_si512(channel(index));
            let low = _mm512_inserti32x4::<1>(low, channel(16 + index));
            let low = _mm512_inserti32x4::<2>(low, channel(32 + index));
            *row = _mm512_inserti32x4::<3>(low, channel(48 + index));
        }
        // Four times shuffling the first half of the rows into the second turns every lane around.
        for _ in 0..4 {
            let before = rows;
            for index in 0..8 {
                rows[2 * index] = _mm512_unpacklo_epi8(before[index], before[8 + index]);
                rows[2 * index + 1] = _mm512_unpackhi_epi8(before[index], before[8 + index]);
            }
        }
        for (position, &row) in rows.iter().enumerate().take(there) {
            // SAFETY: the caller vouches for the rows of all positions.
            unsafe {
                let to = target.add((first + position) * pitch);
                _mm512_storeu_si512(to.cast(), _mm512_xor_si512(row, flip));
            }
        }
    }
}

/// Sums that are integers.
struct Integers;

impl Sums<Avx512F32> for Integers {
    #[inline(always)]
    unsafe fn read(&self, from: *const f32) -> __m512 {
        // SAFETY: the caller vouches for AVX-512 and 16 elements of 32 bits.
        unsafe { _mm512_cvtepi32_ps(_mm512_loadu_si512(from.cast())) }
    }
}

/// Requantizes the integers that products of bytes left, in rows of columns.
///
/// # Safety
///
/// The CPU must have AVX-512.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
pub(super) unsafe fn requantize(sums: &mut [f32], to: &Requantization<'_>) {
    // SAFETY: the caller vouches for AVX-512.
    unsafe { requantize_from::<Avx512F32>(sums, to, &Integers) }
}
