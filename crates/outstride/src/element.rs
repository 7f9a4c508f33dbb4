//! Element types and the wide type each is summed in.

use half::{bf16, f16};
use outstride_spec::{Activation, DType, IntegerOverflow};

use std::sync::Arc;

use outstride_spec::FilterCall;

use crate::engine::Engine;
use crate::epilogue::activate;
use crate::error::Error;
use crate::exact::ExactInteger;
use crate::integer::IntegerFilter;
use crate::op::Options;
use crate::prepared::{PreparedFilter, ReferenceFilter};
use crate::tensor::TensorView;

/// A type that tensors can hold.
///
/// Floats are summed in `f64` and rounded once; integers are summed exactly and then saturated or wrapped.
pub trait Element:
    Copy + Default + PartialEq + std::fmt::Debug + bytemuck::Zeroable + Send + Sync + Prepare + 'static
{
    /// The type's name.
    const DTYPE: DType;

    /// The type sums are formed in by the definition.
    type Wide: Wide;

    /// The type that bias and output may have instead of this one: `f32` for 16-bit floats, otherwise the type itself.
    type Widened: Element<Widened = Self::Widened>;

    /// The same value as bias.
    fn widened(self) -> Self::Widened;

    /// The same value in the wide type.
    fn widen(self) -> Self::Wide;

    /// The one rounding: to nearest, ties to even, for floats; by `overflow` for integers.
    fn narrow(wide: Self::Wide, overflow: IntegerOverflow) -> Self;
}

/// Lays filters of this element type out for the engine that computes it. Not for use outside this crate, which keeps
/// the set of element types closed.
pub trait Prepare: Sized {
    #[doc(hidden)]
    fn prepare(
        call: &FilterCall,
        filter: &TensorView<'_, Self>,
        bias: Option<&[<Self as Element>::Widened]>,
        options: &Options,
    ) -> Result<Arc<dyn PreparedFilter<Self>>, Error>
    where
        Self: Element;
}

macro_rules! prepare {
    ($engine:ident: $($type:ty)*) => {$(
        impl Prepare for $type {
            fn prepare(
                call: &FilterCall,
                filter: &TensorView<'_, Self>,
                bias: Option<&[<Self as Element>::Widened]>,
                options: &Options,
            ) -> Result<Arc<dyn PreparedFilter<Self>>, Error> {
                Ok(Arc::new($engine::new(call, filter, bias, options)?))
            }
        }
    )*};
}

prepare!(Engine: f16 bf16 f32 f64);
prepare!(IntegerFilter: i8 i16 i32 u8 u16 u32);
prepare!(ReferenceFilter: i64 u64);

/// A type wide enough to sum products of elements in.
pub trait Wide: Copy + Default + Send + Sync + 'static {
    /// `self + a·b`
    fn plus_product(self, a: Self, b: Self) -> Self;

    /// `self + other`
    fn plus(self, other: Self) -> Self;

    /// The activation of the value.
    fn activate(self, activation: &Activation) -> Self;
}

impl Wide for f64 {
    fn plus_product(self, a: Self, b: Self) -> Self {
        self + a * b
    }

    fn plus(self, other: Self) -> Self {
        self + other
    }

    fn activate(self, activation: &Activation) -> Self {
        activate(self, activation)
    }
}

impl Wide for ExactInteger {
    fn plus_product(self, a: Self, b: Self) -> Self {
        ExactInteger::plus_product(self, a, b)
    }

    fn plus(self, other: Self) -> Self {
        ExactInteger::plus(self, other)
    }

    /// Identity and Relu are exact. The others are evaluated in `f64` on the exact sum and rounded to the nearest
    /// integer, ties to even.
    fn activate(self, activation: &Activation) -> Self {
        match activation {
            Activation::Identity => self,
            Activation::Relu if self.is_negative() => ExactInteger::default(),
            Activation::Relu => self,
            _ => {
                let value = self.to_f64();
                let activated = activate(value, activation);
                // What the function leaves alone must not go through f64, which holds 53 bits only.
                if activated == value { self } else { ExactInteger::new(activated.round_ties_even() as i128) }
            }
        }
    }
}

