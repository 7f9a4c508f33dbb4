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

/// How rows become columns in memory.
pub(super) trait Turn: Narrow {
    /// Rows that are turned at once: those that fill a line.
    const ROWS: usize = LINE / size_of::<Self::Element>();

    /// A quarter of these, whose columns fill 128 bits.
    const QUARTER: usize = Self::ROWS / 4;

    /// Of a quarter of the rows, from one of them on: each lane of each vector holds as many of them as 32 bits do, of its column.
    ///
    /// # Safety
    ///
    /// As [`store_turned`](Self::store_turned), of which it is a part; if `WHOLE`, all the rows and 16 columns must be there.
    unsafe fn quarter<const WHOLE: bool>(
        &self,
        turned: &Turned<'_, Self::Element>,
        first: usize,
        steps: &mut impl Steps,
    ) -> [__m512; 4];

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
            } else if 2 * rows > Self::ROWS {
                let mask = below(rows * size_of::<Self::Element>());
                let columns = self.turned::<false>(turned, steps);
                for (column, values) in columns.into_iter().enumerate().take(turned.columns) {
                    let to = turned.column(column).0.cast();
                    _mm512_mask_storeu_epi8(to, mask, _mm512_castps_si512(values));
                }
            } else {
                self.store_quarters(turned, steps);
            }
        }
    }

    /// The columns of up to [`ROWS`](Self::ROWS) rows, each as it is stored.
    ///
    /// # Safety
    ///
    /// As [`store_turned`](Self::store_turned), of which it is a part; if `WHOLE`, there must be as many rows and 16 columns.
    #[inline(always)]
    unsafe fn turned<const WHOLE: bool>(
        &self,
        turned: &Turned<'_, Self::Element>,
        steps: &mut impl Steps,
    ) -> [__m512; 16] {
        // SAFETY: handed on from the caller.
        unsafe {
            let [a, b, c, d] = self.quarter::<WHOLE>(turned, 0, steps);
            let [e, f, g, h] = self.quarter::<WHOLE>(turned, Self::QUARTER, steps);
            let [i, j, k, l] = self.quarter::<WHOLE>(turned, 2 * Self::QUARTER, steps);
            let [m, n, o, p] = self.quarter::<WHOLE>(turned, 3 * Self::QUARTER, steps);
            transpose::turned::<Avx512F32>([a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p])
        }
    }

    /// Up to half as many rows, by quarters: what is turned at once would be empty for the most part.
    ///
    /// # Safety
    ///
    /// As [`store_turned`](Self::store_turned), of which it is a part.
    #[inline(always)]
    unsafe fn store_quarters(&self, turned: &Turned<'_, Self::Element>, steps: &mut impl Steps) {
        let rows = turned.distances.len();
        let mask = below(rows * size_of::<Self::Element>());
        // SAFETY: handed on from the caller; masks leave out rows that are not there.
        unsafe {
            let first = self.columns_of_quarter(turned, 0, steps);
            let of_first = first.as_ptr().cast::<__m128i>();
            if rows <= Self::QUARTER {
                for column in 0..turned.columns {
                    let values = _mm_load_si128(of_first.add(place_in_quarter(column)));
                    _mm_mask_storeu_epi8(turned.column(column).0.cast(), mask as __mmask16, values);
                }
                return;
            }
            let second = self.columns_of_quarter(turned, Self::QUARTER, steps);
            let of_second = second.as_ptr().cast::<__m128i>();
            for column in 0..turned.columns {
                let place = place_in_quarter(column);
                let values = _mm256_set_m128i(
                    _mm_load_si128(of_second.add(place)),
                    _mm_load_si128(of_first.add(place)),
                );
                _mm256_mask_storeu_epi8(turned.column(column).0.cast(), mask as __mmask32, values);
            }
        }
    }

    /// The columns of a [quarter](Self::quarter) of the rows, of which some may not be there, 128 bits each where
    /// [`place_in_quarter`] says.
    ///
    /// # Safety
    ///
    /// As [`quarter`](Self::quarter).
    #[inline(always)]
    unsafe fn columns_of_quarter(
        &self,
        turned: &Turned<'_, Self::Element>,
        first: usize,
        steps: &mut impl Steps,
    ) -> [__m512d; 4] {
        let whole = turned.distances.len() >= first + Self::QUARTER && turned.columns == Avx512F32::LANES;
        // SAFETY: handed on from the caller.
        unsafe {
            let [a, b, c, d] = if whole {
                self.quarter::<true>(turned, first, steps)
            } else {
                self.quarter::<false>(turned, first, steps)
            };
            let (ab, cd) = (_mm512_unpacklo_ps(a, b), _mm512_unpacklo_ps(c, d));
            let (low_ab, low_cd) = (_mm512_castps_pd(ab), _mm512_castps_pd(cd));
            let (ab, cd) = (_mm512_unpackhi_ps(a, b), _mm512_unpackhi_ps(c, d));
            let (high_ab, high_cd) = (_mm512_castps_pd(ab), _mm512_castps_pd(cd));
            [
                _mm512_unpacklo_pd(low_ab, low_cd),
                _mm512_unpackhi_pd(low_ab, low_cd),
                _mm512_unpacklo_pd(high_ab, high_cd),
                _mm512_unpackhi_pd(high_ab, high_cd),
            ]
        }
    }
}

