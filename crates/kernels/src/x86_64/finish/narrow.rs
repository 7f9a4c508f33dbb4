//! The types that finished sums are stored in.

use std::arch::x86_64::*;

use half::{bf16, f16};

use super::super::avx512::{Avx512F32, below};
use super::super::bytes::in_order;
use super::first_lanes;
use crate::simd::Simd;
use crate::storage::Convert;

/// How two vectors of usual numbers become neighbours in memory.
pub(super) trait Narrow: Sized {
    /// # Safety
    ///
    /// The CPU must have AVX-512, for bf16 with BF16; 32 elements must be writable, from the begin of a line on to `STREAM`.
    unsafe fn store<const STREAM: bool>(to: *mut Self, values: [__m512; 2]);

    /// # Safety
    ///
    /// The CPU must have AVX-512, for bf16 with BF16; as many elements must be writable.
    unsafe fn store_first(to: *mut Self, values: [__m512; 2], count: usize);
}

impl Narrow for f32 {
    #[inline(always)]
    unsafe fn store<const STREAM: bool>(to: *mut f32, values: [__m512; 2]) {
        for (half, value) in values.into_iter().enumerate() {
            // SAFETY: handed on from the caller.
            unsafe {
                let to = to.add(16 * half);
                if STREAM { _mm512_stream_ps(to, value) } else { _mm512_storeu_ps(to, value) }
            }
        }
    }

    #[inline(always)]
    unsafe fn store_first(to: *mut f32, values: [__m512; 2], count: usize) {
        let masks = first_lanes(count);
        for (half, value) in values.into_iter().enumerate() {
            // SAFETY: the caller vouches for the elements; the mask leaves out others.
            unsafe { _mm512_mask_storeu_ps(to.wrapping_add(16 * half), masks[half], value) };
        }
    }
}

/// How two vectors of usual numbers become one: those of the first, then those of the second.
pub(super) trait Half: Narrow {
    /// # Safety
    ///
    /// The CPU must have AVX-512, for bf16 with BF16.
    unsafe fn narrowed(values: [__m512; 2]) -> __m512i;
}

/// Types of 16 bits, given how two vectors become one.
macro_rules! narrow_to_halves {
    ($type:ty, $narrowed:ident) => {
        impl Half for $type {
            #[inline(always)]
            unsafe fn narrowed(values: [__m512; 2]) -> __m512i {
                // SAFETY: handed on from the caller.
                unsafe { $narrowed(values) }
            }
        }

        impl Narrow for $type {
            #[inline(always)]
            unsafe fn store<const STREAM: bool>(to: *mut $type, values: [__m512; 2]) {
                // SAFETY: handed on from the caller.
                unsafe {
                    let line = $narrowed(values);
                    if STREAM {
                        _mm512_stream_si512(to.cast(), line)
                    } else {
                        _mm512_storeu_si512(to.cast(), line)
                    }
                }
            }

            #[inline(always)]
            unsafe fn store_first(to: *mut $type, values: [__m512; 2], count: usize) {
                // SAFETY: the caller vouches for the elements; the mask leaves out others.
                unsafe { _mm512_mask_storeu_epi16(to.cast(), below(count), $narrowed(values)) };
            }
        }
    };
}

narrow_to_halves!(bf16, to_bf16);
narrow_to_halves!(f16, to_f16);

/// Bytes, which do not fill a line.
macro_rules! narrow_to_bytes {
    ($type:ty) => {
        impl Narrow for $type {
            #[inline(always)]
            unsafe fn store<const STREAM: bool>(to: *mut $type, values: [__m512; 2]) {
                // SAFETY: handed on from the caller.
                unsafe { <Avx512F32 as Convert<$type>>::store_two_as(to, values) };
            }

            #[inline(always)]
            unsafe fn store_first(to: *mut $type, values: [__m512; 2], count: usize) {
                let masks = first_lanes(count);
                for (half, value) in values.into_iter().enumerate() {
                    let to = to.wrapping_add(Avx512F32::LANES * half);
                    // SAFETY: the caller vouches for the elements; the mask leaves out others.
                    unsafe { <Avx512F32 as Convert<$type>>::store_masked_as(to, value, masks[half]) };
                }
            }
        }
    };
}

narrow_to_bytes!(i8);
narrow_to_bytes!(u8);

/// Bytes whose values are integers of 32 bits already, in the place of numbers, none beyond 16 bits.
#[repr(transparent)]
pub(super) struct Whole<Q>(Q);

macro_rules! narrow_whole_numbers {
    ($type:ty, $narrowed:ident, $pack:ident) => {
        /// # Safety
        ///
        /// The CPU must have AVX-512.
        #[inline(always)]
        unsafe fn $narrowed([low, high]: [__m512; 2]) -> __m256i {
            // SAFETY: the caller vouches for AVX-512.
            unsafe {
                let words = _mm512_packs_epi32(_mm512_castps_si512(low), _mm512_castps_si512(high));
                _mm512_castsi512_si256(in_order($pack(words, words)))
            }
        }

        impl Narrow for Whole<$type> {
            #[inline(always)]
            unsafe fn store<const STREAM: bool>(to: *mut Self, values: [__m512; 2]) {
                // SAFETY: handed on from the caller.
                unsafe { _mm256_storeu_si256(to.cast(), $narrowed(values)) };
            }

            #[inline(always)]
            unsafe fn store_first(to: *mut Self, values: [__m512; 2], count: usize) {
                // SAFETY: the caller vouches for the elements; the mask leaves out others.
                unsafe { _mm256_mask_storeu_epi8(to.cast(), below(count), $narrowed(values)) };
            }
        }
    };
}

narrow_whole_numbers!(i8, whole_signed, _mm512_packs_epi16);
narrow_whole_numbers!(u8, whole_unsigned, _mm512_packus_epi16);

/// # Safety
///
/// The CPU must have AVX-512 with BF16.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
unsafe fn to_bf16([low, high]: [__m512; 2]) -> __m512i {
    // SAFETY: both are 64 bytes of plain bits.
    unsafe { std::mem::transmute::<__m512bh, __m512i>(_mm512_cvtne2ps_pbh(high, low)) }
}

/// # Safety
///
/// The CPU must have AVX-512.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn to_f16([low, high]: [__m512; 2]) -> __m512i {
    const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    let (low, high) = (_mm512_cvtps_ph::<NEAREST>(low), _mm512_cvtps_ph::<NEAREST>(high));
    _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high)
}