macro_rules! float_element {
    ($($type:ty, $dtype:ident, $widened:ty, $widen:expr, $narrow:expr;)*) => {$(
        impl Element for $type {
            const DTYPE: DType = DType::$dtype;
            type Wide = f64;
            type Widened = $widened;

            fn widened(self) -> $widened {
                self.into()
            }

            fn widen(self) -> f64 {
                $widen(self)
            }

            fn narrow(wide: f64, _overflow: IntegerOverflow) -> Self {
                $narrow(wide)
            }
        }
    )*};
}

float_element! {
    f16, F16, f32, f64::from, |wide| f16::from_f32(round_to_odd(wide));
    bf16, Bf16, f32, f64::from, |wide| bf16::from_f32(round_to_odd(wide));
    f32, F32, f32, f64::from, |wide| wide as f32;
    f64, F64, f64, |value| value, |wide| wide;
}

macro_rules! integer_element {
    ($($type:ty, $dtype:ident;)*) => {$(
        impl Element for $type {
            const DTYPE: DType = DType::$dtype;
            type Wide = ExactInteger;
            type Widened = Self;

            fn widened(self) -> Self {
                self
            }

            fn widen(self) -> ExactInteger {
                ExactInteger::new(i128::from(self))
            }

            fn narrow(wide: ExactInteger, overflow: IntegerOverflow) -> Self {
                match overflow {
                    IntegerOverflow::Saturate => wide.saturate(<$type>::MIN.into(), <$type>::MAX.into()) as $type,
                    IntegerOverflow::Wrap => wide.low_bits() as $type,
                }
            }
        }
    )*};
}

integer_element! {
    i8, I8;
    i16, I16;
    i32, I32;
    i64, I64;
    u8, U8;
    u16, U16;
    u32, U32;
    u64, U64;
}

/// Rounds to `f32` so that a second rounding, to a type of at most 22 bits, ends where a single one would: an inexact
/// result is the neighbour with an odd last bit, which can be neither a tie nor a value of the narrower type.
fn round_to_odd(wide: f64) -> f32 {
    let nearest = wide as f32;
    if f64::from(nearest) == wide || wide.is_nan() {
        return nearest;
    }
    let toward_zero = nearest.to_bits() - u32::from(f64::from(nearest).abs() > wide.abs());
    f32::from_bits(toward_zero | 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f64_is_rounded_to_half_precision_once() {
        let ulp = f64::from(f16::EPSILON);
        let tie = 1.0 + ulp / 2.0;
        for (wide, expected) in [
            (tie, 1.0),
            (tie + ulp * 2f64.powi(-30), 1.0 + ulp),
            (tie - ulp * 2f64.powi(-30), 1.0),
            (-tie - ulp * 2f64.powi(-30), -1.0 - ulp),
            (65519.999999, 65504.0),
            (65520.0, f64::INFINITY),
            (1e300, f64::INFINITY),
            (-1e300, f64::NEG_INFINITY),
            (2f64.powi(-25), 0.0),
            (2f64.powi(-25) * (1.0 + 2f64.powi(-40)), 2f64.powi(-24)),
            (1e-300, 0.0),
        ] {
            let narrow = f16::narrow(wide, IntegerOverflow::Saturate);
            assert_eq!(f64::from(narrow), expected, "{wide:e}");
        }
        assert!(f16::narrow(f64::NAN, IntegerOverflow::Saturate).is_nan());
        assert!(bf16::narrow(f64::NAN, IntegerOverflow::Saturate).is_nan());
        let tie = 1.0 + 2f64.powi(-8);
        assert_eq!(f64::from(bf16::narrow(tie, IntegerOverflow::Saturate)), 1.0);
        assert_eq!(
            f64::from(bf16::narrow(tie + 2f64.powi(-40), IntegerOverflow::Saturate)),
            1.0 + 2f64.powi(-7)
        );
    }

    #[test]
    fn integers_saturate_or_wrap() {
        let sum = 300i64.widen();
        assert_eq!(i8::narrow(sum, IntegerOverflow::Saturate), 127);
        assert_eq!(i8::narrow(sum, IntegerOverflow::Wrap), 44);
        assert_eq!(u8::narrow((-1i8).widen(), IntegerOverflow::Saturate), 0);
        assert_eq!(u8::narrow((-1i8).widen(), IntegerOverflow::Wrap), 255);
        let huge = ExactInteger::default().plus_product(u64::MAX.widen(), u64::MAX.widen());
        assert_eq!(u64::narrow(huge, IntegerOverflow::Saturate), u64::MAX);
        assert_eq!(u64::narrow(huge, IntegerOverflow::Wrap), 1);
    }
}
