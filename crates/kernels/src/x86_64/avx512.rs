//! AVX-512: 16 lanes of f32, 8 of f64.

use std::arch::x86_64::*;

use super::panel_loop::{accumulate_pair, accumulate_panel};
use super::pixel_loop::accumulate_channels;
use crate::simd::Simd;
use crate::storage::convert_itself;

/// 16 lanes of f32.
#[derive(Clone, Copy)]
pub(crate) struct Avx512F32;

impl Simd for Avx512F32 {
    type Scalar = f32;
    type Vector = __m512;
    type Mask = __mmask16;

    const LANES: usize = 16;
    const FUSED: bool = true;
    const STREAMS: bool = true;

    #[inline(always)]
    unsafe fn splat(value: f32) -> __m512 {
        // SAFETY: the caller vouches for AVX-512.
        unsafe { _mm512_set1_ps(value) }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> __m512 {
        // SAFETY: the caller vouches for AVX-512 and 16 readable elements.
        unsafe { _mm512_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn store(to: *mut f32, value: __m512) {
        // SAFETY: the caller vouches for AVX-512 and 16 writable elements.
        unsafe { _mm512_storeu_ps(to, value) }
    }

    #[inline(always)]
    unsafe fn stream(to: *mut f32, value: __m512) {
        // SAFETY: the caller vouches for AVX-512 and a line of 16 writable elements.
        unsafe { _mm512_stream_ps(to, value) }
    }

    #[inline(always)]
    unsafe fn mask(from: usize, to: usize) -> __mmask16 {
        (below(to) & !below(from)) as __mmask16
    }

    #[inline(always)]
    unsafe fn load_masked(from: *const f32, mask: __mmask16) -> __m512 {
        // SAFETY: the caller vouches for AVX-512; lanes outside the mask are not accessed.
        unsafe { _mm512_maskz_loadu_ps(mask, from) }
    }

    #[inline(always)]
    unsafe fn store_masked(to: *mut f32, value: __m512, mask: __mmask16) {
        // SAFETY: the caller vouches for AVX-512; lanes outside the mask are not accessed.
        unsafe { _mm512_mask_storeu_ps(to, mask, value) }
    }

    #[inline(always)]
    unsafe fn multiply_add(a: __m512, b: __m512, c: __m512) -> __m512 {
        // SAFETY: the caller vouches for AVX-512.
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }

    #[inline(always)]
    unsafe fn add(a: __m512, b: __m512) -> __m512 {
        // SAFETY: the caller vouches for AVX-512.
        unsafe { _mm512_add_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn subtract(a: __m512, b: __m512) -> __m512 {
        // SAFETY: the caller vouches for AVX-512.
        unsafe { _mm512_sub_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn multiply(a: __m512, b: __m512) -> __m512 {
        // SAFETY: the caller vouches for AVX-512.
        unsafe { _mm512_mul_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn divide(a: __m512, b: __m512) -> __m512 {
        // SAFETY: the caller vouches for AVX-512.
        unsafe { _mm512_div_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn at_least(v: __m512, bound: __m512) -> __m512 {
        // SAFETY: the caller vouches for AVX-512. The instruction returns its second operand for NaN.
        unsafe { _mm512_max_ps(bound, v) }
    }

    #[inline(always)]
    unsafe fn at_most(v: __m512, bound: __m512) -> __m512 {
        // SAFETY: the caller vouches for AVX-512. The instruction returns its second operand for NaN.
        unsafe { _mm512_min_ps(bound, v) }
    }

    #[inline(always)]
    unsafe fn single(v: __m512) -> __m512 {
        v
    }

    #[inline(always)]
    unsafe fn round(v: __m512) -> __m512 {
        // SAFETY: the caller vouches for AVX-512.
        unsafe { _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(v) }
    }

    #[inline(always)]
    unsafe fn scale(v: __m512, n: __m512) -> __m512 {
        // SAFETY: the caller vouches for AVX-512.
        unsafe { _mm512_scalef_ps(v, n) }
    }

    #[inline(always)]
    unsafe fn select_less(a: __m512, b: __m512, yes: __m512, no: __m512) -> __m512 {
        // SAFETY: the caller vouches for AVX-512.
        unsafe { _mm512_mask_blend_ps(_mm512_cmp_ps_mask::<_CMP_LT_OQ>(a, b), no, yes) }
    }

    #[inline(always)]
    unsafe fn zip(a: __m512, b: __m512) -> [__m512; 2] {
        // SAFETY: the caller vouches for AVX-512.
        unsafe {
            let low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
            let high = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
            [_mm512_permutex2var_ps(a, low, b), _mm512_permutex2var_ps(a, high, b)]
        }
    }

    #[inline(always)]
    unsafe fn any_nan(v: __m512) -> bool {
        // SAFETY: the caller vouches for AVX-512.
        unsafe { _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(v, v) != 0 }
    }

    accumulate_panel!(avx512::[accumulate_narrow_f32, accumulate_f32], f32, __m512);
    accumulate_pair!(avx512_pair::accumulate_f32, f32, __m512);
    accumulate_channels!(accumulate_f32, f32, __m512);
}

/// 8 lanes of f64.
#[derive(Clone, Copy)]
pub(crate) struct Avx512F64;

impl Simd for Avx512F64 {
    type Scalar = f64;
    type Vector = __m512d;
    type Mask = __mmask8;

    const LANES: usize = 8;
    const FUSED: bool = true;
    const STREAMS: bool = true;

    #[inline(always)]
    unsafe fn splat(value: f64) -> __m512d {
        // SAFETY: the caller vouches for AVX-512.
        unsafe { _mm512_set1_pd(value) }
    }

    #[inline(always)]
    unsafe fn load(from: *const f64) -> __m512d {
        // SAFETY: the caller vouches for AVX-512 and 8 readable elements.
        unsafe { _mm512_loadu_pd(from) }
    }

    #[inline(always)]
    unsafe fn store(to: *mut f64, value: __m512d) {
        // SAFETY: the caller vouches for AVX-512 and 8 writable elements.
        unsafe { _mm512_storeu_pd(to, value) }
    }

    #[inline(always)]
    unsafe fn stream(to: *mut f64, value: __m512d) {
        // SAFETY: the caller vouches for AVX-512 and a line of 8 writable elements.
        unsafe { _mm512_stream_pd(to, value) }
    }

    #[inline(always)]
    unsafe fn mask(from: usize, to: usize) -> __mmask8 {
        (below(to) & !below(from)) as __mmask8
    }

    #[inline(always)]
    unsafe fn load_masked(from: *const f64, mask: __mmask8) -> __m512d {
        // SAFETY: the caller vouches for AVX-512; lanes outside the mask are not accessed.
        unsafe { _mm512_maskz_loadu_pd(mask, from) }
    }

    #[inline(always)]
    unsafe fn store_masked(to: *mut f64, value: __m512d, mask: __mmask8) {
        // SAFETY: the caller vouches for AVX-512; lanes outside the mask are not accessed.
        unsafe { _mm512_mask_storeu_pd(to, mask, value) }
    }

    #[inline(always)]
    unsafe fn multiply_add(a: __m512d, b: __m512d, c: __m512d) -> __m512d {
        // SAFETY: the caller vouches for AVX-512.
        unsafe { _mm512_fmadd_pd(a, b, c) }
    }

    #[inline(always)]
    unsafe fn add(a: __m512d, b: __m512d) -> __m512d {
        // SAFETY: the caller vouches for AVX-512.
        unsafe { _mm512_add_pd(a, b) }
    }

    #[inline(always)]
    unsafe fn subtract(a: __m512d, b: __m512d) -> __m512d {
        // SAFETY: the caller vouches for AVX-512.
        unsafe { _mm512_sub_pd(a, b) }
    }

    #[inline(always)]
    unsafe fn multiply(a: __m512d, b: __m512d) -> __m512d {
        // SAFETY: the caller vouches for AVX-512.
        unsafe { _mm512_mul_pd(a, b) }
    }

    #[inline(always)]
    unsafe fn divide(a: __m512d, b: __m512d) -> __m512d {
        // SAFETY: the caller vouches for AVX-512.
        unsafe { _mm512_div_pd(a, b) }
    }

    #[inline(always)]
    unsafe fn at_least(v: __m512d, bound: __m512d) -> __m512d {
        // SAFETY: the caller vouches for AVX-512. The instruction returns its second operand for NaN.
        unsafe { _mm512_max_pd(bound, v) }
    }

    #[inline(always)]
    unsafe fn at_most(v: __m512d, bound: __m512d) -> __m512d {
        // SAFETY: the caller vouches for AVX-512. The instruction returns its second operand for NaN.
        unsafe { _mm512_min_pd(bound, v) }
    }

    #[inline(always)]
    unsafe fn single(v: __m512d) -> __m512d {
        // SAFETY: the caller vouches for AVX-512.
        unsafe { _mm512_cvtps_pd(_mm512_cvtpd_ps(v)) }
    }

    #[inline(always)]
    unsafe fn round(v: __m512d) -> __m512d {
        // SAFETY: the caller vouches for AVX-512.
        unsafe { _mm512_roundscale_pd::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(v) }
    }

    #[inline(always)]
    unsafe fn scale(v: __m512d, n: __m512d) -> __m512d {
        // SAFETY: the caller vouches for AVX-512.
        unsafe { _mm512_scalef_pd(v, n) }
    }

    #[inline(always)]
    unsafe fn select_less(a: __m512d, b: __m512d, yes: __m512d, no: __m512d) -> __m512d {
        // SAFETY: the caller vouches for AVX-512.
        unsafe { _mm512_mask_blend_pd(_mm512_cmp_pd_mask::<_CMP_LT_OQ>(a, b), no, yes) }
    }

    #[inline(always)]
    unsafe fn zip(a: __m512d, b: __m512d) -> [__m512d; 2] {
        // SAFETY: the caller vouches for AVX-512.
        unsafe {
            let low = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
            let high = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
            [_mm512_permutex2var_pd(a, low, b), _mm512_permutex2var_pd(a, high, b)]
        }
    }

    #[inline(always)]
    unsafe fn any_nan(v: __m512d) -> bool {
        // SAFETY: the caller vouches for AVX-512.
        unsafe { _mm512_cmp_pd_mask::<_CMP_UNORD_Q>(v, v) != 0 }
    }

    accumulate_panel!(avx512::[accumulate_narrow_f64, accumulate_f64], f64, __m512d);
    accumulate_pair!(avx512_pair::accumulate_f64, f64, __m512d);
    accumulate_channels!(accumulate_f64, f64, __m512d);
}

convert_itself! {
    {} f32, Avx512F32;
    {} f64, Avx512F64;
}

/// The first so many lanes of 64; of fewer, in the low bits.
#[inline(always)]
pub(super) fn below(lanes: usize) -> __mmask64 {
    if lanes >= 64 { __mmask64::MAX } else { (1 << lanes) - 1 }
}
