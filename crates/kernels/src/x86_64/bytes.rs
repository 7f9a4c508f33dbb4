//! Bytes in memory, 32-bit floats in registers.

use std::arch::x86_64::*;

use super::avx512::Avx512F32;
use crate::storage::Convert;
use crate::transpose::shuffled;

/// Integers up to a bound, of which those below the least of 32 bits are that one; zero for NaN.
///
/// # Safety
///
/// The CPU must have AVX-512.
#[inline(always)]
unsafe fn integers(value: __m512, greatest: f32) -> __m512i {
    // SAFETY: the caller vouches for AVX-512.
    unsafe {
        let number = _mm512_cmp_ps_mask::<_CMP_ORD_Q>(value, value);
        // As casts do: toward zero. Quantized values are integers already.
        _mm512_maskz_cvttps_epi32(number, _mm512_min_ps(value, _mm512_set1_ps(greatest)))
    }
}

/// Dwords 0, 4, 8 and 12, then 1, 5, 9, 13 and so on: what narrowing several vectors at once has put apart.
///
/// # Safety
///
/// The CPU must have AVX-512.
#[inline(always)]
pub(super) unsafe fn in_order(bytes: __m512i) -> __m512i {
    // SAFETY: the caller vouches for AVX-512.
    unsafe {
        let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
        _mm512_permutexvar_epi32(order, bytes)
    }
}

macro_rules! bytes {
    ($type:ty, $greatest:literal, $widen:ident, $narrowed:ident, $pack:ident) => {
        /// The nearest bytes: of every four columns of the vectors, those of the first, of the second and so on.
        ///
        /// # Safety
        ///
        /// The CPU must have AVX-512.
        #[inline(always)]
        unsafe fn $narrowed([a, b, c, d]: [__m512; 4]) -> __m512i {
            // SAFETY: the caller vouches for AVX-512.
            unsafe {
                $pack(
                    _mm512_packs_epi32(integers(a, $greatest), integers(b, $greatest)),
                    _mm512_packs_epi32(integers(c, $greatest), integers(d, $greatest)),
                )
            }
        }

        impl Convert<$type> for Avx512F32 {
            const STREAMS: bool = true;

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
                    let bytes = in_order($narrowed([value; 4]));
                    _mm_storeu_si128(to.cast(), _mm512_castsi512_si128(bytes));
                }
            }

            #[inline(always)]
            unsafe fn store_masked_as(to: *mut $type, value: __m512, mask: __mmask16) {
                // SAFETY: the caller vouches for AVX-512; lanes outside the mask are not accessed.
                unsafe {
                    let bytes = in_order($narrowed([value; 4]));
                    _mm_mask_storeu_epi8(to.cast(), mask, _mm512_castsi512_si128(bytes));
                }
            }

            #[inline(always)]
            unsafe fn store_two_as(to: *mut $type, [low, high]: [__m512; 2]) {
                // SAFETY: the caller vouches for AVX-512 and 32 writable elements.
                unsafe {
                    let bytes = in_order($narrowed([low, high, low, high]));
                    _mm256_storeu_si256(to.cast(), _mm512_castsi512_si256(bytes));
                }
            }

            #[inline(always)]
            unsafe fn store_line<const STREAM: bool>(to: *mut $type, from: *const f32) {
                // SAFETY: the caller vouches for AVX-512 and a line's elements, and that they begin a line to stream to.
                unsafe {
                    let [a, b, c, d] = [0, 16, 32, 48];
                    let line = in_order($narrowed([
                        _mm512_loadu_ps(from.add(a)),
                        _mm512_loadu_ps(from.add(b)),
                        _mm512_loadu_ps(from.add(c)),
                        _mm512_loadu_ps(from.add(d)),
                    ]));
                    if STREAM {
                        _mm512_stream_si512(to.cast(), line)
                    } else {
                        _mm512_storeu_si512(to.cast(), line)
                    }
                }
            }

            const TURNED_ROWS: usize = 32;

            #[inline(always)]
            unsafe fn store_turned<From>(
                source: *const From,
                distances: &[isize],
                to: *mut $type,
                stride: isize,
            ) where
                Self: Convert<From>,
            {
                // SAFETY: the caller vouches for AVX-512, 32 rows and 16 columns.
                unsafe {
                    let square = _mm512_broadcast_i32x4(_mm_setr_epi8(
                        0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15,
                    ));
                    // Of four rows, four bytes of every column.
                    let mut quads = [_mm512_setzero_ps(); 8];
                    for (quad, rows) in quads.iter_mut().zip(distances.chunks_exact(4)) {
                        let bytes = $narrowed([
                            Self::load_as(source.offset(rows[0])),
                            Self::load_as(source.offset(rows[1])),
                            Self::load_as(source.offset(rows[2])),
                            Self::load_as(source.offset(rows[3])),
                        ]);
                        *quad = _mm512_castsi512_ps(_mm512_shuffle_epi8(bytes, square));
                    }
                    // Each has become two columns.
                    let pairs = shuffled::<Avx512F32, 8>(quads, 8);
                    for (pair, bytes) in pairs.into_iter().enumerate() {
                        let bytes = _mm512_castps_si512(bytes);
                        let to = to.offset(2 * pair as isize * stride);
                        _mm256_storeu_si256(to.cast(), _mm512_castsi512_si256(bytes));
                        let odd = _mm512_extracti64x4_epi64::<1>(bytes);
                        _mm256_storeu_si256(to.offset(stride).cast(), odd);
                    }
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

bytes!(i8, 127.0, _mm512_cvtepi8_epi32, narrowed_signed, _mm512_packs_epi16);
bytes!(u8, 255.0, _mm512_cvtepu8_epi32, narrowed_unsigned, _mm512_packus_epi16);