/// Which 128 bits of a quarter hold a column: of every four columns the first come first, then the second of every four, and so on.
#[inline(always)]
fn place_in_quarter(column: usize) -> usize {
    column % 4 * 4 + column / 4
}

impl Turn for Nearest<f32> {
    #[inline(always)]
    unsafe fn quarter<const WHOLE: bool>(
        &self,
        turned: &Turned<'_, f32>,
        first: usize,
        steps: &mut impl Steps,
    ) -> [__m512; 4] {
        // SAFETY: handed on from the caller.
        unsafe {
            let [a, b] = steps.finished(turned.two_rows::<WHOLE>(first));
            let [c, d] = steps.finished(turned.two_rows::<WHOLE>(first + 2));
            [a, b, c, d]
        }
    }
}

/// Two rows are rounded and interleaved first, so that a single transpose turns 32 rows.
macro_rules! turn_halves {
    ($type:ty) => {
        impl Nearest<$type> {
            /// Two rows as one, their elements in turns.
            ///
            /// # Safety
            ///
            /// As [`Turn::quarter`], of which it is a part.
            #[inline(always)]
            unsafe fn pair_of_rows<const WHOLE: bool>(
                turned: &Turned<'_, $type>,
                first: usize,
                steps: &mut impl Steps,
            ) -> __m512 {
                // SAFETY: handed on from the caller.
                unsafe {
                    let two = steps.finished(turned.two_rows::<WHOLE>(first));
                    let in_turns = _mm512_loadu_si512(IN_TURNS.as_ptr().cast());
                    _mm512_castsi512_ps(_mm512_permutexvar_epi16(in_turns, Self::narrowed(two)))
                }
            }
        }

        impl Turn for Nearest<$type> {
            #[inline(always)]
            unsafe fn quarter<const WHOLE: bool>(
                &self,
                turned: &Turned<'_, $type>,
                first: usize,
                steps: &mut impl Steps,
            ) -> [__m512; 4] {
                // SAFETY: handed on from the caller.
                unsafe {
                    [
                        Self::pair_of_rows::<WHOLE>(turned, first, steps),
                        Self::pair_of_rows::<WHOLE>(turned, first + 2, steps),
                        Self::pair_of_rows::<WHOLE>(turned, first + 4, steps),
                        Self::pair_of_rows::<WHOLE>(turned, first + 6, steps),
                    ]
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
    unsafe fn quarter<const WHOLE: bool>(
        &self,
        turned: &Turned<'_, Q>,
        first: usize,
        steps: &mut impl Steps,
    ) -> [__m512; 4] {
        // SAFETY: handed on from the caller.
        unsafe {
            [
                self.four_rows::<WHOLE>(turned, first, steps),
                self.four_rows::<WHOLE>(turned, first + 4, steps),
                self.four_rows::<WHOLE>(turned, first + 8, steps),
                self.four_rows::<WHOLE>(turned, first + 12, steps),
            ]
        }
    }
}

impl<Q> Whole<Q>
where
    Self: Bytes,
{
    /// Four rows as one, their elements in turns.
    ///
    /// # Safety
    ///
    /// As [`Turn::quarter`], of which it is a part.
    #[inline(always)]
    unsafe fn four_rows<const WHOLE: bool>(
        &self,
        turned: &Turned<'_, Q>,
        first: usize,
        steps: &mut impl Steps,
    ) -> __m512 {
        // SAFETY: handed on from the caller.
        unsafe {
            let [a, b] = steps.finished(turned.two_rows::<WHOLE>(first));
            let [c, d] = steps.finished(turned.two_rows::<WHOLE>(first + 2));
            let in_turns = _mm512_broadcast_i32x4(_mm_loadu_si128(BYTES_IN_TURNS.as_ptr().cast()));
            let bytes = self.narrowed::<false>([a, b, c, d]);
            _mm512_castsi512_ps(_mm512_shuffle_epi8(bytes, in_turns))
        }
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
