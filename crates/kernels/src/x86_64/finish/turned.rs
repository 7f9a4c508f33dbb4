//! Rows of sums that become columns.

use std::arch::x86_64::*;

use half::{bf16, f16};

use super::super::avx512::{Avx512F32, below};
use super::narrow::Half;
use super::{AddBias, Steps, first_lanes, load};
use crate::quantize::UNBOUNDED;
use crate::simd::Simd;
use crate::storage::LINE;
use crate::transpose;

/// Up to 16 columns of rows at their distances from a source, which become runs `stride` apart in the target.
struct Turned<'a, Q> {
    source: *const f32,
    distances: &'a [isize],
    columns: usize,
    target: *mut Q,
    stride: isize,
    /// Whether whole lines go past the caches.
    stream: bool,
}

impl<Q> Turned<'_, Q> {
    /// Where a column goes, and whether it is a whole line to stream.
    #[inline(always)]
    fn column(&self, column: usize) -> (*mut Q, bool) {
        let to = self.target.wrapping_offset(column as isize * self.stride);
        let whole = self.distances.len() * size_of::<Q>() == LINE;
        (to, self.stream && whole && to.addr().is_multiple_of(LINE))
    }

    /// The columns of two rows; zeros of rows that are not there.
    ///
    /// # Safety
    ///
    /// The CPU must have AVX-512, and the rows must be readable.
    #[inline(always)]
    unsafe fn two_rows(&self, first: usize) -> [__m512; 2] {
        let [mask, _] = first_lanes(self.columns);
        // SAFETY: the caller vouches for the rows; the mask leaves out other columns.
        unsafe {
            let mut rows = [_mm512_setzero_ps(); 2];
            for (row, distance) in rows.iter_mut().zip(self.distances.iter().skip(first)) {
                *row = _mm512_maskz_loadu_ps(mask, self.source.wrapping_offset(*distance));
            }
            rows
        }
    }
}

/// How rows become columns in memory.
trait Turn: Sized {
    /// Rows that are turned at once.
    const ROWS: usize;

    /// Finishes and stores up to so many rows.
    ///
    /// # Safety
    ///
    /// The CPU must have AVX-512, for bf16 with BF16. All rows must be readable, and every element writable where it goes.
    unsafe fn store(turned: &Turned<'_, Self>, steps: &mut impl Steps);
}

impl Turn for f32 {
    const ROWS: usize = 16;

    #[inline(always)]
    unsafe fn store(turned: &Turned<'_, f32>, steps: &mut impl Steps) {
        let [mask, _] = first_lanes(turned.distances.len());
        // SAFETY: handed on from the caller; the mask leaves out rows that are not there.
        unsafe {
            let mut rows = [_mm512_setzero_ps(); 16];
            for pair in 0..8 {
                let two = steps.finished(turned.two_rows(2 * pair));
                rows[2 * pair] = two[0];
                rows[2 * pair + 1] = two[1];
            }
            let columns = transpose::turned::<Avx512F32>(rows);
            for (column, &values) in columns.iter().enumerate().take(turned.columns) {
                match turned.column(column) {
                    (to, true) => _mm512_stream_ps(to, values),
                    (to, false) => _mm512_mask_storeu_ps(to, mask, values),
                }
            }
        }
    }
}

/// Two rows are rounded and interleaved first, so that a single transpose turns 32 rows.
macro_rules! turn_halves {
    ($type:ty) => {
        impl Turn for $type {
            const ROWS: usize = 32;

            #[inline(always)]
            unsafe fn store(turned: &Turned<'_, $type>, steps: &mut impl Steps) {
                let mask = below(turned.distances.len());
                // SAFETY: handed on from the caller; the mask leaves out rows that are not there.
                unsafe {
                    let in_turns = _mm512_loadu_si512(IN_TURNS.as_ptr().cast());
                    let mut pairs = [_mm512_setzero_ps(); 16];
                    for (pair, to) in pairs.iter_mut().enumerate() {
                        let two = steps.finished(turned.two_rows(2 * pair));
                        let two = <$type as Half>::narrowed(two);
                        *to = _mm512_castsi512_ps(_mm512_permutexvar_epi16(in_turns, two));
                    }
                    let columns = transpose::turned::<Avx512F32>(pairs);
                    for (column, &values) in columns.iter().enumerate().take(turned.columns) {
                        match turned.column(column) {
                            (to, true) => _mm512_stream_ps(to.cast(), values),
                            (to, false) => {
                                _mm512_mask_storeu_epi16(to.cast(), mask, _mm512_castps_si512(values));
                            }
                        }
                    }
                }
            }
        }
    };
}

/// The first of 16 numbers, the first of another 16, the second of both, and so on.
const IN_TURNS: [u16; 32] = {
    let mut order = [0; 32];
    let mut lane = 0;
    while lane < 32 {
        order[lane] = (lane / 2 + lane % 2 * 16) as u16;
        lane += 1;
    }
    order
};

turn_halves!(bf16);
turn_halves!(f16);

/// [Adds the bias](AddBias) to rows at their distances from a source and stores them as columns `stride` apart, with `stream` whole
/// lines past the caches. Returns as [`finish`].
///
/// # Safety
///
/// The CPU must have AVX-512 with BF16. All rows must be readable for as many columns as there are biases, and every element
/// writable where it goes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
unsafe fn finish_turned<Q: Turn, const BOUNDED: bool>(
    (source, distances): (*const f32, &[isize]),
    bias: &[f32],
    bounds: (f32, f32),
    (target, stride): (*mut Q, isize),
    stream: bool,
) -> bool {
    let (least, greatest) = (_mm512_set1_ps(bounds.0), _mm512_set1_ps(bounds.1));
    let mut unusual = 0;
    for (number, distances) in distances.chunks(Q::ROWS).enumerate() {
        for (block, bias) in bias.chunks(Avx512F32::LANES).enumerate() {
            let first = block * Avx512F32::LANES;
            let turned = Turned {
                source: source.wrapping_add(first),
                distances,
                columns: bias.len(),
                target: target.wrapping_add(number * Q::ROWS).wrapping_offset(first as isize * stride),
                stride,
                stream,
            };
            // SAFETY: handed on from the caller.
            unsafe {
                let [bias, _] = load(bias.as_ptr(), bias.len());
                let mut steps = AddBias::<BOUNDED> { bias: [bias; 2], least, greatest, unusual };
                Q::store(&turned, &mut steps);
                unusual = steps.unusual;
            }
        }
    }
    unusual == 0
}

/// [`finish_turned`] to any memory of a type.
macro_rules! finish_turned_to {
    ($name:ident, $type:ty) => {
        /// # Safety
        ///
        /// As [`finish_turned`].
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
        pub(in super::super) unsafe fn $name(
            from: (*const f32, &[isize]),
            bias: &[f32],
            bounds: (f32, f32),
            (target, stride): (*mut u8, isize),
            stream: bool,
        ) -> bool {
            let to = (target.cast::<$type>(), stride);
            // SAFETY: handed on from the caller.
            unsafe {
                if bounds == UNBOUNDED {
                    finish_turned::<_, false>(from, bias, bounds, to, stream)
                } else {
                    finish_turned::<_, true>(from, bias, bounds, to, stream)
                }
            }
        }
    };
}

finish_turned_to!(turn_f32, f32);
finish_turned_to!(turn_bf16, bf16);
finish_turned_to!(turn_f16, f16);
