//! Integers that become what stands for real numbers.

use std::arch::x86_64::*;

use super::super::avx512::Avx512F32;
use super::lines::Line;
use super::narrow::{Narrow, Nearest, Whole};
use super::rows::{EachRow, finish_rows};
use super::turned::{Turn, Turned, blocks};
use super::{Idle, Now, Steps, Worker, load_for_columns};
use crate::matrix::{
    FINISHED_COLUMNS, FinishedRows, RequantizeKernel, RequantizeKernels, RequantizeTurnedKernel,
};
use crate::quantize::{
    Affine, ByReciprocal, ByteOutput, Pass, Requantization, Rounding, real, with_rounding,
};

/// The real numbers that integers stand for.
#[derive(Clone, Copy)]
struct Reals([Affine<Avx512F32>; 2]);

impl Reals {
    /// Of as many columns as there are scales.
    ///
    /// # Safety
    ///
    /// The CPU must have AVX-512.
    #[inline(always)]
    unsafe fn of_columns(scales: &[f32], bias: &[f32]) -> Self {
        let columns = scales.len().min(bias.len());
        // SAFETY: handed on from the caller; there are as many values.
        unsafe {
            let scales = load_for_columns(scales.as_ptr(), columns);
            let bias = load_for_columns(bias.as_ptr(), columns);
            Reals([(scales[0], bias[0]), (scales[1], bias[1])])
        }
    }

    /// Of all columns that there can be.
    ///
    /// # Safety
    ///
    /// The CPU must have AVX-512.
    #[inline(always)]
    unsafe fn of_all_columns(scales: &[f32; FINISHED_COLUMNS], bias: &[f32; FINISHED_COLUMNS]) -> Self {
        // SAFETY: handed on from the caller.
        unsafe { Reals::of_columns(scales, bias) }
    }
}

/// Requantizes integers.
struct Requantize<'a, R> {
    reals: Reals,
    bounds: (__m512, __m512),
    rounding: &'a R,
}

impl<R: Rounding<Avx512F32>> Steps for Requantize<'_, R> {
    #[inline(always)]
    unsafe fn finished(&mut self, mut sums: [__m512; 2]) -> [__m512; 2] {
        for (value, affine) in sums.iter_mut().zip(self.reals.0) {
            // SAFETY: the caller vouches for AVX-512.
            unsafe {
                let sums = _mm512_cvtepi32_ps(_mm512_castps_si512(*value));
                *value = self.rounding.round(real::<Avx512F32>(sums, affine, self.bounds));
            }
        }
        sums
    }
}

/// The same as far as the [whole numbers](Whole) that bytes are made of, without bounds, if no quotient is too large for that.
pub(super) struct Divide {
    reals: Reals,
    rounding: ByReciprocal<Avx512F32>,
}

impl Divide {
    /// By the scale of an output, if that is possible.
    ///
    /// # Safety
    ///
    /// The CPU must have AVX-512.
    #[inline(always)]
    unsafe fn new(reals: Reals, output: &ByteOutput) -> Option<Self> {
        if !output.has_small_quotients {
            return None;
        }
        // SAFETY: handed on from the caller.
        unsafe { Some(Divide { reals, rounding: ByReciprocal::with(output)? }) }
    }
}

impl Steps for Divide {
    #[inline(always)]
    unsafe fn finished(&mut self, mut sums: [__m512; 2]) -> [__m512; 2] {
        const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
        for (value, (scale, bias)) in sums.iter_mut().zip(self.reals.0) {
            // SAFETY: the caller vouches for AVX-512.
            unsafe {
                let sums = _mm512_cvtepi32_ps(_mm512_castps_si512(*value));
                let real = _mm512_add_ps(_mm512_mul_ps(sums, scale), bias);
                let quotient = self.rounding.quotient(real);
                *value = _mm512_castsi512_ps(_mm512_cvt_roundps_epi32::<NEAREST>(quotient));
            }
        }
        sums
    }
}

