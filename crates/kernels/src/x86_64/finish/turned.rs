//! Rows of sums that become columns.

use std::arch::x86_64::*;
use std::ops::Range;

use half::{bf16, f16};

use super::super::avx512::{Avx512F32, below};
use super::narrow::{Bytes, Half, Narrow, Nearest, Whole};
use super::{AddBias, Steps, first_lanes, load};
use crate::quantize::UNBOUNDED;
use crate::simd::Simd;
use crate::storage::LINE;
use crate::transpose;

/// Up to 16 columns of rows at their distances from a source, which become runs `stride` apart in the target.
pub(super) struct Turned<'a, Q> {
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

    /// The columns of two rows, if not `WHOLE` zeros of rows that are not there.
    ///
    /// # Safety
    ///
    /// The CPU must have AVX-512, and the rows must be readable. If `WHOLE`, both must be there, and all 16 columns.
    #[inline(always)]
    unsafe fn two_rows<const WHOLE: bool>(&self, first: usize) -> [__m512; 2] {
        // SAFETY: the caller vouches for the rows; the mask leaves out other columns.
        unsafe {
            if WHOLE {
                let one = self.source.wrapping_offset(*self.distances.get_unchecked(first));
                let other = self.source.wrapping_offset(*self.distances.get_unchecked(first + 1));
                return [_mm512_loadu_ps(one), _mm512_loadu_ps(other)];
            }
            let [mask, _] = first_lanes(self.columns);
            let mut rows = [_mm512_setzero_ps(); 2];
            for (row, distance) in rows.iter_mut().zip(self.distances.iter().skip(first)) {
                *row = _mm512_maskz_loadu_ps(mask, self.source.wrapping_offset(*distance));
            }
            rows
        }
    }
}

