//! The transforms of one axis.

use super::filtering::Pairs;
use crate::simd::{Scalar, Simd};

/// What makes points of inputs, and outputs of products.
pub(super) trait Transforms<const POINTS: usize, const OUTPUTS: usize> {
    /// Makes points of inputs.
    unsafe fn points<S: Simd>(inputs: [S::Vector; POINTS]) -> [S::Vector; POINTS];

    /// Makes outputs of products.
    unsafe fn outputs<S: Simd>(products: [S::Vector; POINTS]) -> [S::Vector; OUTPUTS];
}

pub(super) struct TwoOfTwo;

impl Transforms<3, 2> for TwoOfTwo {
    #[inline(always)]
    unsafe fn points<S: Simd>([a, b, c]: [S::Vector; 3]) -> [S::Vector; 3] {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { [S::subtract(a, b), b, S::subtract(c, b)] }
    }

    #[inline(always)]
    unsafe fn outputs<S: Simd>([a, b, c]: [S::Vector; 3]) -> [S::Vector; 2] {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { [S::add(a, b), S::add(b, c)] }
    }
}

/// The points of both ways to use four.
///
/// # Safety
///
/// The CPU must have `S`'s instruction set.
#[inline(always)]
unsafe fn four_points<S: Simd>([a, b, c, d]: [S::Vector; 4]) -> [S::Vector; 4] {
    // SAFETY: the caller vouches for the instruction set.
    unsafe { [S::subtract(a, c), S::add(b, c), S::subtract(c, b), S::subtract(d, b)] }
}

pub(super) struct ThreeOfTwo;

impl Transforms<4, 3> for ThreeOfTwo {
    #[inline(always)]
    unsafe fn points<S: Simd>(inputs: [S::Vector; 4]) -> [S::Vector; 4] {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { four_points::<S>(inputs) }
    }

    #[inline(always)]
    unsafe fn outputs<S: Simd>([a, b, c, d]: [S::Vector; 4]) -> [S::Vector; 3] {
        // SAFETY: the caller vouches for the instruction set.
        unsafe {
            let sum = S::add(b, c);
            [S::add(a, sum), S::subtract(b, c), S::add(sum, d)]
        }
    }
}

pub(super) struct TwoOfThree;

impl Transforms<4, 2> for TwoOfThree {
    #[inline(always)]
    unsafe fn points<S: Simd>(inputs: [S::Vector; 4]) -> [S::Vector; 4] {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { four_points::<S>(inputs) }
    }

    #[inline(always)]
    unsafe fn outputs<S: Simd>([a, b, c, d]: [S::Vector; 4]) -> [S::Vector; 2] {
        // SAFETY: the caller vouches for the instruction set.
        unsafe { [S::add(a, S::add(b, c)), S::add(S::subtract(b, c), d)] }
    }
}

impl Pairs {
    /// The points at all numbers but zero and infinity: coefficients of polynomials that are zero at all others of them.
    ///
    /// # Safety
    ///
    /// The CPU must have `S`'s instruction set.
    #[inline(always)]
    unsafe fn points<S: Simd>(&self, [a, b, c, d]: [S::Vector; 4]) -> [S::Vector; 4] {
        let Pairs { near, far } = *self;
        // SAFETY: the caller vouches for the instruction set.
        unsafe {
            let at = |number: f64, other: f64| {
                let even = plus_multiple::<S>(c, -other * other, a);
                let odd = plus_multiple::<S>(d, -other * other, b);
                [plus_multiple::<S>(odd, number, even), plus_multiple::<S>(odd, -number, even)]
            };
            let ([near, minus_near], [far, minus_far]) = (at(near, far), at(far, near));
            [near, minus_near, far, minus_far]
        }
    }

    /// The point at zero or at infinity: of the polynomial that is zero at all numbers between, with every second coefficient.
    ///
    /// # Safety
    ///
    /// The CPU must have `S`'s instruction set.
    #[inline(always)]
    unsafe fn outermost<S: Simd>(&self, [a, b, c]: [S::Vector; 3]) -> S::Vector {
        let (near, far) = (self.near * self.near, self.far * self.far);
        // SAFETY: the caller vouches for the instruction set.
        unsafe { plus_multiple::<S>(plus_multiple::<S>(c, -near - far, b), near * far, a) }
    }