/// [Requantizes](Requantize) integers and [stores](Finished) them as numbers of a type.
struct StoreRequantized<'a, W, Q> {
    worker: W,
    from: &'a FinishedRows<'a>,
    reals: Reals,
    target: *mut Q,
    stream: bool,
}

impl<W: Worker, Q> Pass<Avx512F32> for StoreRequantized<'_, W, Q>
where
    Nearest<Q>: Narrow<Element = Q>,
{
    #[inline(always)]
    unsafe fn run(self, bounds: (__m512, __m512), rounding: &impl Rounding<Avx512F32>) {
        let StoreRequantized { worker, from, reals, target, stream } = self;
        let steps = Requantize { reals, bounds, rounding };
        // SAFETY: handed on from the caller.
        unsafe {
            let narrow = Nearest::<Q>::NEW;
            finish_rows(worker, from, (target, stream), narrow, steps);
        }
    }
}

/// What integers that products of bytes left become.
pub(in super::super) trait Requantized: Sized {
    /// Requantizes rows and [stores](Finished) them, when the worker does it. Returns whether it could: rows with others beside
    /// them must fill [lines](Line).
    ///
    /// # Safety
    ///
    /// The CPU must have AVX-512, and what the worker needs. As [`EachRow::new`]; there must be as many
    /// scales and biases as columns, with those beside.
    unsafe fn requantize(
        worker: impl Worker,
        from: &FinishedRows<'_>,
        to: &Requantization<'_>,
        target: *mut u8,
        stream: bool,
    ) -> bool;
}

/// By [`StoreRequantized`], bytes as [whole numbers](Whole) if possible.
macro_rules! requantized {
    ($type:ty $(, $whole:ident)?) => {
        impl Requantized for $type {
            #[inline(always)]
            unsafe fn requantize(
                worker: impl Worker,
                from: &FinishedRows<'_>,
                to: &Requantization<'_>,
                target: *mut u8,
                stream: bool,
            ) -> bool {
                let target = target.cast::<$type>();
                // SAFETY: handed on from the caller.
                unsafe {
                    $(
                        if let (Some(beside), Some(output)) = (from.beside, &to.output) {
                            if let Some(steps) = divide_lines(from, to, output) {
                                let narrow = $whole::<$type>::new(to.bounds, output);
                                let sums = [from.sums, beside];
                                if narrow.is_plain() && !stream {
                                    let line = Line::<_, true> { sums, steps, target, stream, narrow };
                                    worker.have_done(&mut EachRow::new(from, line));
                                } else {
                                    let line = Line::<_, false> { sums, steps, target, stream, narrow };
                                    worker.have_done(&mut EachRow::new(from, line));
                                }
                                return true;
                            }
                        }
                    )?
                    if from.beside.is_some() {
                        worker.have_done(&mut Idle);
                        return false;
                    }
                    let reals = Reals::of_columns(to.scales, to.bias);
                    $(
                        if let Some(output) = &to.output {
                            if let Some(steps) = Divide::new(reals, output) {
                                let narrow = $whole::<$type>::new(to.bounds, output);
                                finish_rows(worker, from, (target, false), narrow, steps);
                                return true;
                            }
                        }
                    )?
                    with_rounding(to, StoreRequantized { worker, from, reals, target, stream });
                    true
                }
            }
        }
    };
}

/// How rows and those beside them are divided, if that is possible and both fill lines.
///
/// # Safety
///
/// The CPU must have AVX-512, and there must be as many scales and biases as columns, with those beside.
#[inline(always)]
unsafe fn divide_lines(
    from: &FinishedRows<'_>,
    to: &Requantization<'_>,
    output: &ByteOutput,
) -> Option<[Divide; 2]> {
    if from.columns != FINISHED_COLUMNS {
        return None;
    }
    let (scales, other_scales) = to.scales.split_first_chunk()?;
    let (bias, other_bias) = to.bias.split_first_chunk()?;
    // SAFETY: handed on from the caller.
    unsafe {
        let own = Divide::new(Reals::of_all_columns(scales, bias), output)?;
        let other = Reals::of_all_columns(other_scales.first_chunk()?, other_bias.first_chunk()?);
        Some([own, Divide::new(other, output)?])
    }
}

