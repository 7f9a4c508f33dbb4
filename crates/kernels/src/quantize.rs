//! From integer sums to the real numbers they stand for, and on to the integers that stand for these: one pass over the
//! values, all steps in registers. Every operation rounds to 32 bits, whatever the vectors hold.

use crate::simd::{MAX_LANES, Scalar, Simd};

/// What becomes of integer sums, in rows of columns.
#[derive(Clone, Copy, Debug)]
pub struct Requantization<'a> {
    /// Per column, the real number that a sum of one stands for; a single one is for all values.
    pub scales: &'a [f32],
    /// Per column, the real number that is added; as many as there are scales.
    pub bias: &'a [f32],
    /// Real numbers are brought up to the first, then down to the second.
    pub bounds: (f32, f32),
    /// The bytes that real numbers become again.
    pub output: Option<ByteOutput>,
}

/// Bytes that stand for real numbers, and how these are divided by their scale.
#[derive(Clone, Copy, Debug)]
pub struct ByteOutput {
    pub(crate) scale: f32,
    pub(crate) zero_point: f32,
    /// The scale's reciprocal as the sum of two, if [`ByReciprocal`] can use it.
    pub(crate) reciprocal: Option<[f32; 2]>,
    /// Whether all quotients are within integers of 32 bits, with no number on the way there infinite or NaN.
    pub(crate) has_small_quotients: bool,
}

/// The greatest scale of bytes whose products with integers of 32 bits are far from infinite.
const GREATEST_SCALE: f32 = 1e20;

impl ByteOutput {
    /// Of a scale and a zero point, for sums of 32 bits with such scales and as many biases.
    pub fn new((scale, zero_point): (f32, f32), scales: &[f32], bias: &[f32]) -> Self {
        const INTEGERS: f32 = (1u32 << 31) as f32;
        let limit = scale * INTEGERS / 2.0;
        let is_small = |(scale, bias): (&f32, &f32)| scale.abs() * INTEGERS + bias.abs() <= limit;
        ByteOutput {
            scale,
            zero_point,
            reciprocal: MODERATE.contains(&scale).then(|| reciprocal_of(scale)),
            has_small_quotients: scale <= GREATEST_SCALE && scales.iter().zip(bias).all(is_small),
        }
    }
}

/// Bounds that bound nothing.
pub const UNBOUNDED: (f32, f32) = (f32::NEG_INFINITY, f32::INFINITY);

/// Quotients beyond this are no byte, with any zero point.
const NO_BYTE: f32 = 1024.0;

/// Divisors whose quotients up to [`NO_BYTE`] [`ByReciprocal`] finds without any step becoming too large or too small. Below
/// quotients of 1/4, which round to zero, steps may.
const MODERATE: std::ops::Range<f32> = 1e-30..1e30;

/// How sums are read.
pub(crate) trait Sums<S: Simd> {
    /// # Safety
    ///
    /// The CPU must have `S`'s instruction set, and a vector must be readable.
    unsafe fn read(&self, from: *const S::Scalar) -> S::Vector;
}

/// Sums that are stored as what they are computed with.
struct AsTheyAre;

impl<S: Simd> Sums<S> for AsTheyAre {
    #[inline(always)]
    unsafe fn read(&self, from: *const S::Scalar) -> S::Vector {
        // SAFETY: handed on from the caller.
        unsafe { S::load(from) }
    }
}

/// How real numbers become what is stored.
pub(crate) trait Rounding<S: Simd> {
    /// # Safety
    ///
    /// The CPU must have `S`'s instruction set.
    unsafe fn round(&self, real: S::Vector) -> S::Vector;
}

/// Not at all.
struct Real;

impl<S: Simd> Rounding<S> for Real {
    #[inline(always)]
    unsafe fn round(&self, real: S::Vector) -> S::Vector {
        real
    }
}

/// By the definition: the nearest integer to the quotient, ties to even, plus the zero point.
struct ByDivision<S: Simd> {
    scale: S::Vector,
    zero_point: S::Vector,
}

impl<S: Simd> Rounding<S> for ByDivision<S> {
    #[inline(always)]
    unsafe fn round(&self, real: S::Vector) -> S::Vector {
        // SAFETY: handed on from the caller.
        unsafe { S::add(S::round(S::single(S::divide(real, self.scale))), self.zero_point) }
    }
}

/// The same at a fourth of the cycles, for 32-bit lanes: as a product with the reciprocal, given as the sum of two numbers. It may
/// differ from the quotient in the last place, but not where that decides about a byte: of all 2²³ significands that a scale can
/// have, none has such a product next to any of the ties (`ties_are_rounded_with_every_scale`). Powers of two change nothing about it.
pub(crate) struct ByReciprocal<S: Simd> {
    reciprocal: [S::Vector; 2],
    /// What is added to make an integer of a quotient, and what is taken away to leave that and the zero point.
    shift: [S::Vector; 2],
}

