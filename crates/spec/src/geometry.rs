//! The operator free of any dialect.
//!
//! Per spatial axis, with input size `in`, kernel size `k`, stride `s`, dilation `d`, output size `out` and a signed
//! crop `begin`, the operator is
//!
//! ```text
//! y[n, g·Mg + m, o] = bias[g·Mg + m]
//!                   + Σ  x[n, g·Cg + c, i] · w[g·Cg + c, m, t]    over c, i, t with  o = i·s + t·d − begin
//! ```
//!
//! An output reached by no pair `(i, t)` holds the bias alone.

use std::fmt;

use crate::error::SpecError;

/// Bound on each extent and element count: far beyond any memory, yet small enough that sums of a few of them, and
/// their sizes in bytes, stay inside `isize` and `i64`.
pub(crate) const MAX_EXTENT: usize = isize::MAX as usize / 64;

/// One spatial axis of a [`Geometry`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Axis {
    /// Input size; may be 0.
    pub input: usize,
    /// Kernel size, at least 1.
    pub kernel: usize,
    /// Distance between the outputs of neighbouring inputs, at least 1.
    pub stride: usize,
    /// Distance between the outputs of neighbouring kernel elements, at least 1.
    pub dilation: usize,
    /// Output size; may be 0.
    pub output: usize,
    /// How many leading elements of the full extent are cropped; negative values prepend positions that hold bias alone.
    pub pad_begin: i64,
}

impl Axis {
    /// `(k − 1)·d + 1`: how many outputs one input spans.
    pub fn effective_kernel(&self) -> i64 {
        (self.kernel as i64 - 1) * self.dilation as i64 + 1
    }

    /// `(in − 1)·s + effective_kernel`: the size before cropping. Not positive only where the input is empty.
    pub fn full(&self) -> i64 {
        (self.input as i64 - 1) * self.stride as i64 + self.effective_kernel()
    }

    /// What is cropped at the end: the full extent less the beginning's crop and the output. Negative where the
    /// output goes on beyond the full extent.
    pub fn pad_end(&self) -> i64 {
        self.full() - self.pad_begin - self.output as i64
    }

    /// The pairs (kernel index, input index) that feed output `o`, by rising kernel index. Takes time in proportion
    /// to their number, however large the kernel.
    pub fn contributions(&self, output: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let target = output as i64 + self.pad_begin;
        let (stride, dilation) = (self.stride as i64, self.dilation as i64);
        // i·s + t·d = target: the kernel indices t that solve it for some integer i are `step` apart, …
        let divisor = gcd(stride, dilation);
        let step = stride / divisor;
        let solvable = target % divisor == 0;
        let solution = i128::from(target / divisor) * i128::from(inverse(dilation / divisor, step));
        // … and the i are inputs for the t between these.
        let lowest = ceil_div(target - (self.input as i64 - 1) * stride, dilation).max(0);
        let highest = if solvable { target.div_euclid(dilation).min(self.kernel as i64 - 1) } else { -1 };
        let first = lowest + (solution - i128::from(lowest)).rem_euclid(step.into()) as i64;
        (first..=highest)
            .step_by(step as usize)
            .map(move |t| (t as usize, ((target - t * dilation) / stride) as usize))
    }

    fn check(&self, axis: usize) -> Result<(), SpecError> {
        for (what, value) in [("kernel", self.kernel), ("stride", self.stride), ("dilation", self.dilation)] {
            if value == 0 {
                return Err(SpecError::Value {
                    name: what.into(),
                    axis: Some(axis),
                    expected: "at least 1".into(),
                    found: "0".into(),
                });
            }
        }
        let full = (self.input as i128 - 1) * self.stride as i128
            + (self.kernel as i128 - 1) * self.dilation as i128
            + 1;
        let extents = [
            ("input size", self.input as i128),
            ("kernel", self.kernel as i128),
            ("stride", self.stride as i128),
            ("dilation", self.dilation as i128),
            ("output size", self.output as i128),
            ("padding", i128::from(self.pad_begin.unsigned_abs())),
            ("full extent", full.abs()),
        ];
        match extents.into_iter().find(|&(_, extent)| extent > MAX_EXTENT as i128) {
            Some((what, _)) => Err(SpecError::Overflow { what: what.into(), axis: Some(axis) }),
            None => Ok(()),
        }
    }
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The x with `a·x ≡ 1 (mod modulus)`, for an `a` coprime to the modulus, by the extended Euclidean algorithm.
fn inverse(a: i64, modulus: i64) -> i64 {
    let (mut old_rest, mut rest) = (a % modulus, modulus);
    let (mut old_x, mut x) = (1, 0);
    while rest != 0 {
        let quotient = old_rest / rest;
        (old_rest, rest) = (rest, old_rest - quotient * rest);
        (old_x, x) = (x, old_x - quotient * x);
    }
    old_x
}

fn ceil_div(a: i64, b: i64) -> i64 {
    -(-a).div_euclid(b)
}

/// A resolved transposed convolution: batch, groups, channels and spatial axes, checked so that no size computed
/// from it overflows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Geometry {
    batch: usize,
    groups: usize,
    in_channels: usize,
    out_channels: usize,
    axes: Vec<Axis>,
}