requantized!(i8, Whole);
requantized!(u8, Whole);
requantized!(f32);

/// [Requantizes](Requantized) now.
///
/// # Safety
///
/// As [`Requantized::requantize`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
pub(in super::super) unsafe fn requantize_now<Q: Requantized>(
    from: &FinishedRows<'_>,
    to: &Requantization<'_>,
    target: *mut u8,
    stream: bool,
) -> bool {
    // SAFETY: handed on from the caller.
    unsafe { Q::requantize(Now, from, to, target, stream) }
}

/// Requantizes rows of integers at their distances from a source, and stores them as columns `stride` apart, with `stream`
/// whole lines past the caches. Returns whether it could.
macro_rules! requantize_turned_to {
    ($name:ident, $type:ty) => {
        /// # Safety
        ///
        /// The CPU must have AVX-512. All rows must be readable for as many columns as there are scales, and every element
        /// writable where it goes.
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
        unsafe fn $name(
            from: (*const f32, &[isize]),
            to: &Requantization<'_>,
            (target, stride): (*mut u8, isize),
            stream: bool,
        ) -> bool {
            let Some(output) = &to.output else { return false };
            // SAFETY: handed on from the caller.
            unsafe {
                let narrow = Whole::<$type>::new(to.bounds, output);
                let target = (target.cast::<$type>(), stride);
                for (columns, turned) in blocks::<Whole<$type>>(from, to.scales.len(), target, stream) {
                    let reals = Reals::of_columns(&to.scales[columns.clone()], &to.bias[columns]);
                    let Some(mut steps) = Divide::new(reals, output) else { return false };
                    narrow.store_turned(&turned, &mut steps);
                }
            }
            true
        }
    };
}

requantize_turned_to!(turn_i8, i8);
requantize_turned_to!(turn_u8, u8);

/// [`StoreRequantized`], as columns.
struct TurnReals<'a> {
    turned: &'a Turned<'a, f32>,
    reals: Reals,
}

impl Pass<Avx512F32> for TurnReals<'_> {
    #[inline(always)]
    unsafe fn run(self, bounds: (__m512, __m512), rounding: &impl Rounding<Avx512F32>) {
        let mut steps = Requantize { reals: self.reals, bounds, rounding };
        // SAFETY: handed on from the caller.
        unsafe { Nearest::<f32>::NEW.store_turned(self.turned, &mut steps) }
    }
}

/// As [`turn_i8`], to real numbers.
///
/// # Safety
///
/// As [`turn_i8`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
unsafe fn turn_reals(
    from: (*const f32, &[isize]),
    to: &Requantization<'_>,
    (target, stride): (*mut u8, isize),
    stream: bool,
) -> bool {
    let target = (target.cast(), stride);
    for (columns, turned) in blocks::<Nearest<f32>>(from, to.scales.len(), target, stream) {
        // SAFETY: handed on from the caller.
        unsafe {
            let reals = Reals::of_columns(&to.scales[columns.clone()], &to.bias[columns]);
            with_rounding(to, TurnReals { turned: &turned, reals });
        }
    }
    true
}

/// The kernels that requantize now.
pub(in super::super) const REQUANTIZE: RequantizeKernels<RequantizeKernel> =
    RequantizeKernels { i8: requantize_now::<i8>, u8: requantize_now::<u8>, f32: requantize_now::<f32> };

/// The same where rows become columns.
pub(in super::super) const TURN: RequantizeKernels<RequantizeTurnedKernel> =
    RequantizeKernels { i8: turn_i8, u8: turn_u8, f32: turn_reals };