/// A number's reciprocal as the sum of two.
fn reciprocal_of(scale: f32) -> [f32; 2] {
    let nearest = 1.0 / scale;
    [nearest, (1.0 / f64::from(scale) - f64::from(nearest)) as f32]
}

impl<S: Simd> ByReciprocal<S> {
    /// If it is possible with such a scale.
    ///
    /// # Safety
    ///
    /// The CPU must have `S`'s instruction set.
    #[inline(always)]
    pub(crate) unsafe fn with(output: &ByteOutput) -> Option<Self> {
        // From here on to its double, the numbers of 32 bits are the integers.
        const INTEGERS: f32 = (1 << 23) as f32;
        if !S::FUSED || size_of::<S::Scalar>() != size_of::<f32>() {
            return None;
        }
        let [nearest, rest] = output.reciprocal?;
        let shift = 1.5 * INTEGERS;
        // SAFETY: handed on from the caller.
        unsafe {
            Some(ByReciprocal {
                reciprocal: [single::<S>(nearest), single::<S>(rest)],
                shift: [single::<S>(shift), single::<S>(output.zero_point - shift)],
            })
        }
    }

    /// The quotient, not yet rounded to an integer.
    ///
    /// # Safety
    ///
    /// The CPU must have `S`'s instruction set.
    #[inline(always)]
    pub(crate) unsafe fn quotient(&self, real: S::Vector) -> S::Vector {
        let [nearest, rest] = self.reciprocal;
        // SAFETY: handed on from the caller.
        unsafe { S::multiply_add(real, nearest, S::multiply(real, rest)) }
    }
}

impl<S: Simd> Rounding<S> for ByReciprocal<S> {
    #[inline(always)]
    unsafe fn round(&self, real: S::Vector) -> S::Vector {
        // SAFETY: handed on from the caller.
        unsafe { S::add(S::add(self.quotient(real), self.shift[0]), self.shift[1]) }
    }
}

/// Requantizes sums where they lie.
///
/// # Safety
///
/// The CPU must have `S`'s instruction set.
#[inline(always)]
pub(crate) unsafe fn requantize<S: Simd>(values: &mut [S::Scalar], to: &Requantization<'_>) {
    // SAFETY: handed on from the caller.
    unsafe { requantize_from::<S>(values, to, &AsTheyAre) }
}

/// Requantizes sums that are read in some way.
///
/// # Safety
///
/// The CPU must have `S`'s instruction set.
#[inline(always)]
pub(crate) unsafe fn requantize_from<S: Simd>(
    values: &mut [S::Scalar],
    to: &Requantization<'_>,
    sums: &impl Sums<S>,
) {
    // SAFETY: handed on from the caller.
    unsafe { with_rounding(to, InPlace { values, to, sums }) }
}

/// Something to do with all sums, once it is known what becomes of real numbers.
pub(crate) trait Pass<S: Simd> {
    /// Real numbers are first brought within the bounds, then rounded.
    ///
    /// # Safety
    ///
    /// The CPU must have `S`'s instruction set.
    unsafe fn run(self, bounds: (S::Vector, S::Vector), rounding: &impl Rounding<S>);
}

/// Passes over sums with the best rounding there is.
///
/// # Safety
///
/// The CPU must have `S`'s instruction set.
#[inline(always)]
pub(crate) unsafe fn with_rounding<S: Simd>(to: &Requantization<'_>, pass: impl Pass<S>) {
    // SAFETY: handed on from the caller.
    unsafe {
        let Some(output) = &to.output else {
            return pass.run((single::<S>(to.bounds.0), single::<S>(to.bounds.1)), &Real);
        };
        let bounds = bounds_of_bytes::<S>(to.bounds, output.scale);
        match ByReciprocal::<S>::with(output) {
            Some(rounding) => pass.run(bounds, &rounding),
            None => {
                let (scale, zero_point) = (single::<S>(output.scale), single::<S>(output.zero_point));
                pass.run(bounds, &ByDivision::<S> { scale, zero_point });
            }
        }
    }
}

/// Bounds of real numbers of which bytes with such a scale are made: what lies beyond saturates all the same.
///
/// # Safety
///
/// The CPU must have `S`'s instruction set.
#[inline(always)]
pub(crate) unsafe fn bounds_of_bytes<S: Simd>(
    (least, greatest): (f32, f32),
    scale: f32,
) -> (S::Vector, S::Vector) {
    let farthest = scale * NO_BYTE;
    // SAFETY: handed on from the caller.
    unsafe {
        (single::<S>(least.clamp(-farthest, farthest)), single::<S>(greatest.clamp(-farthest, farthest)))
    }
}