    /// The sums of products times rising powers of their numbers.
    ///
    /// # Safety
    ///
    /// The CPU must have `S`'s instruction set.
    #[inline(always)]
    unsafe fn outputs<S: Simd>(&self, products: [S::Vector; 4]) -> [S::Vector; 4] {
        let [near, minus_near, far, minus_far] = products;
        // SAFETY: the caller vouches for the instruction set.
        unsafe {
            let (near_even, near_odd) = (S::add(near, minus_near), S::subtract(near, minus_near));
            let (far_even, far_odd) = (S::add(far, minus_far), S::subtract(far, minus_far));
            let sum = |power: i32, near: S::Vector, far: S::Vector| {
                let near = S::multiply(constant::<S>(self.near.powi(power)), near);
                plus_multiple::<S>(near, self.far.powi(power), far)
            };
            [
                S::add(near_even, far_even),
                sum(1, near_odd, far_odd),
                sum(2, near_even, far_even),
                sum(3, near_odd, far_odd),
            ]
        }
    }
}

pub(super) struct FourOfTwo;

impl Transforms<5, 4> for FourOfTwo {
    #[inline(always)]
    unsafe fn points<S: Simd>([a, b, c, d, e]: [S::Vector; 5]) -> [S::Vector; 5] {
        // SAFETY: the caller vouches for the instruction set.
        unsafe {
            let [near, minus_near, far, minus_far] = Pairs::OF_TWO.points::<S>([a, b, c, d]);
            [near, minus_near, far, minus_far, Pairs::OF_TWO.outermost::<S>([a, c, e])]
        }
    }

    #[inline(always)]
    unsafe fn outputs<S: Simd>([near, minus_near, far, minus_far, last]: [S::Vector; 5]) -> [S::Vector; 4] {
        // SAFETY: the caller vouches for the instruction set.
        unsafe {
            let [a, b, c, d] = Pairs::OF_TWO.outputs::<S>([near, minus_near, far, minus_far]);
            [a, b, c, S::add(d, last)]
        }
    }
}

pub(super) struct FourOfThree;

impl Transforms<6, 4> for FourOfThree {
    #[inline(always)]
    unsafe fn points<S: Simd>([a, b, c, d, e, f]: [S::Vector; 6]) -> [S::Vector; 6] {
        // SAFETY: the caller vouches for the instruction set.
        unsafe {
            let pairs = Pairs::OF_THREE;
            let [near, minus_near, far, minus_far] = pairs.points::<S>([b, c, d, e]);
            let (first, last) = (pairs.outermost::<S>([a, c, e]), pairs.outermost::<S>([b, d, f]));
            [first, near, minus_near, far, minus_far, last]
        }
    }

    #[inline(always)]
    unsafe fn outputs<S: Simd>(products: [S::Vector; 6]) -> [S::Vector; 4] {
        let [first, near, minus_near, far, minus_far, last] = products;
        // SAFETY: the caller vouches for the instruction set.
        unsafe {
            let [a, b, c, d] = Pairs::OF_THREE.outputs::<S>([near, minus_near, far, minus_far]);
            [S::add(a, first), b, c, S::add(d, last)]
        }
    }
}

/// `v` and a multiple of another vector.
///
/// # Safety
///
/// The CPU must have `S`'s instruction set.
#[inline(always)]
unsafe fn plus_multiple<S: Simd>(v: S::Vector, by: f64, other: S::Vector) -> S::Vector {
    // SAFETY: the caller vouches for the instruction set.
    unsafe { S::multiply_add(constant::<S>(by), other, v) }
}

/// # Safety
///
/// The CPU must have `S`'s instruction set.
#[inline(always)]
unsafe fn constant<S: Simd>(value: f64) -> S::Vector {
    // SAFETY: the caller vouches for the instruction set.
    unsafe { S::splat(S::Scalar::from_f64(value)) }
}
