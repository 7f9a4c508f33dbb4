//! Bytes in memory, 32-bit floats in registers.

use std::arch::x86_64::*;

use super::avx512::Avx512F32;
use crate::storage::Convert;

/// Integers between two bounds; zero for NaN.
///
/// # Safety
///
/// The CPU must have AVX-512.
#[inline(always)]
unsafe fn integers(value: __m512, least: f32, greatest: f32) -> __m512i {
    // SAFETY: the caller vouches for AVX-512.
    unsafe {
        let number = _mm512_cmp_ps_mask::<_CMP_ORD_Q>(value, value);
        let bounded = _mm512_min_ps(_mm512_max_ps(value, _mm512_set1_ps(least)), _mm512_set1_ps(greatest));
        // As casts do: toward zero. Quantized values are integers already.
        _mm512_maskz_cvttps_epi32(number, bounded)
    }
}

macro_rules! bytes {
    ($type:ty, $least:literal, $greatest:literal, $widen:ident) => {
        impl Convert<$type> for Avx512F32 {
            #[inline(always)]
            unsafe fn load_as(from: *const $type) -> __m512 {
                // SAFETY: the caller vouches for AVX-512 and 16 readable elements.
                unsafe { _mm512_cvtepi32_ps($widen(_mm_loadu_si128(from.cast()))) }
            }

            #[inline(always)]
            unsafe fn load_masked_as(from: *const $type, mask: __mmask16) -> __m512 {
                // SAFETY: the caller vouches for AVX-512; lanes outside the mask are not accessed.
                unsafe { _mm512_cvtepi32_ps($widen(_mm_maskz_loadu_epi8(mask, from.cast()))) }
            }

            #[inline(always)]
            unsafe fn store_as(to: *mut $type, value: __m512) {
                // SAFETY: the caller vouches for AVX-512 and 16 writable elements.
                unsafe {
                    let bytes = _mm512_cvtepi32_epi8(integers(value, $least, $greatest));
                    _mm_storeu_si128(to.cast(), bytes);
                }
            }

            #[inline(always)]
            unsafe fn store_masked_as(to: *mut $type, value: __m512, mask: __mmask16) {
                // SAFETY: the caller vouches for AVX-512; lanes outside the mask are not accessed.
                unsafe {
                    let bytes = _mm512_cvtepi32_epi8(integers(value, $least, $greatest));
                    _mm_mask_storeu_epi8(to.cast(), mask, bytes);
                }
            }

            #[inline(always)]
            fn scalar_from(value: $type) -> f32 {
                value.into()
            }

            #[inline(always)]
            fn scalar_to(value: f32) -> $type {
                value as $type
            }
        }
    };
}

bytes!(i8, -128.0, 127.0, _mm512_cvtepi8_epi32);
bytes!(u8, 0.0, 255.0, _mm512_cvtepu8_epi32);
