//! AVX2 with FMA: 8 lanes of f32, 4 of f64.

use std::arch::x86_64::*;

use super::panel_loop::accumulate_panel;
use crate::simd::Simd;
use crate::storage::convert_itself;

/// 8 lanes of f32.
#[derive(Clone, Copy)]
pub(crate) struct Avx2F32;

impl Simd for Avx2F32 {
    type Scalar = f32;
    type Vector = __m256;
    type Mask = __m256i;

    const LANES: usize = 8;
    const FUSED: bool = true;
    const STREAMS: bool = true;

    #[inline(always)]
    unsafe fn splat(value: f32) -> __m256 {
        // SAFETY: the caller vouches for AVX2.
        unsafe { _mm256_set1_ps(value) }
    }

    #[inline(always)]
    unsafe fn load(from: *const f32) -> __m256 {
        // SAFETY: the caller vouches for AVX2 and 8 readable elements.
        unsafe { _mm256_loadu_ps(from) }
    }

    #[inline(always)]
    unsafe fn store(to: *mut f32, value: __m256) {
        // SAFETY: the caller vouches for AVX2 and 8 writable elements.
        unsafe { _mm256_storeu_ps(to, value) }
    }

    #[inline(always)]
    unsafe fn stream(to: *mut f32, value: __m256) {
        // SAFETY: the caller vouches for AVX2 and 8 writable elements, aligned to the vector.
        unsafe { _mm256_stream_ps(to, value) }
    }

    #[inline(always)]
    unsafe fn mask(from: usize, to: usize) -> __m256i {
        let lane = |index: i32| -(i32::from(from as i64 <= i64::from(index) && i64::from(index) < to as i64));
        // SAFETY: the caller vouches for AVX2.
        unsafe { _mm256_setr_epi32(lane(0), lane(1), lane(2), lane(3), lane(4), lane(5), lane(6), lane(7)) }
    }

    #[inline(always)]
    unsafe fn load_masked(from: *const f32, mask: __m256i) -> __m256 {
        // SAFETY: the caller vouches for AVX2; lanes outside the mask are not accessed.
        unsafe { _mm256_maskload_ps(from, mask) }
    }

    #[inline(always)]
    unsafe fn store_masked(to: *mut f32, value: __m256, mask: __m256i) {
        // SAFETY: the caller vouches for AVX2; lanes outside the mask are not accessed.
        unsafe { _mm256_maskstore_ps(to, mask, value) }
    }

    #[inline(always)]
    unsafe fn multiply_add(a: __m256, b: __m256, c: __m256) -> __m256 {
        // SAFETY: the caller vouches for FMA.
        unsafe { _mm256_fmadd_ps(a, b, c) }
    }