impl Geometry {
    /// Checks and builds a geometry. `in_channels` and `out_channels` count all groups together.
    ///
    /// ```
    /// use outstride_spec::{Axis, Geometry};
    ///
    /// let axis = Axis { input: 4, kernel: 3, stride: 2, dilation: 1, output: 8, pad_begin: 1 };
    /// let geometry = Geometry::new(1, 2, 16, 8, vec![axis, axis])?;
    /// assert_eq!(geometry.in_channels_per_group(), 8);
    /// assert_eq!(geometry.output_shape(), [1, 8, 8, 8]);
    /// # Ok::<(), outstride_spec::SpecError>(())
    /// ```
    pub fn new(
        batch: usize,
        groups: usize,
        in_channels: usize,
        out_channels: usize,
        axes: Vec<Axis>,
    ) -> Result<Self, SpecError> {
        if axes.is_empty() {
            return Err(SpecError::Rank {
                tensor: "the operator",
                expected: "at least one spatial axis".into(),
                found: 0,
            });
        }
        for (what, channels) in [("input channels", in_channels), ("output channels", out_channels)] {
            if groups == 0 || channels % groups != 0 {
                return Err(SpecError::Groups { attribute: "groups", groups: groups as i64, what, channels });
            }
        }
        for (index, axis) in axes.iter().enumerate() {
            axis.check(index)?;
        }
        let geometry = Geometry { batch, groups, in_channels, out_channels, axes };
        for (what, shape) in [
            ("element count of the input", geometry.input_shape()),
            ("element count of the filter", geometry.filter_shape()),
            ("element count of the output", geometry.output_shape()),
        ] {
            // A zero-sized dimension does not excuse the others: their products become strides.
            let count =
                shape.iter().try_fold(1i128, |product, &size| product.checked_mul(size.max(1) as i128));
            if count.is_none_or(|count| count > MAX_EXTENT as i128) {
                return Err(SpecError::Overflow { what: what.into(), axis: None });
            }
        }
        Ok(geometry)
    }

    /// The batch size.
    pub fn batch(&self) -> usize {
        self.batch
    }

    /// The number of groups, which divides both channel counts.
    pub fn groups(&self) -> usize {
        self.groups
    }

    /// Input channels of all groups.
    pub fn in_channels(&self) -> usize {
        self.in_channels
    }

    /// Output channels of all groups.
    pub fn out_channels(&self) -> usize {
        self.out_channels
    }

    /// Input channels of one group.
    pub fn in_channels_per_group(&self) -> usize {
        self.in_channels / self.groups
    }

    /// Output channels of one group.
    pub fn out_channels_per_group(&self) -> usize {
        self.out_channels / self.groups
    }

    /// The spatial axes, outermost first.
    pub fn axes(&self) -> &[Axis] {
        &self.axes
    }

    /// `(N, C, in…)`
    pub fn input_shape(&self) -> Vec<usize> {
        [self.batch, self.in_channels].into_iter().chain(self.axes.iter().map(|axis| axis.input)).collect()
    }

    /// `(G, C/G, M/G, k…)`: the filter with its groups as an axis of their own.
    pub fn filter_shape(&self) -> Vec<usize> {
        [self.groups, self.in_channels_per_group(), self.out_channels_per_group()]
            .into_iter()
            .chain(self.axes.iter().map(|axis| axis.kernel))
            .collect()
    }

    /// `(N, M, out…)`
    pub fn output_shape(&self) -> Vec<usize> {
        [self.batch, self.out_channels].into_iter().chain(self.axes.iter().map(|axis| axis.output)).collect()
    }

    /// Multiply-adds with a real input and a real weight, saturating: the work the operator cannot avoid.
    pub fn multiply_adds(&self) -> u128 {
        let per_channel_pair =
            self.axes.iter().fold(1u128, |product, axis| product.saturating_mul(taps_hit(axis)));
        [self.batch, self.in_channels, self.out_channels_per_group()]
            .into_iter()
            .fold(per_channel_pair, |product, count| product.saturating_mul(count as u128))
    }
}

/// How many pairs (input, kernel index) of an axis land inside the output. Counted per kernel index, or per input
/// where those are fewer.
fn taps_hit(axis: &Axis) -> u128 {
    let inputs = Progression { count: axis.input as i128, step: axis.stride as i128 };
    let kernels = Progression { count: axis.kernel as i128, step: axis.dilation as i128 };
    let (few, many) = if inputs.count < kernels.count { (inputs, kernels) } else { (kernels, inputs) };
    let low = i128::from(axis.pad_begin);
    let high = low + axis.output as i128;
    // Beyond this many the count is an estimate from above: it only serves as a measure of work.
    const EXACT: i128 = 1 << 16;
    if few.count > EXACT {
        return few.count as u128 * many.count.min(high - low) as u128;
    }
    (0..few.count).map(|index| many.hits(low - index * few.step, high - index * few.step)).sum()
}

