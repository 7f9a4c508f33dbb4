//! The types that finished sums are stored in.

use std::arch::x86_64::*;
use std::marker::PhantomData;

use half::{bf16, f16};

use super::super::avx512::{Avx512F32, below};
use super::super::bytes::in_order;
use super::first_lanes;
use crate::quantize::{ByteOutput, UNBOUNDED};
use crate::simd::Simd;
use crate::storage::Convert;

/// How two vectors of usual numbers become neighbours in memory.
pub(in super::super) trait Narrow {
    type Element;

    /// # Safety
    ///
    /// The CPU must have AVX-512, for bf16 with BF16; 32 elements must be writable, from the begin of a line on to `STREAM`.
    unsafe fn store<const STREAM: bool>(&self, to: *mut Self::Element, values: [__m512; 2]);

    /// # Safety
    ///
    /// The CPU must have AVX-512, for bf16 with BF16; as many elements must be writable.
    unsafe fn store_first(&self, to: *mut Self::Element, values: [__m512; 2], count: usize);

    /// Stores vectors apart from each other: all of their elements if `WHOLE`, otherwise the first so many.
    ///
    /// # Safety
    ///
    /// The CPU must have AVX-512, for bf16 with BF16; as many elements must be writable at both places.
    unsafe fn store_apart<const WHOLE: bool>(
        &self,
        to: [*mut Self::Element; 2],
        values: [__m512; 2],
        count: usize,
    );
}

/// Numbers become the nearest ones of a type.
pub(in super::super) struct Nearest<Q>(PhantomData<Q>);

impl<Q> Nearest<Q> {
    pub(super) const NEW: Self = Nearest(PhantomData);
}

impl Narrow for Nearest<f32> {
    type Element = f32;

    #[inline(always)]
    unsafe fn store<const STREAM: bool>(&self, to: *mut f32, values: [__m512; 2]) {
        for (half, value) in values.into_iter().enumerate() {
            // SAFETY: handed on from the caller.
            unsafe {
                let to = to.add(16 * half);
                if STREAM { _mm512_stream_ps(to, value) } else { _mm512_storeu_ps(to, value) }
            }
        }
    }

    #[inline(always)]
    unsafe fn store_first(&self, to: *mut f32, values: [__m512; 2], count: usize) {
        let masks = first_lanes(count);
        for (half, value) in values.into_iter().enumerate() {
            // SAFETY: the caller vouches for the elements; the mask leaves out others.
            unsafe { _mm512_mask_storeu_ps(to.wrapping_add(16 * half), masks[half], value) };
        }
    }