/// An array of 16 values, given each by its number, which the compiler knows: a loop that it does not unroll would put all of them
/// into memory.
macro_rules! sixteen {
    (|$number:ident| $value:expr) => {
        sixteen!(|$number| $value; 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
    };
    (|$number:ident| $value:expr; $($each:literal),*) => {
        [$({
            #[allow(non_upper_case_globals)]
            const $number: usize = $each;
            $value
        }),*]
    };
}

/// How rows become columns in memory.
pub(super) trait Turn: Narrow {
    /// Rows that are turned at once: those that fill a line.
    const ROWS: usize = LINE / size_of::<Self::Element>();

    /// The columns of up to as many rows, each as it is stored.
    ///
    /// # Safety
    ///
    /// As [`store_turned`](Self::store_turned), of which it is a part; if `WHOLE`, there must be as many rows and 16 columns.
    unsafe fn turned<const WHOLE: bool>(
        &self,
        turned: &Turned<'_, Self::Element>,
        steps: &mut impl Steps,
    ) -> [__m512; 16];

    /// Stores the first rows of a column.
    ///
    /// # Safety
    ///
    /// The CPU must have AVX-512, and as many elements must be writable.
    unsafe fn store_column(to: *mut Self::Element, column: __m512, rows: usize);

    /// Finishes and stores up to [`ROWS`](Self::ROWS) rows.
    ///
    /// # Safety
    ///
    /// The CPU must have AVX-512, for bf16 with BF16. All rows must be readable, and every element writable where it goes.
    #[inline(always)]
    unsafe fn store_turned(&self, turned: &Turned<'_, Self::Element>, steps: &mut impl Steps) {
        let rows = turned.distances.len();
        // SAFETY: handed on from the caller.
        unsafe {
            if rows == Self::ROWS && turned.columns == Avx512F32::LANES {
                for (column, values) in self.turned::<true>(turned, steps).into_iter().enumerate() {
                    match turned.column(column) {
                        (to, true) => _mm512_stream_ps(to.cast(), values),
                        (to, false) => _mm512_storeu_ps(to.cast(), values),
                    }
                }
            } else {
                let columns = self.turned::<false>(turned, steps);
                for (column, values) in columns.into_iter().enumerate().take(turned.columns) {
                    Self::store_column(turned.column(column).0, values, rows);
                }
            }
        }
    }
}

impl Turn for Nearest<f32> {
    #[inline(always)]
    unsafe fn turned<const WHOLE: bool>(
        &self,
        turned: &Turned<'_, f32>,
        steps: &mut impl Steps,
    ) -> [__m512; 16] {
        // SAFETY: handed on from the caller.
        unsafe {
            let mut rows = [_mm512_setzero_ps(); 16];
            for pair in 0..8 {
                let two = steps.finished(turned.two_rows::<WHOLE>(2 * pair));
                rows[2 * pair] = two[0];
                rows[2 * pair + 1] = two[1];
            }
            transpose::turned::<Avx512F32>(rows)
        }
    }

    #[inline(always)]
    unsafe fn store_column(to: *mut f32, column: __m512, rows: usize) {
        let [mask, _] = first_lanes(rows);
        // SAFETY: handed on from the caller; the mask leaves out rows that are not there.
        unsafe { _mm512_mask_storeu_ps(to, mask, column) };
    }
}

/// Two rows are rounded and interleaved first, so that a single transpose turns 32 rows.
macro_rules! turn_halves {
    ($type:ty) => {
        impl Turn for Nearest<$type> {
            #[inline(always)]
            unsafe fn turned<const WHOLE: bool>(
                &self,
                turned: &Turned<'_, $type>,
                steps: &mut impl Steps,
            ) -> [__m512; 16] {
                // SAFETY: handed on from the caller.
                unsafe {
                    let in_turns = _mm512_loadu_si512(IN_TURNS.as_ptr().cast());
                    let pairs = sixteen!(|pair| {
                        let two = steps.finished(turned.two_rows::<WHOLE>(2 * pair));
                        let two = <Self as Half>::narrowed(two);
                        _mm512_castsi512_ps(_mm512_permutexvar_epi16(in_turns, two))
                    });
                    transpose::turned::<Avx512F32>(pairs)
                }
            }

            #[inline(always)]
            unsafe fn store_column(to: *mut $type, column: __m512, rows: usize) {
                // SAFETY: handed on from the caller; the mask leaves out rows that are not there.
                unsafe {
                    let mask = below(rows) as __mmask32;
                    _mm512_mask_storeu_epi16(to.cast(), mask, _mm512_castps_si512(column));
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

/// Four rows become bytes side by side first, so that a single transpose turns 64 rows.
impl<Q> Turn for Whole<Q>
where
    Self: Bytes + Narrow<Element = Q>,
{
    #[inline(always)]
    unsafe fn turned<const WHOLE: bool>(
        &self,
        turned: &Turned<'_, Q>,
        steps: &mut impl Steps,
    ) -> [__m512; 16] {
        // SAFETY: handed on from the caller.
        unsafe {
            let in_turns = _mm512_broadcast_i32x4(_mm_loadu_si128(BYTES_IN_TURNS.as_ptr().cast()));
            let fours = sixteen!(|four| {
                let [a, b] = steps.finished(turned.two_rows::<WHOLE>(4 * four));
                let [c, d] = steps.finished(turned.two_rows::<WHOLE>(4 * four + 2));
                let bytes = self.narrowed::<false>([a, b, c, d]);
                _mm512_castsi512_ps(_mm512_shuffle_epi8(bytes, in_turns))
            });
            transpose::turned::<Avx512F32>(fours)
        }
    }

    #[inline(always)]
    unsafe fn store_column(to: *mut Q, column: __m512, rows: usize) {
        // SAFETY: handed on from the caller; the mask leaves out rows that are not there.
        unsafe { _mm512_mask_storeu_epi8(to.cast(), below(rows), _mm512_castps_si512(column)) };
    }
}

/// Of four rows of four bytes, the first of each, the second of each, and so on.
const BYTES_IN_TURNS: [u8; 16] = [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15];

/// All rows at their distances from a source, in blocks of up to as many as are turned at once and up to 16 columns, whose numbers come
/// with them. To `stream`, the first block ends where a line does, if one does so for all columns.
pub(super) fn blocks<'a, N: Turn>(
    (source, distances): (*const f32, &'a [isize]),
    columns: usize,
    (target, stride): (*mut N::Element, isize),
    stream: bool,
) -> impl Iterator<Item = (Range<usize>, Turned<'a, N::Element>)> {
    let lines = stream && stride % N::ROWS as isize == 0;
    let to_line = Some(target.align_offset(LINE)).filter(|&rows| lines && rows < N::ROWS);
    let (head, rest) = distances.split_at(to_line.unwrap_or(0).min(distances.len()));
    let heads = head.chunks(N::ROWS).zip([0]);
    let others = rest.chunks(N::ROWS).zip((head.len()..).step_by(N::ROWS));
    heads.chain(others).flat_map(move |(distances, begin)| {
        (0..columns).step_by(Avx512F32::LANES).map(move |first| {
            let columns = first..columns.min(first + Avx512F32::LANES);
            let turned = Turned {
                source: source.wrapping_add(first),
                distances,
                columns: columns.len(),
                target: target.wrapping_add(begin).wrapping_offset(first as isize * stride),
                stride,
                stream,
            };
            (columns, turned)
        })
    })
}

/// [Adds the bias](AddBias) to rows at their distances from a source and stores them as columns `stride` apart, with `stream` whole
/// lines past the caches. Returns as [`finish`].
///
/// # Safety
///
/// The CPU must have AVX-512 with BF16. All rows must be readable for as many columns as there are biases, and every element
/// writable where it goes.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
unsafe fn finish_turned<Q, const BOUNDED: bool>(
    from: (*const f32, &[isize]),
    bias: &[f32],
    bounds: (f32, f32),
    target: (*mut Q, isize),
    stream: bool,
) -> bool
where
    Nearest<Q>: Turn<Element = Q>,
{
    // SAFETY: handed on from the caller.
    unsafe {
        let mut steps = AddBias::<BOUNDED>::new([_mm512_setzero_ps(); 2], bounds);
        for (columns, turned) in blocks::<Nearest<Q>>(from, bias.len(), target, stream) {
            let [bias, _] = load(bias[columns.clone()].as_ptr(), columns.len());
            steps.bias = [bias; 2];
            Nearest::<Q>::NEW.store_turned(&turned, &mut steps);
        }
        steps.were_finite()
    }
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
