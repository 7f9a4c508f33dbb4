//! Sums of products of 64-bit integers, exactly.

/// A 192-bit two's-complement integer: room for 2⁶³ products of 64-bit integers, so no sum over a tensor overflows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExactInteger {
    high: i64,
    low: u128,
}

impl ExactInteger {
    /// The value itself.
    pub fn new(value: i128) -> Self {
        ExactInteger { high: if value < 0 { -1 } else { 0 }, low: value as u128 }
    }

    /// The sum of two.
    pub fn plus(self, other: Self) -> Self {
        let (low, carry) = self.low.overflowing_add(other.low);
        ExactInteger { high: self.high.wrapping_add(other.high).wrapping_add(i64::from(carry)), low }
    }

    /// `self + a·b` for factors of at most 64 bits, signed or unsigned.
    pub fn plus_product(self, a: Self, b: Self) -> Self {
        let magnitude = a.magnitude() * b.magnitude();
        if a.is_negative() != b.is_negative() {
            let (low, borrow) = self.low.overflowing_sub(magnitude);
            ExactInteger { high: self.high.wrapping_sub(i64::from(borrow)), low }
        } else {
            let (low, carry) = self.low.overflowing_add(magnitude);
            ExactInteger { high: self.high.wrapping_add(i64::from(carry)), low }
        }
    }

    /// Whether it is below zero.
    pub fn is_negative(self) -> bool {
        self.high < 0
    }

    /// The nearest value in `min..=max`.
    pub fn saturate(self, min: i128, max: i128) -> i128 {
        match (self.high, self.low as i128) {
            // Only here does the value fit 128 bits.
            (0, value) if value >= 0 => value.clamp(min, max),
            (-1, value) if value < 0 => value.clamp(min, max),
            (0.., _) => max,
            _ => min,
        }
    }

    /// The low 64 bits.
    pub fn low_bits(self) -> u64 {
        self.low as u64
    }

    /// The nearest `f64`, up to one more rounding.
    pub fn to_f64(self) -> f64 {
        let (high, low) = if self.is_negative() { self.negated() } else { (self.high as u64, self.low) };
        let magnitude = high as f64 * 2f64.powi(128) + low as f64;
        if self.is_negative() { -magnitude } else { magnitude }
    }

    fn negated(self) -> (u64, u128) {
        let high = !(self.high as u64);
        (if self.low == 0 { high.wrapping_add(1) } else { high }, self.low.wrapping_neg())
    }

    fn magnitude(self) -> u128 {
        if self.is_negative() { self.low.wrapping_neg() } else { self.low }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(value: i128) -> ExactInteger {
        ExactInteger::new(value)
    }

    #[test]
    fn extreme_products_neither_wrap_nor_lose_their_sign() {
        let most = exact(u64::MAX.into());
        let least = exact(i64::MIN.into());
        let mut sum = exact(0);
        for _ in 0..8 {
            sum = sum.plus_product(most, most).plus_product(least, least);
        }
        assert_eq!(sum.saturate(i64::MIN.into(), i64::MAX.into()), i64::MAX.into());
        for _ in 0..8 {
            sum = sum
                .plus_product(most, exact(-i128::from(u64::MAX) / 2 - 1))
                .plus_product(least, exact(i64::MAX.into()));
        }
        for _ in 0..8 {
            sum = sum.plus_product(least, most).plus_product(least, most);
        }
        assert!(sum.is_negative());
        assert_eq!(sum.saturate(i64::MIN.into(), i64::MAX.into()), i64::MIN.into());
    }

    #[test]
    fn small_values_are_ordinary_integers() {
        for a in -5i128..5 {
            for b in -5i128..5 {
                let sum = exact(7).plus_product(exact(a), exact(b)).plus(exact(a));
                let expected = 7 + a * b + a;
                assert_eq!(sum.saturate(-1000, 1000), expected);
                assert_eq!(sum.low_bits() as i64, expected as i64);
                assert_eq!(sum.to_f64(), expected as f64);
            }
        }
    }
}