    #[inline(always)]
    unsafe fn add(a: __m256, b: __m256) -> __m256 {
        // SAFETY: the caller vouches for AVX2.
        unsafe { _mm256_add_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn subtract(a: __m256, b: __m256) -> __m256 {
        // SAFETY: the caller vouches for AVX2.
        unsafe { _mm256_sub_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn multiply(a: __m256, b: __m256) -> __m256 {
        // SAFETY: the caller vouches for AVX2.
        unsafe { _mm256_mul_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn divide(a: __m256, b: __m256) -> __m256 {
        // SAFETY: the caller vouches for AVX2.
        unsafe { _mm256_div_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn at_least(v: __m256, bound: __m256) -> __m256 {
        // SAFETY: the caller vouches for AVX2. The instruction returns its second operand for NaN.
        unsafe { _mm256_max_ps(bound, v) }
    }

    #[inline(always)]
    unsafe fn at_most(v: __m256, bound: __m256) -> __m256 {
        // SAFETY: the caller vouches for AVX2. The instruction returns its second operand for NaN.
        unsafe { _mm256_min_ps(bound, v) }
    }

    #[inline(always)]
    unsafe fn single(v: __m256) -> __m256 {
        v
    }

    #[inline(always)]
    unsafe fn round(v: __m256) -> __m256 {
        // SAFETY: the caller vouches for AVX2.
        unsafe { _mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(v) }
    }

    #[inline(always)]
    unsafe fn scale(v: __m256, n: __m256) -> __m256 {
        // SAFETY: the caller vouches for AVX2. Exponent bits of n + 127; 255 is infinity, 0 is zero.
        unsafe {
            let exponent =
                _mm256_slli_epi32::<23>(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)));
            _mm256_mul_ps(v, _mm256_castsi256_ps(exponent))
        }
    }

    #[inline(always)]
    unsafe fn select_less(a: __m256, b: __m256, yes: __m256, no: __m256) -> __m256 {
        // SAFETY: the caller vouches for AVX2.
        unsafe { _mm256_blendv_ps(no, yes, _mm256_cmp_ps::<_CMP_LT_OQ>(a, b)) }
    }

    #[inline(always)]
    unsafe fn zip(a: __m256, b: __m256) -> [__m256; 2] {
        // SAFETY: the caller vouches for AVX2. Unpacking works within 128-bit halves, which are then put in order.
        unsafe {
            let (low, high) = (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
            [_mm256_permute2f128_ps::<0x20>(low, high), _mm256_permute2f128_ps::<0x31>(low, high)]
        }
    }

    #[inline(always)]
    unsafe fn any_nan(v: __m256) -> bool {
        // SAFETY: the caller vouches for AVX2.
        unsafe { _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_UNORD_Q>(v, v)) != 0 }
    }

    accumulate_panel!(avx2::[accumulate_narrow_f32, accumulate_f32], f32, __m256);
}

/// 4 lanes of f64.
#[derive(Clone, Copy)]
pub(crate) struct Avx2F64;

impl Simd for Avx2F64 {
    type Scalar = f64;
    type Vector = __m256d;
    type Mask = __m256i;

    const LANES: usize = 4;
    const FUSED: bool = true;
    const STREAMS: bool = true;

    #[inline(always)]
    unsafe fn splat(value: f64) -> __m256d {
        // SAFETY: the caller vouches for AVX2.
        unsafe { _mm256_set1_pd(value) }
    }

    #[inline(always)]
    unsafe fn load(from: *const f64) -> __m256d {
        // SAFETY: the caller vouches for AVX2 and 4 readable elements.
        unsafe { _mm256_loadu_pd(from) }
    }

    #[inline(always)]
    unsafe fn store(to: *mut f64, value: __m256d) {
        // SAFETY: the caller vouches for AVX2 and 4 writable elements.
        unsafe { _mm256_storeu_pd(to, value) }
    }

    #[inline(always)]
    unsafe fn stream(to: *mut f64, value: __m256d) {
        // SAFETY: the caller vouches for AVX2 and 4 writable elements, aligned to the vector.
        unsafe { _mm256_stream_pd(to, value) }
    }

    #[inline(always)]
    unsafe fn mask(from: usize, to: usize) -> __m256i {
        let lane = |index: i64| -(i64::from(from as i64 <= index && index < to as i64));
        // SAFETY: the caller vouches for AVX2.
        unsafe { _mm256_setr_epi64x(lane(0), lane(1), lane(2), lane(3)) }
    }

    #[inline(always)]
    unsafe fn load_masked(from: *const f64, mask: __m256i) -> __m256d {
        // SAFETY: the caller vouches for AVX2; lanes outside the mask are not accessed.
        unsafe { _mm256_maskload_pd(from, mask) }
    }

    #[inline(always)]
    unsafe fn store_masked(to: *mut f64, value: __m256d, mask: __m256i) {
        // SAFETY: the caller vouches for AVX2; lanes outside the mask are not accessed.
        unsafe { _mm256_maskstore_pd(to, mask, value) }
    }

    #[inline(always)]
    unsafe fn multiply_add(a: __m256d, b: __m256d, c: __m256d) -> __m256d {
        // SAFETY: the caller vouches for FMA.
        unsafe { _mm256_fmadd_pd(a, b, c) }
    }

    #[inline(always)]
    unsafe fn add(a: __m256d, b: __m256d) -> __m256d {
        // SAFETY: the caller vouches for AVX2.
        unsafe { _mm256_add_pd(a, b) }
    }

    #[inline(always)]
    unsafe fn subtract(a: __m256d, b: __m256d) -> __m256d {
        // SAFETY: the caller vouches for AVX2.
        unsafe { _mm256_sub_pd(a, b) }
    }

    #[inline(always)]
    unsafe fn multiply(a: __m256d, b: __m256d) -> __m256d {
        // SAFETY: the caller vouches for AVX2.
        unsafe { _mm256_mul_pd(a, b) }
    }

    #[inline(always)]
    unsafe fn divide(a: __m256d, b: __m256d) -> __m256d {
        // SAFETY: the caller vouches for AVX2.
        unsafe { _mm256_div_pd(a, b) }
    }

    #[inline(always)]
    unsafe fn at_least(v: __m256d, bound: __m256d) -> __m256d {
        // SAFETY: the caller vouches for AVX2. The instruction returns its second operand for NaN.
        unsafe { _mm256_max_pd(bound, v) }
    }

    #[inline(always)]
    unsafe fn at_most(v: __m256d, bound: __m256d) -> __m256d {
        // SAFETY: the caller vouches for AVX2. The instruction returns its second operand for NaN.
        unsafe { _mm256_min_pd(bound, v) }
    }

    #[inline(always)]
    unsafe fn single(v: __m256d) -> __m256d {
        // SAFETY: the caller vouches for AVX2.
        unsafe { _mm256_cvtps_pd(_mm256_cvtpd_ps(v)) }
    }

    #[inline(always)]
    unsafe fn round(v: __m256d) -> __m256d {
        // SAFETY: the caller vouches for AVX2.
        unsafe { _mm256_round_pd::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(v) }
    }

    #[inline(always)]
    unsafe fn scale(v: __m256d, n: __m256d) -> __m256d {
        // SAFETY: the caller vouches for AVX2. Exponent bits of n + 1023; 2047 is infinity, 0 is zero.
        unsafe {
            let wide = _mm256_cvtepi32_epi64(_mm256_cvtpd_epi32(n));
            let exponent = _mm256_slli_epi64::<52>(_mm256_add_epi64(wide, _mm256_set1_epi64x(1023)));
            _mm256_mul_pd(v, _mm256_castsi256_pd(exponent))
        }
    }

    #[inline(always)]
    unsafe fn select_less(a: __m256d, b: __m256d, yes: __m256d, no: __m256d) -> __m256d {
        // SAFETY: the caller vouches for AVX2.
        unsafe { _mm256_blendv_pd(no, yes, _mm256_cmp_pd::<_CMP_LT_OQ>(a, b)) }
    }

    #[inline(always)]
    unsafe fn zip(a: __m256d, b: __m256d) -> [__m256d; 2] {
        // SAFETY: the caller vouches for AVX2. Unpacking works within 128-bit halves, which are then put in order.
        unsafe {
            let (low, high) = (_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b));
            [_mm256_permute2f128_pd::<0x20>(low, high), _mm256_permute2f128_pd::<0x31>(low, high)]
        }
    }

    #[inline(always)]
    unsafe fn any_nan(v: __m256d) -> bool {
        // SAFETY: the caller vouches for AVX2.
        unsafe { _mm256_movemask_pd(_mm256_cmp_pd::<_CMP_UNORD_Q>(v, v)) != 0 }
    }

    accumulate_panel!(avx2::[accumulate_narrow_f64, accumulate_f64], f64, __m256d);
}

convert_itself! {
    {} f32, Avx2F32;
    {} f64, Avx2F64;
}