    #[inline(always)]
    unsafe fn store_apart<const WHOLE: bool>(&self, to: [*mut f32; 2], values: [__m512; 2], count: usize) {
        let [mask, _] = first_lanes(count);
        for (to, value) in to.into_iter().zip(values) {
            // SAFETY: the caller vouches for the elements; the mask leaves out others.
            unsafe {
                if WHOLE { _mm512_storeu_ps(to, value) } else { _mm512_mask_storeu_ps(to, mask, value) }
            }
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
        impl Half for Nearest<$type> {
            #[inline(always)]
            unsafe fn narrowed(values: [__m512; 2]) -> __m512i {
                // SAFETY: handed on from the caller.
                unsafe { $narrowed(values) }
            }
        }

        impl Narrow for Nearest<$type> {
            type Element = $type;

            #[inline(always)]
            unsafe fn store<const STREAM: bool>(&self, to: *mut $type, values: [__m512; 2]) {
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
            unsafe fn store_first(&self, to: *mut $type, values: [__m512; 2], count: usize) {
                // SAFETY: the caller vouches for the elements; the mask leaves out others.
                unsafe { _mm512_mask_storeu_epi16(to.cast(), below(count) as __mmask32, $narrowed(values)) };
            }

            #[inline(always)]
            unsafe fn store_apart<const WHOLE: bool>(
                &self,
                [first, second]: [*mut $type; 2],
                values: [__m512; 2],
                count: usize,
            ) {
                // SAFETY: the caller vouches for the elements; the mask leaves out others.
                unsafe {
                    let both = $narrowed(values);
                    let (low, high) = (_mm512_castsi512_si256(both), _mm512_extracti64x4_epi64::<1>(both));
                    if WHOLE {
                        _mm256_storeu_si256(first.cast(), low);
                        _mm256_storeu_si256(second.cast(), high);
                    } else {
                        let mask = below(count) as __mmask16;
                        _mm256_mask_storeu_epi16(first.cast(), mask, low);
                        _mm256_mask_storeu_epi16(second.cast(), mask, high);
                    }
                }
            }
        }
    };
}

narrow_to_halves!(bf16, to_bf16);
narrow_to_halves!(f16, to_f16);

/// Bytes, which do not fill a line.
macro_rules! narrow_to_bytes {
    ($type:ty) => {
        impl Narrow for Nearest<$type> {
            type Element = $type;

            #[inline(always)]
            unsafe fn store<const STREAM: bool>(&self, to: *mut $type, values: [__m512; 2]) {
                // SAFETY: handed on from the caller.
                unsafe { <Avx512F32 as Convert<$type>>::store_two_as(to, values) };
            }

            #[inline(always)]
            unsafe fn store_first(&self, to: *mut $type, values: [__m512; 2], count: usize) {
                let masks = first_lanes(count);
                for (half, value) in values.into_iter().enumerate() {
                    let to = to.wrapping_add(Avx512F32::LANES * half);
                    // SAFETY: the caller vouches for the elements; the mask leaves out others.
                    unsafe { <Avx512F32 as Convert<$type>>::store_masked_as(to, value, masks[half]) };
                }
            }

            #[inline(always)]
            unsafe fn store_apart<const WHOLE: bool>(
                &self,
                to: [*mut $type; 2],
                values: [__m512; 2],
                count: usize,
            ) {
                let [mask, _] = first_lanes(count);
                for (to, value) in to.into_iter().zip(values) {
                    // SAFETY: the caller vouches for the elements; the mask leaves out others.
                    unsafe { <Avx512F32 as Convert<$type>>::store_masked_as(to, value, mask) };
                }
            }
        }
    };
}

narrow_to_bytes!(i8);
narrow_to_bytes!(u8);

/// Integers of 32 bits, in the place of numbers, become bytes: a zero point is added, and what is out of bounds saturates.
pub(super) struct Whole<Q> {
    /// Words.
    zero_point: __m512i,
    /// Bytes.
    bounds: (__m512i, __m512i),
    /// Whether the zero point is zero and the bounds bound nothing.
    is_plain: bool,
    bytes: PhantomData<Q>,
}

macro_rules! narrow_whole_numbers {
    ($type:ty, $pack:ident, $max:ident, $min:ident) => {
        impl Whole<$type> {
            /// Those of quotients by a scale, given the bounds of what was divided.
            ///
            /// # Safety
            ///
            /// The CPU must have AVX-512.
            #[inline(always)]
            pub(super) unsafe fn new(bounds: (f32, f32), output: &ByteOutput) -> Self {
                let &ByteOutput { scale, zero_point, .. } = output;
                // Dividing, rounding and saturating do not change an order, so that bounds may come last. NaN bounds nothing.
                let bound = |real: f32, unbounded: f32| {
                    let real = if real.is_nan() { unbounded } else { real };
                    ((real / scale).round_ties_even() + zero_point) as $type
                };
                let everything = (<$type>::MIN, <$type>::MAX);
                let (least, greatest) = match bounds {
                    UNBOUNDED => everything,
                    (least, greatest) => (bound(least, UNBOUNDED.0), bound(greatest, UNBOUNDED.1)),
                };
                // SAFETY: handed on from the caller.
                unsafe {
                    Whole {
                        zero_point: _mm512_set1_epi16(zero_point as i16),
                        bounds: (_mm512_set1_epi8(least as i8), _mm512_set1_epi8(greatest as i8)),
                        is_plain: zero_point == 0.0 && (least, greatest) == everything,
                        bytes: PhantomData,
                    }
                }
            }
        }

        impl Bytes for Whole<$type> {
            #[inline(always)]
            unsafe fn narrowed<const PLAIN: bool>(&self, [a, b, c, d]: [__m512; 4]) -> __m512i {
                // SAFETY: handed on from the caller.
                unsafe {
                    let (low, high) = (words(a, b), words(c, d));
                    if PLAIN || self.is_plain {
                        return $pack(low, high);
                    }
                    let (low, high) =
                        (_mm512_adds_epi16(low, self.zero_point), _mm512_adds_epi16(high, self.zero_point));
                    $min($max($pack(low, high), self.bounds.0), self.bounds.1)
                }
            }
        }
    };
}

narrow_whole_numbers!(i8, _mm512_packs_epi16, _mm512_max_epi8, _mm512_min_epi8);
narrow_whole_numbers!(u8, _mm512_packus_epi16, _mm512_max_epu8, _mm512_min_epu8);

impl<Q> Whole<Q> {
    /// Whether the zero point is zero and the bounds bound nothing.
    pub(super) fn is_plain(&self) -> bool {
        self.is_plain
    }
}

/// Two vectors of integers as one of words.
///
/// # Safety
///
/// The CPU must have AVX-512.
#[inline(always)]
unsafe fn words(low: __m512, high: __m512) -> __m512i {
    // SAFETY: handed on from the caller.
    unsafe { _mm512_packs_epi32(_mm512_castps_si512(low), _mm512_castps_si512(high)) }
}

/// How four vectors become one.
pub(super) trait Bytes {
    /// Of every four columns of the vectors, those of the first, of the second and so on.
    ///
    /// # Safety
    ///
    /// The CPU must have AVX-512. Numbers must be [plain](Whole::is_plain) to be so.
    unsafe fn narrowed<const PLAIN: bool>(&self, values: [__m512; 4]) -> __m512i;
}

impl<Q> Narrow for Whole<Q>
where
    Self: Bytes,
{
    type Element = Q;

    #[inline(always)]
    unsafe fn store<const STREAM: bool>(&self, to: *mut Q, [low, high]: [__m512; 2]) {
        // SAFETY: handed on from the caller.
        unsafe {
            let bytes = in_order(self.narrowed::<false>([low, high, low, high]));
            _mm256_storeu_si256(to.cast(), _mm512_castsi512_si256(bytes));
        }
    }

    #[inline(always)]
    unsafe fn store_first(&self, to: *mut Q, [low, high]: [__m512; 2], count: usize) {
        // SAFETY: the caller vouches for the elements; the mask leaves out others.
        unsafe {
            let bytes = in_order(self.narrowed::<false>([low, high, low, high]));
            _mm256_mask_storeu_epi8(to.cast(), below(count) as __mmask32, _mm512_castsi512_si256(bytes));
        }
    }

    #[inline(always)]
    unsafe fn store_apart<const WHOLE: bool>(
        &self,
        [first, second]: [*mut Q; 2],
        [low, high]: [__m512; 2],
        count: usize,
    ) {
        // SAFETY: the caller vouches for the elements; the mask leaves out others.
        unsafe {
            let bytes = _mm512_castsi512_si256(in_order(self.narrowed::<false>([low, high, low, high])));
            let (low, high) = (_mm256_castsi256_si128(bytes), _mm256_extracti128_si256::<1>(bytes));
            if WHOLE {
                _mm_storeu_si128(first.cast(), low);
                _mm_storeu_si128(second.cast(), high);
            } else {
                let mask = below(count) as __mmask16;
                _mm_mask_storeu_epi8(first.cast(), mask, low);
                _mm_mask_storeu_epi8(second.cast(), mask, high);
            }
        }
    }
}

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
