//! Sums of tiles on their way to memory: finished in registers, rounded once, stored.

use std::arch::x86_64::*;

use half::{bf16, f16};

use super::super::avx512::Avx512F32;
use crate::matrix::{FINISHED_COLUMNS, FinishedRows};
use crate::quantize::UNBOUNDED;
use crate::simd::Simd;
use crate::storage::LINE;

/// Quiet NaN, both infinities, subnormal, signalling NaN.
const UNUSUAL: i32 = 0x01 | 0x08 | 0x10 | 0x20 | 0x80;

/// How two vectors of usual numbers become neighbours in memory.
trait Narrow: Sized {
    /// # Safety
    ///
    /// The CPU must have AVX-512 with BF16; 32 elements must be writable, from the begin of a line on to `STREAM`.
    unsafe fn store<const STREAM: bool>(to: *mut Self, values: [__m512; 2]);

    /// # Safety
    ///
    /// The CPU must have AVX-512 with BF16; as many elements must be writable.
    unsafe fn store_first(to: *mut Self, values: [__m512; 2], count: usize);
}

/// The first `count` lanes of two vectors.
#[inline(always)]
fn first_lanes(count: usize) -> [__mmask16; 2] {
    let mask = ((1u64 << count) - 1) as u32;
    [mask as u16, (mask >> 16) as u16]
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

/// Types of 16 bits, given how two vectors become one.
macro_rules! narrow_to_halves {
    ($type:ty, $narrowed:ident) => {
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
                let mask = ((1u64 << count) - 1) as __mmask32;
                // SAFETY: the caller vouches for the elements; the mask leaves out others.
                unsafe { _mm512_mask_storeu_epi16(to.cast(), mask, $narrowed(values)) };
            }
        }
    };
}

narrow_to_halves!(bf16, to_bf16);
narrow_to_halves!(f16, to_f16);

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

/// Adds the bias to rows, if `BOUNDED` brings them within the bounds, and stores them at their distances from the target. With `STREAM`,
/// whole lines go past the caches. Returns whether all sums with their bias were usual: neither infinite nor NaN nor
/// subnormal. What is stored of others is of no use.
///
/// # Safety
///
/// The CPU must have AVX-512 with BF16. All rows must be inside the sums, and every element writable where it goes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
unsafe fn finish<Q: Narrow, const STREAM: bool, const BOUNDED: bool>(
    from: &FinishedRows<'_>,
    target: *mut Q,
) -> bool {
    let columns = from.bias.len();
    let masks = first_lanes(columns);
    let load = |from: *const f32| {
        // SAFETY: as many elements as the masks have can be read here.
        unsafe {
            [
                _mm512_maskz_loadu_ps(masks[0], from),
                _mm512_maskz_loadu_ps(masks[1], from.wrapping_add(Avx512F32::LANES)),
            ]
        }
    };
    let bias = load(from.bias.as_ptr());
    let (least, greatest) = (_mm512_set1_ps(from.bounds.0), _mm512_set1_ps(from.bounds.1));
    let mut unusual = 0;
    for (&row, &distance) in from.rows.iter().zip(from.distances) {
        let sums = load(from.sums.as_ptr().wrapping_add(usize::from(row) * from.pitch));
        let mut values = [_mm512_add_ps(sums[0], bias[0]), _mm512_add_ps(sums[1], bias[1])];
        for value in &mut values {
            unusual |= _mm512_fpclass_ps_mask::<UNUSUAL>(*value);
            if BOUNDED {
                // SAFETY: the CPU has AVX-512.
                *value = unsafe { Avx512F32::at_most(Avx512F32::at_least(*value, least), greatest) };
            }
        }
        let to = target.wrapping_offset(distance);
        // SAFETY: the caller vouches for as many elements as there are columns.
        unsafe {
            match columns {
                FINISHED_COLUMNS if STREAM && to.addr().is_multiple_of(LINE) => Q::store::<true>(to, values),
                FINISHED_COLUMNS => Q::store::<false>(to, values),
                _ => Q::store_first(to, values, columns),
            }
        }
    }
    unusual == 0
}

/// The least and the greatest of some distances, of which there must be one.
///
/// # Safety
///
/// The CPU must have AVX-512.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) unsafe fn range_of(distances: &[isize]) -> (isize, isize) {
    let (mut least, mut most) = (isize::MAX, isize::MIN);
    for &distance in distances {
        least = least.min(distance);
        most = most.max(distance);
    }
    (least, most)
}

/// [`finish`] to any memory of a type.
macro_rules! finish_to {
    ($name:ident, $type:ty) => {
        /// # Safety
        ///
        /// As [`finish`].
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
        pub(super) unsafe fn $name(from: &FinishedRows<'_>, target: *mut u8, stream: bool) -> bool {
            // SAFETY: handed on from the caller.
            unsafe {
                match (stream, from.bounds != UNBOUNDED) {
                    (false, false) => finish::<$type, false, false>(from, target.cast()),
                    (false, true) => finish::<$type, false, true>(from, target.cast()),
                    (true, false) => finish::<$type, true, false>(from, target.cast()),
                    (true, true) => finish::<$type, true, true>(from, target.cast()),
                }
            }
        }
    };
}

finish_to!(finish_f32, f32);
finish_to!(finish_bf16, bf16);
finish_to!(finish_f16, f16);