struct Progression {
    count: i128,
    step: i128,
}

impl Progression {
    /// How many of `0, step, 2·step, …` lie in `low..high`.
    fn hits(&self, low: i128, high: i128) -> u128 {
        let below = |limit: i128| (limit + self.step - 1).div_euclid(self.step).clamp(0, self.count);
        (below(high) - below(low)).max(0) as u128
    }
}

impl fmt::Display for Geometry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let join = |field: fn(&Axis) -> i64| {
            self.axes.iter().map(|axis| field(axis).to_string()).collect::<Vec<_>>().join("×")
        };
        write!(f, "batch {}, channels {} → {}", self.batch, self.in_channels, self.out_channels)?;
        if self.groups != 1 {
            write!(f, " in {} groups", self.groups)?;
        }
        write!(
            f,
            ", input {}, kernel {}, stride {}, dilation {}, pads {} / {}, output {}",
            join(|axis| axis.input as i64),
            join(|axis| axis.kernel as i64),
            join(|axis| axis.stride as i64),
            join(|axis| axis.dilation as i64),
            join(|axis| axis.pad_begin),
            join(Axis::pad_end),
            join(|axis| axis.output as i64),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_axis() -> impl Strategy<Value = Axis> {
        (0usize..6, 1usize..8, 1usize..6, 1usize..5, 0usize..20, -6i64..12).prop_map(
            |(input, kernel, stride, dilation, output, pad_begin)| Axis {
                input,
                kernel,
                stride,
                dilation,
                output,
                pad_begin,
            },
        )
    }

    proptest! {
        #[test]
        fn contributions_are_the_pairs_of_the_definition(axis in any_axis()) {
            let mut hit = 0;
            for output in 0..axis.output {
                let mut expected = Vec::new();
                for t in 0..axis.kernel {
                    for i in 0..axis.input {
                        let position = (i * axis.stride + t * axis.dilation) as i64 - axis.pad_begin;
                        if position == output as i64 {
                            expected.push((t, i));
                        }
                    }
                }
                hit += expected.len() as u128;
                prop_assert_eq!(axis.contributions(output).collect::<Vec<_>>(), expected);
            }
            prop_assert_eq!(taps_hit(&axis), hit);
        }
    }

    #[test]
    fn contributions_of_huge_axes_are_found_at_once() {
        let huge = 1usize << 40;
        let axis = Axis { input: 2, kernel: huge, stride: 3, dilation: 1, output: huge, pad_begin: 0 };
        assert_eq!(axis.contributions(huge - 1).collect::<Vec<_>>(), [(huge - 4, 1), (huge - 1, 0)]);
        let sparse = Axis { kernel: huge, stride: huge + 1, dilation: 2, ..axis };
        assert_eq!(sparse.contributions(huge / 2 + 1).collect::<Vec<_>>(), []);
        assert_eq!(sparse.contributions(huge + 5).collect::<Vec<_>>(), [(2, 1)]);
        let far = Axis {
            input: huge,
            kernel: 1 << 15,
            stride: 1 << 15,
            dilation: 1,
            output: 1,
            pad_begin: 1 << 54,
        };
        assert_eq!(far.contributions(0).collect::<Vec<_>>(), [(0, 1 << 39)]);
    }

    #[test]
    fn sizes_that_would_overflow_are_refused() {
        let axis = Axis { input: 4, kernel: 3, stride: 2, dilation: 1, output: 8, pad_begin: 1 };
        let huge = usize::MAX / 2;
        for bad in [
            Axis { input: huge, ..axis },
            Axis { stride: huge, ..axis },
            Axis { dilation: huge, ..axis },
            Axis { output: huge, ..axis },
            Axis { pad_begin: i64::MIN, ..axis },
            Axis { input: 1 << 40, stride: 1 << 40, ..axis },
        ] {
            let error = Geometry::new(1, 1, 1, 1, vec![bad]).unwrap_err();
            assert!(matches!(error, SpecError::Overflow { .. }), "{bad:?}: {error}");
        }
        let wide = Axis { output: 1 << 40, ..axis };
        assert!(Geometry::new(0, 1, 1, 1, vec![wide, wide]).is_err());
        assert!(Geometry::new(0, 1, 1, 1, vec![wide]).is_ok());
    }

    #[test]
    fn groups_must_divide_both_channel_counts() {
        let axis = Axis { input: 4, kernel: 3, stride: 2, dilation: 1, output: 8, pad_begin: 1 };
        for (groups, input, output) in [(0, 4, 4), (3, 4, 6), (3, 6, 4)] {
            let error = Geometry::new(1, groups, input, output, vec![axis]).unwrap_err();
            assert!(matches!(error, SpecError::Groups { .. }), "{error}");
        }
        assert!(Geometry::new(1, 3, 0, 6, vec![axis]).is_ok());
    }
}