/// Replaces sums by what becomes of them.
struct InPlace<'a, S: Simd, R> {
    values: &'a mut [S::Scalar],
    to: &'a Requantization<'a>,
    sums: &'a R,
}

impl<S: Simd, R: Sums<S>> Pass<S> for InPlace<'_, S, R> {
    #[inline(always)]
    unsafe fn run(self, bounds: (S::Vector, S::Vector), rounding: &impl Rounding<S>) {
        let InPlace { values, to, sums } = self;
        // With one scale for all values, a row is whatever a vector holds; the last one may be shorter.
        let (width, rest) = match to.scales.len() {
            1 => (S::LANES, values.len() % S::LANES),
            several => (several, 0),
        };
        let (rows, rest) = values.split_at_mut(values.len() - rest);
        // SAFETY: the caller vouches for the instruction set. Every vector lies within a row, or in an array as long.
        unsafe {
            for column in (0..width).step_by(S::LANES) {
                let lanes = S::LANES.min(width - column);
                let affine = (columns::<S>(to.scales, column), columns::<S>(to.bias, column));
                let rows = rows.chunks_exact_mut(width).map(|row| &mut row[column..column + lanes]);
                if lanes == S::LANES {
                    for row in rows {
                        let sums = sums.read(row.as_ptr());
                        S::store(row.as_mut_ptr(), rounding.round(real::<S>(sums, affine, bounds)));
                    }
                } else {
                    for row in rows {
                        replace_some(row, sums, affine, bounds, rounding);
                    }
                }
            }
            if !rest.is_empty() {
                let affine = (columns::<S>(to.scales, 0), columns::<S>(to.bias, 0));
                replace_some(rest, sums, affine, bounds, rounding);
            }
        }
    }
}

/// Replaces fewer sums than a vector has lanes.
///
/// # Safety
///
/// The CPU must have `S`'s instruction set.
#[inline(always)]
unsafe fn replace_some<S: Simd>(
    row: &mut [S::Scalar],
    sums: &impl Sums<S>,
    affine: Affine<S>,
    bounds: (S::Vector, S::Vector),
    rounding: &impl Rounding<S>,
) {
    let mut padded = [S::Scalar::default(); MAX_LANES];
    padded[..row.len()].copy_from_slice(row);
    // SAFETY: the caller vouches for the instruction set; a vector has no more lanes than the array.
    unsafe {
        let sums = sums.read(padded.as_ptr());
        S::store(padded.as_mut_ptr(), rounding.round(real::<S>(sums, affine, bounds)));
    }
    row.copy_from_slice(&padded[..row.len()]);
}

/// The scales and biases of some columns.
pub(crate) type Affine<S> = (<S as Simd>::Vector, <S as Simd>::Vector);

/// `sum · scale + bias`, each operation rounded, within the bounds.
///
/// # Safety
///
/// The CPU must have `S`'s instruction set.
#[inline(always)]
pub(crate) unsafe fn real<S: Simd>(
    sum: S::Vector,
    (scale, bias): Affine<S>,
    (least, greatest): (S::Vector, S::Vector),
) -> S::Vector {
    // SAFETY: handed on from the caller.
    unsafe {
        let scaled = S::single(S::multiply(S::single(sum), scale));
        S::at_most(S::at_least(S::single(S::add(scaled, bias)), least), greatest)
    }
}

/// # Safety
///
/// The CPU must have `S`'s instruction set.
#[inline(always)]
unsafe fn single<S: Simd>(value: f32) -> S::Vector {
    // SAFETY: handed on from the caller.
    unsafe { S::splat(S::Scalar::from_f64(value.into())) }
}

/// The values of as many columns as there are lanes, if there are that many; a single value is that of all columns.
///
/// # Safety
///
/// The CPU must have `S`'s instruction set.
#[inline(always)]
unsafe fn columns<S: Simd>(values: &[f32], first: usize) -> S::Vector {
    let mut lanes = [S::Scalar::default(); MAX_LANES];
    // SAFETY: handed on from the caller; a vector has no more lanes than there are here.
    unsafe {
        if let &[value] = values {
            return single::<S>(value);
        }
        let values = &values[first..];
        // A loop of known length becomes a load.
        if values.len() >= S::LANES {
            for lane in 0..S::LANES {
                lanes[lane] = S::Scalar::from_f64(values[lane].into());
            }
        } else {
            for (lane, &value) in lanes.iter_mut().zip(values) {
                *lane = S::Scalar::from_f64(value.into());
            }
        }
        S::load(lanes.as_ptr())
    }
}
