//! Sums of tiles on their way to memory: finished in registers, rounded once, stored.

use std::arch::x86_64::*;

use half::{bf16, f16};

use super::avx512::Avx512F32;
use crate::matrix::{FINISHED_COLUMNS, FinishedRows};
use crate::quantize::{Affine, Pass, Requantization, Rounding, UNBOUNDED, real, with_rounding};
use crate::simd::Simd;
use crate::storage::{Convert, LINE};

/// Quiet NaN, both infinities, subnormal, signalling NaN.
const UNUSUAL: i32 = 0x01 | 0x08 | 0x10 | 0x20 | 0x80;

/// How two vectors of usual numbers become neighbours in memory.
trait Narrow: Sized {
    /// # Safety
    ///
    /// The CPU must have AVX-512, for bf16 with BF16; 32 elements must be writable, from the begin of a line on to `STREAM`.
    unsafe fn store<const STREAM: bool>(to: *mut Self, values: [__m512; 2]);

    /// # Safety
    ///
    /// The CPU must have AVX-512, for bf16 with BF16; as many elements must be writable.
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

/// How two vectors of usual numbers become one: those of the first, then those of the second.
trait Half: Narrow {
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
                let mask = ((1u64 << count) - 1) as __mmask32;
                // SAFETY: the caller vouches for the elements; the mask leaves out others.
                unsafe { _mm512_mask_storeu_epi16(to.cast(), mask, $narrowed(values)) };
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

/// As many values as there are columns, in two vectors.
///
/// # Safety
///
/// The CPU must have AVX-512, and the values must be readable.
#[inline(always)]
unsafe fn load(from: *const f32, columns: usize) -> [__m512; 2] {
    let masks = first_lanes(columns);
    // SAFETY: the caller vouches for the values; the masks leave out others.
    unsafe {
        [
            _mm512_maskz_loadu_ps(masks[0], from),
            _mm512_maskz_loadu_ps(masks[1], from.wrapping_add(Avx512F32::LANES)),
        ]
    }
}

/// What becomes of sums in registers. Not a closure, which would be compiled by itself, without the instruction set.
trait Steps {
    /// # Safety
    ///
    /// The CPU must have AVX-512.
    unsafe fn finished(&mut self, sums: [__m512; 2]) -> [__m512; 2];
}

/// Finishes rows by some steps, and stores them at their distances from the target. With `STREAM`, whole lines go past the
/// caches.
///
/// # Safety
///
/// The CPU must have AVX-512, for bf16 with BF16. All rows must be inside the sums, and every element writable where it goes.
#[inline(always)]
unsafe fn store<Q: Narrow, const STREAM: bool>(
    from: &FinishedRows<'_>,
    target: *mut Q,
    steps: &mut impl Steps,
) {
    for (&row, &distance) in from.rows.iter().zip(from.distances) {
        let to = target.wrapping_offset(distance);
        // SAFETY: the caller vouches for as many elements as there are columns, here and there.
        unsafe {
            let sums = load(from.sums.as_ptr().wrapping_add(usize::from(row) * from.pitch), from.columns);
            let values = steps.finished(sums);
            match from.columns {
                FINISHED_COLUMNS if STREAM && to.addr().is_multiple_of(LINE) => Q::store::<true>(to, values),
                FINISHED_COLUMNS => Q::store::<false>(to, values),
                columns => Q::store_first(to, values, columns),
            }
        }
    }
}

/// Adds the bias, and if `BOUNDED` brings the result within the bounds.
struct AddBias<const BOUNDED: bool> {
    bias: [__m512; 2],
    least: __m512,
    greatest: __m512,
    /// Lanes where sums with their bias were infinite, NaN or subnormal.
    unusual: __mmask16,
}

impl<const BOUNDED: bool> Steps for AddBias<BOUNDED> {
    #[inline(always)]
    unsafe fn finished(&mut self, mut sums: [__m512; 2]) -> [__m512; 2] {
        for (value, bias) in sums.iter_mut().zip(self.bias) {
            // SAFETY: the caller vouches for AVX-512.
            unsafe {
                *value = _mm512_add_ps(*value, bias);
                self.unusual |= _mm512_fpclass_ps_mask::<UNUSUAL>(*value);
                if BOUNDED {
                    *value = Avx512F32::at_most(Avx512F32::at_least(*value, self.least), self.greatest);
                }
            }
        }
        sums
    }
}

/// [Adds the bias](AddBias) to rows and [stores](store) them. Returns whether all sums with their bias were usual: neither
/// infinite nor NaN nor subnormal. What is stored of others is of no use.
///
/// # Safety
///
/// As [`store`]; there must be as many biases as columns.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
unsafe fn finish<Q: Narrow, const STREAM: bool, const BOUNDED: bool>(
    from: &FinishedRows<'_>,
    bias: &[f32],
    bounds: (f32, f32),
    target: *mut Q,
) -> bool {
    let (least, greatest) = (_mm512_set1_ps(bounds.0), _mm512_set1_ps(bounds.1));
    // SAFETY: handed on from the caller.
    unsafe {
        let bias = load(bias.as_ptr(), from.columns);
        let mut steps = AddBias::<BOUNDED> { bias, least, greatest, unusual: 0 };
        store::<Q, STREAM>(from, target, &mut steps);
        steps.unusual == 0
    }
}

/// [`finish`] to any memory of a type.
macro_rules! finish_to {
    ($name:ident, $type:ty) => {
        /// # Safety
        ///
        /// As [`finish`].
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
        pub(super) unsafe fn $name(
            from: &FinishedRows<'_>,
            bias: &[f32],
            bounds: (f32, f32),
            target: *mut u8,
            stream: bool,
        ) -> bool {
            let target = target.cast::<$type>();
            // SAFETY: handed on from the caller.
            unsafe {
                match (stream, bounds != UNBOUNDED) {
                    (false, false) => finish::<_, false, false>(from, bias, bounds, target),
                    (false, true) => finish::<_, false, true>(from, bias, bounds, target),
                    (true, false) => finish::<_, true, false>(from, bias, bounds, target),
                    (true, true) => finish::<_, true, true>(from, bias, bounds, target),
                }
            }
        }
    };
}

finish_to!(finish_f32, f32);
finish_to!(finish_bf16, bf16);
finish_to!(finish_f16, f16);

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
            let columns = crate::transpose::turned::<Avx512F32>(rows);
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
                let mask = ((1u64 << turned.distances.len()) - 1) as __mmask32;
                // SAFETY: handed on from the caller; the mask leaves out rows that are not there.
                unsafe {
                    let in_turns = _mm512_loadu_si512(IN_TURNS.as_ptr().cast());
                    let mut pairs = [_mm512_setzero_ps(); 16];
                    for (pair, to) in pairs.iter_mut().enumerate() {
                        let two = steps.finished(turned.two_rows(2 * pair));
                        let two = <$type as Half>::narrowed(two);
                        *to = _mm512_castsi512_ps(_mm512_permutexvar_epi16(in_turns, two));
                    }
                    let columns = crate::transpose::turned::<Avx512F32>(pairs);
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
        pub(super) unsafe fn $name(
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

/// Requantizes integers less a value per column.
struct Requantize<'a, R> {
    less: [__m512i; 2],
    affine: [Affine<Avx512F32>; 2],
    bounds: (__m512, __m512),
    rounding: &'a R,
}

impl<R: Rounding<Avx512F32>> Steps for Requantize<'_, R> {
    #[inline(always)]
    unsafe fn finished(&mut self, mut sums: [__m512; 2]) -> [__m512; 2] {
        for (half, value) in sums.iter_mut().enumerate() {
            // SAFETY: the caller vouches for AVX-512.
            unsafe {
                let sum = _mm512_sub_epi32(_mm512_castps_si512(*value), self.less[half]);
                let real = real::<Avx512F32>(_mm512_cvtepi32_ps(sum), self.affine[half], self.bounds);
                *value = self.rounding.round(real);
            }
        }
        sums
    }
}

/// [Requantizes](Requantize) the integers that products of bytes left, and [stores](store) them.
struct StoreRequantized<'a, Q> {
    from: &'a FinishedRows<'a>,
    less: [__m512i; 2],
    affine: [Affine<Avx512F32>; 2],
    target: *mut Q,
    stream: bool,
}

impl<Q: Narrow> Pass<Avx512F32> for StoreRequantized<'_, Q> {
    #[inline(always)]
    unsafe fn run(self, bounds: (__m512, __m512), rounding: &impl Rounding<Avx512F32>) {
        let mut steps = Requantize { less: self.less, affine: self.affine, bounds, rounding };
        // SAFETY: handed on from the caller.
        unsafe {
            if self.stream {
                store::<Q, true>(self.from, self.target, &mut steps);
            } else {
                store::<Q, false>(self.from, self.target, &mut steps);
            }
        }
    }
}

/// [`StoreRequantized`] to any memory of a type.
macro_rules! requantize_to {
    ($name:ident, $type:ty) => {
        /// # Safety
        ///
        /// As [`store`]; there must be as many values to subtract, scales and biases as columns.
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
        pub(super) unsafe fn $name(
            from: &FinishedRows<'_>,
            less: &[i32],
            to: &Requantization<'_>,
            target: *mut u8,
            stream: bool,
        ) {
            // SAFETY: handed on from the caller.
            unsafe {
                let less = load(less.as_ptr().cast(), from.columns);
                let scales = load(to.scales.as_ptr(), from.columns);
                let bias = load(to.bias.as_ptr(), from.columns);
                let pass = StoreRequantized {
                    from,
                    less: [_mm512_castps_si512(less[0]), _mm512_castps_si512(less[1])],
                    affine: [(scales[0], bias[0]), (scales[1], bias[1])],
                    target: target.cast::<$type>(),
                    stream,
                };
                with_rounding(to, pass);
            }
        }
    };
}

requantize_to!(requantize_i8, i8);
requantize_to!(requantize_u8, u8);
requantize_to!(requantize_f32, f32);

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
