//! How a result differs from the expected one.

use std::fmt;

use outstride_io::conformance::Tolerance;
use outstride_io::{AnyTensor, Number};
use serde::Serialize;

/// Why a case failed.
#[derive(Debug, PartialEq, Serialize)]
#[serde(tag = "what", rename_all = "lowercase")]
pub(super) enum Difference {
    /// The result has another element type.
    Type { expected: String, got: String },
    /// The result has another shape.
    Shape { expected: Vec<usize>, got: Vec<usize> },
    /// Elements are off. The values are text, since JSON has no NaN.
    Element {
        index: Vec<usize>,
        expected: String,
        got: String,
        abs: f64,
        rel: f64,
        differing: usize,
        elements: usize,
    },
    /// The call was refused.
    Refused { shape: Vec<usize>, error: String },
    /// The call should have been refused.
    Accepted { kind: String, reason: String, shape: Vec<usize> },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Difference::Type { expected, got } => write!(f, "element type: expected {expected}, got {got}"),
            Difference::Shape { expected, got } => write!(f, "shape: expected {expected:?}, got {got:?}"),
            Difference::Element { index, expected, got, abs, rel, differing, elements } => write!(
                f,
                "element {index:?}: expected {expected}, got {got} (tolerance abs {abs}, rel {rel}; \
                 {differing} of {elements} elements differ)"
            ),
            Difference::Refused { shape, error } => {
                write!(f, "expected an output of shape {shape:?}, but the call was refused: {error}")
            }
            Difference::Accepted { kind, reason, shape } => {
                let separator = if reason.is_empty() { "" } else { ": " };
                write!(f, "expected a refusal ({kind}{separator}{reason}), got an output of shape {shape:?}")
            }
        }
    }
}

/// The first thing in which `output` is not what was expected.
pub(super) fn difference(
    expected: &AnyTensor,
    output: &AnyTensor,
    tolerance: Tolerance,
) -> Option<Difference> {
    let (wanted, got) = (expected.values(), output.values());
    if wanted.dtype() != got.dtype() {
        return Some(Difference::Type { expected: wanted.dtype().to_string(), got: got.dtype().to_string() });
    }
    if expected.shape() != output.shape() {
        return Some(Difference::Shape { expected: expected.shape().to_vec(), got: output.shape().to_vec() });
    }
    let pairs = (0..wanted.len()).filter_map(|index| Some((index, wanted.get(index)?, got.get(index)?)));
    let mut differing = pairs.filter(|&(_, wanted, got)| !close(wanted, got, tolerance));
    let (first, wanted, got) = differing.next()?;
    Some(Difference::Element {
        index: expected.index_of(first),
        expected: wanted.to_string(),
        got: got.to_string(),
        abs: tolerance.abs,
        rel: tolerance.rel,
        differing: 1 + differing.count(),
        elements: expected.values().len(),
    })
}

fn close(expected: Number, got: Number, tolerance: Tolerance) -> bool {
    match (expected, got) {
        (Number::Float(expected), Number::Float(got)) => {
            // The infinite distance of an infinity would pass for a relative tolerance of it.
            let both_finite = expected.is_finite() && got.is_finite();
            let within = (got - expected).abs() <= tolerance.abs + tolerance.rel * expected.abs();
            expected == got || (expected.is_nan() && got.is_nan()) || (both_finite && within)
        }
        (Number::Integer(expected), Number::Integer(got)) => {
            let distance = got.abs_diff(expected) as f64;
            distance <= tolerance.abs + tolerance.rel * expected.unsigned_abs() as f64
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXACT: Tolerance = Tolerance { abs: 0.0, rel: 0.0 };

    fn floats(expected: f64, got: f64, tolerance: Tolerance) -> bool {
        close(Number::Float(expected), Number::Float(got), tolerance)
    }

    #[test]
    fn special_values_match_themselves_only() {
        let (nan, infinity) = (f64::NAN, f64::INFINITY);
        let loose = Tolerance { abs: 1.0, rel: 1.0 };
        for tolerance in [EXACT, loose] {
            assert!(floats(nan, nan, tolerance));
            assert!(floats(infinity, infinity, tolerance));
            assert!(floats(0.0, -0.0, tolerance));
            assert!(!floats(nan, 1.0, tolerance));
            assert!(!floats(1.0, nan, tolerance));
            assert!(!floats(infinity, -infinity, tolerance));
            assert!(!floats(infinity, 1e300, tolerance));
            assert!(!floats(1e300, infinity, tolerance));
        }
    }

    #[test]
    fn both_parts_of_the_tolerance_count() {
        let tolerance = Tolerance { abs: 0.5, rel: 0.25 };
        assert!(floats(4.0, 5.5, tolerance));
        assert!(!floats(4.0, 5.625, tolerance));
        assert!(floats(-4.0, -2.5, tolerance));
        assert!(close(Number::Integer(4), Number::Integer(5), tolerance));
        assert!(!close(Number::Integer(4), Number::Integer(6), tolerance));
    }

    #[test]
    fn large_integers_are_compared_exactly() {
        let close = |a, b| close(Number::Integer(a), Number::Integer(b), EXACT);
        assert!(close(i128::from(u64::MAX), i128::from(u64::MAX)));
        assert!(!close(i128::from(u64::MAX), i128::from(u64::MAX) - 1));
    }

    #[test]
    fn the_first_differing_element_is_reported_by_its_index() {
        let tensor = |values: [i32; 4]| AnyTensor::new(vec![2, 2], values.to_vec()).unwrap();
        let found = difference(&tensor([1, 2, 3, 4]), &tensor([1, 2, 0, 0]), EXACT).unwrap();
        let message = found.to_string();
        assert!(message.starts_with("element [1, 0]: expected 3, got 0"), "{message}");
        assert!(message.ends_with("2 of 4 elements differ)"), "{message}");
        assert_eq!(difference(&tensor([1, 2, 3, 4]), &tensor([1, 2, 3, 4]), EXACT), None);
    }

    #[test]
    fn type_and_shape_come_before_values() {
        let ints = AnyTensor::new(vec![2], vec![1i32, 2]).unwrap();
        let bytes = AnyTensor::new(vec![2], vec![1i8, 2]).unwrap();
        let column = AnyTensor::new(vec![2, 1], vec![1i32, 2]).unwrap();
        assert!(matches!(difference(&ints, &bytes, EXACT), Some(Difference::Type { .. })));
        assert!(matches!(difference(&ints, &column, EXACT), Some(Difference::Shape { .. })));
    }
}
