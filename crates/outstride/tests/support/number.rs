//! Element types in arithmetic of their own, independent of the library's: integers summed in `i128`, floats in `f64`,
//! each narrowed by the language's own casts.

use outstride::{Element, IntegerOverflow, bf16, f16};

/// An element type that test values can be made of, summed and compared.
pub(crate) trait Number: Element {
    /// Wide enough that test values sum without rounding.
    type Sum: Copy + Default + PartialEq + std::fmt::Debug;
    const UNSIGNED: bool;

    /// A value from any byte; for unsigned types its bits are read as unsigned.
    fn from_byte(byte: i8) -> Self;
    fn wide(self) -> Self::Sum;
    fn add_product(sum: Self::Sum, a: Self::Sum, b: Self::Sum) -> Self::Sum;
    fn add(a: Self::Sum, b: Self::Sum) -> Self::Sum;
    fn rounded(sum: Self::Sum, overflow: IntegerOverflow) -> Self;
    fn sum_as_real(sum: Self::Sum) -> f64;
    /// The nearest value of the type, ties to even.
    fn nearest(real: f64) -> Self;
    /// Equal, where every NaN equals every other.
    fn same(self, other: Self) -> bool;
    /// A value that sums of test values do not have, for memory that must be overwritten or left alone.
    fn poison() -> Self;
}

macro_rules! float_numbers {
    ($($type:ty: $from:expr, $to:expr;)*) => {$(
        impl Number for $type {
            type Sum = f64;
            const UNSIGNED: bool = false;
            fn from_byte(byte: i8) -> Self {
                $from(f64::from(byte))
            }
            fn wide(self) -> f64 {
                $to(self)
            }
            fn add_product(sum: f64, a: f64, b: f64) -> f64 {
                sum + a * b
            }
            fn add(a: f64, b: f64) -> f64 {
                a + b
            }
            fn rounded(sum: f64, _overflow: IntegerOverflow) -> Self {
                $from(sum)
            }
            fn sum_as_real(sum: f64) -> f64 {
                sum
            }
            fn nearest(real: f64) -> Self {
                $from(real)
            }
            fn same(self, other: Self) -> bool {
                self == other || (self != self && other != other)
            }
            fn poison() -> Self {
                $from(-0.123)
            }
        }
    )*};
}

float_numbers! {
    f16: f16::from_f64, f16::to_f64;
    bf16: bf16::from_f64, bf16::to_f64;
    f32: |value: f64| value as f32, f64::from;
    f64: |value: f64| value, |value: f64| value;
}

macro_rules! integer_numbers {
    ($($type:ty, $same_sign_byte:ty;)*) => {$(
        impl Number for $type {
            type Sum = i128;
            const UNSIGNED: bool = <$type>::MIN == 0;
            fn from_byte(byte: i8) -> Self {
                <$type>::from(byte as $same_sign_byte)
            }
            fn wide(self) -> i128 {
                i128::from(self)
            }
            fn add_product(sum: i128, a: i128, b: i128) -> i128 {
                sum + a * b
            }
            fn add(a: i128, b: i128) -> i128 {
                a + b
            }
            fn rounded(sum: i128, overflow: IntegerOverflow) -> Self {
                match overflow {
                    IntegerOverflow::Saturate => {
                        <$type>::try_from(sum).unwrap_or(if sum < 0 { <$type>::MIN } else { <$type>::MAX })
                    }
                    IntegerOverflow::Wrap => sum as $type,
                }
            }
            fn sum_as_real(sum: i128) -> f64 {
                sum as f64
            }
            fn nearest(real: f64) -> Self {
                real.round_ties_even() as $type
            }
            fn same(self, other: Self) -> bool {
                self == other
            }
            fn poison() -> Self {
                0x5A
            }
        }
    )*};
}

integer_numbers! {
    i8, i8;
    i16, i8;
    i32, i8;
    i64, i8;
    u8, u8;
    u16, u8;
    u32, u8;
    u64, u8;
}
