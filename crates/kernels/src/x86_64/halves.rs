//! 16-bit floats in memory, 32-bit ones in registers.

use std::arch::x86_64::*;

use half::{bf16, f16};

use super::avx2::Avx2F32;
use super::avx512::Avx512F32;
use crate::storage::Convert;

/// Both halves of a vector.
///
/// # Safety
///
/// The CPU must have AVX-512.
#[inline(always)]
unsafe fn joined(low: __m256i, high: __m256i) -> __m512i {
    // SAFETY: the caller vouches for AVX-512.
    unsafe { _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high) }
}

/// The 16 bits of the nearest values, ties to even. The instruction for it would take numbers near zero for zero.
///
/// # Safety
///
/// The CPU must have AVX-512.
#[inline(always)]
unsafe fn bf16_bits_512(value: __m512) -> __m256i {
    // SAFETY: the caller vouches for AVX-512.
    unsafe {
        let bits = _mm512_castps_si512(value);
        let upper = _mm512_srli_epi32::<16>(bits);
        let odd = _mm512_and_si512(upper, _mm512_set1_epi32(1));
        let rounding = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff));
        let rounded = _mm512_srli_epi32::<16>(_mm512_add_epi32(bits, rounding));
        let nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(value, value);
        let quiet = _mm512_or_si512(upper, _mm512_set1_epi32(0x40));
        _mm512_cvtepi32_epi16(_mm512_mask_mov_epi32(rounded, nan, quiet))
    }
}

/// # Safety
///
/// The CPU must have AVX-512.
#[inline(always)]
unsafe fn from_bf16_bits_512(bits: __m256i) -> __m512 {
    // SAFETY: the caller vouches for AVX-512.
    unsafe { _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(bits))) }
}

/// # Safety
///
/// The CPU must have AVX-512.
#[inline(always)]
unsafe fn f16_bits_512(value: __m512) -> __m256i {
    // SAFETY: the caller vouches for AVX-512.
    unsafe { _mm512_cvtps_ph::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(value) }
}

/// # Safety
///
/// The CPU must have AVX-512.
#[inline(always)]
unsafe fn from_f16_bits_512(bits: __m256i) -> __m512 {
    // SAFETY: the caller vouches for AVX-512.
    unsafe { _mm512_cvtph_ps(bits) }
}

/// As [`bf16_bits_512`].
///
/// # Safety
///
/// The CPU must have AVX2.
#[inline(always)]
unsafe fn bf16_bits_256(value: __m256) -> __m128i {
    // SAFETY: the caller vouches for AVX2.
    unsafe {
        let bits = _mm256_castps_si256(value);
        let upper = _mm256_srli_epi32::<16>(bits);
        let odd = _mm256_and_si256(upper, _mm256_set1_epi32(1));
        let rounding = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
        let rounded = _mm256_srli_epi32::<16>(_mm256_add_epi32(bits, rounding));
        let nan = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_UNORD_Q>(value, value));
        let quiet = _mm256_or_si256(upper, _mm256_set1_epi32(0x40));
        let chosen = _mm256_blendv_epi8(rounded, quiet, nan);
        _mm_packus_epi32(_mm256_castsi256_si128(chosen), _mm256_extracti128_si256::<1>(chosen))
    }
}

/// # Safety
///
/// The CPU must have AVX2.
#[inline(always)]
unsafe fn from_bf16_bits_256(bits: __m128i) -> __m256 {
    // SAFETY: the caller vouches for AVX2.
    unsafe { _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(bits))) }
}

/// # Safety
///
/// The CPU must have F16C.
#[inline(always)]
unsafe fn f16_bits_256(value: __m256) -> __m128i {
    // SAFETY: the caller vouches for F16C.
    unsafe { _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(value) }
}

/// # Safety
///
/// The CPU must have F16C.
#[inline(always)]
unsafe fn from_f16_bits_256(bits: __m128i) -> __m256 {
    // SAFETY: the caller vouches for F16C.
    unsafe { _mm256_cvtph_ps(bits) }
}

macro_rules! halves_512 {
    ($type:ty, $bits:ident, $from_bits:ident) => {
        impl Convert<$type> for Avx512F32 {
            const STREAMS: bool = true;

            #[inline(always)]
            unsafe fn load_as(from: *const $type) -> __m512 {
                // SAFETY: the caller vouches for AVX-512 and 16 readable elements.
                unsafe { $from_bits(_mm256_loadu_si256(from.cast())) }
            }

            #[inline(always)]
            unsafe fn load_masked_as(from: *const $type, mask: __mmask16) -> __m512 {
                // SAFETY: the caller vouches for AVX-512; lanes outside the mask are not accessed.
                unsafe { $from_bits(_mm256_maskz_loadu_epi16(mask, from.cast())) }
            }

            #[inline(always)]
            unsafe fn store_as(to: *mut $type, value: __m512) {
                // SAFETY: the caller vouches for AVX-512 and 16 writable elements.
                unsafe { _mm256_storeu_si256(to.cast(), $bits(value)) }
            }

            #[inline(always)]
            unsafe fn store_masked_as(to: *mut $type, value: __m512, mask: __mmask16) {
                // SAFETY: the caller vouches for AVX-512; lanes outside the mask are not accessed.
                unsafe { _mm256_mask_storeu_epi16(to.cast(), mask, $bits(value)) }
            }

            #[inline(always)]
            fn scalar_from(value: $type) -> f32 {
                value.to_f32()
            }

            #[inline(always)]
            fn scalar_to(value: f32) -> $type {
                <$type>::from_f32(value)
            }

            #[inline(always)]
            unsafe fn store_two_as(to: *mut $type, [low, high]: [__m512; 2]) {
                // SAFETY: the caller vouches for AVX-512 and 32 writable elements.
                unsafe { _mm512_storeu_si512(to.cast(), joined($bits(low), $bits(high))) }
            }

            #[inline(always)]
            unsafe fn store_line<const STREAM: bool>(to: *mut $type, from: *const f32) {
                // SAFETY: the caller vouches for AVX-512 and a line's elements, and that they begin a line to stream to.
                unsafe {
                    let line = joined($bits(_mm512_loadu_ps(from)), $bits(_mm512_loadu_ps(from.add(16))));
                    if STREAM {
                        _mm512_stream_si512(to.cast(), line)
                    } else {
                        _mm512_storeu_si512(to.cast(), line)
                    }
                }
            }
        }
    };
}

halves_512!(bf16, bf16_bits_512, from_bf16_bits_512);
halves_512!(f16, f16_bits_512, from_f16_bits_512);

macro_rules! halves_256 {
    ($type:ty, $bits:ident, $from_bits:ident) => {
        impl Convert<$type> for Avx2F32 {
            #[inline(always)]
            unsafe fn load_as(from: *const $type) -> __m256 {
                // SAFETY: the caller vouches for AVX2 with F16C and 8 readable elements.
                unsafe { $from_bits(_mm_loadu_si128(from.cast())) }
            }

            #[inline(always)]
            unsafe fn load_masked_as(from: *const $type, mask: __m256i) -> __m256 {
                let mut lanes = [<$type>::ZERO; 8];
                // SAFETY: the caller vouches for AVX2 with F16C and the lanes of the mask.
                unsafe {
                    let there = _mm256_movemask_ps(_mm256_castsi256_ps(mask));
                    for (lane, value) in
                        lanes.iter_mut().enumerate().filter(|(lane, _)| there >> lane & 1 == 1)
                    {
                        *value = from.wrapping_add(lane).read();
                    }
                    Self::load_as(lanes.as_ptr())
                }
            }

            #[inline(always)]
            unsafe fn store_as(to: *mut $type, value: __m256) {
                // SAFETY: the caller vouches for AVX2 with F16C and 8 writable elements.
                unsafe { _mm_storeu_si128(to.cast(), $bits(value)) }
            }

            #[inline(always)]
            unsafe fn store_masked_as(to: *mut $type, value: __m256, mask: __m256i) {
                let mut lanes = [<$type>::ZERO; 8];
                // SAFETY: the caller vouches for AVX2 with F16C and the lanes of the mask.
                unsafe {
                    Self::store_as(lanes.as_mut_ptr(), value);
                    let there = _mm256_movemask_ps(_mm256_castsi256_ps(mask));
                    for (lane, value) in
                        lanes.into_iter().enumerate().filter(|(lane, _)| there >> lane & 1 == 1)
                    {
                        to.wrapping_add(lane).write(value);
                    }
                }
            }

            #[inline(always)]
            fn scalar_from(value: $type) -> f32 {
                value.to_f32()
            }

            #[inline(always)]
            fn scalar_to(value: f32) -> $type {
                <$type>::from_f32(value)
            }
        }
    };
}

halves_256!(bf16, bf16_bits_256, from_bf16_bits_256);
halves_256!(f16, f16_bits_256, from_f16_bits_256);
