//! Someone else's output, and what explains it where it differs.

use std::fmt;

use anyhow::Result;
use outstride::{DType, Request};
use outstride_io::AnyTensor;
use outstride_io::model::ModelLayer;
use serde::Serialize;

use super::canonical::{Canonical, doubles};
use super::deviations::deviations;
use super::ulps::{allowed, distance, epsilon};
use crate::output::sizes;

/// What is compared, and by which measure.
pub(super) struct Question<'a> {
    pub(super) layer: &'a ModelLayer<'a>,
    pub(super) request: &'a Request,
    pub(super) canonical: &'a Canonical,
    /// The less precise of the two element types.
    pub(super) dtype: DType,
    pub(super) tolerance: Option<f64>,
}

/// How the expected output compares.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Comparison {
    differing: usize,
    elements: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    shape: Option<[Vec<usize>; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    first: Option<FirstDifference>,
    /// Deviations that give the expected values.
    explained_by: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
struct FirstDifference {
    index: Vec<usize>,
    /// Text, since JSON has no NaN.
    expected: String,
    computed: String,
}

impl Comparison {
    pub(super) fn agrees(&self) -> bool {
        self.shape.is_none() && self.differing == 0
    }
}

impl Question<'_> {
    pub(super) fn compare(&self, computed: &AnyTensor, expected: &AnyTensor) -> Result<Comparison> {
        let wanted = doubles(expected);
        let mut comparison = Comparison {
            differing: 0,
            elements: wanted.len(),
            shape: None,
            first: None,
            explained_by: Vec::new(),
        };
        if computed.shape() != expected.shape() {
            comparison.shape = Some([expected.shape().to_vec(), computed.shape().to_vec()]);
        } else {
            let (values, bounds) = (doubles(computed), self.bounds(self.canonical)?);
            let off = |index: &usize| distance(values[*index], wanted[*index]) > bounds[*index];
            let mut differing = (0..wanted.len()).filter(off);
            if let Some(first) = differing.next() {
                comparison.differing = 1 + differing.count();
                comparison.first = Some(FirstDifference {
                    index: expected.index_of(first),
                    expected: wanted[first].to_string(),
                    computed: values[first].to_string(),
                });
            }
        }
        if !comparison.agrees() {
            comparison.explained_by = self.explain(expected, &wanted);
        }
        Ok(comparison)
    }

    /// The deviations that give the expected values; without one, a shift that does.
    fn explain(&self, expected: &AnyTensor, wanted: &[f64]) -> Vec<String> {
        let explains = |result: &Canonical| {
            let (Ok((shape, values)), Ok(bounds)) = (result.evaluate(), self.bounds(result)) else {
                return false;
            };
            shape == expected.shape()
                && values.iter().zip(wanted).zip(&bounds).all(|((&a, &b), &bound)| distance(a, b) <= bound)
        };
        let known = deviations(self.layer, self.request, self.canonical).into_iter();
        let known: Vec<String> =
            known.filter(|deviation| explains(&deviation.result)).map(|deviation| deviation.what).collect();
        if !known.is_empty() {
            return known;
        }
        shifts(self.canonical)
            .find(|(_, result)| explains(result))
            .map(|(what, _)| what)
            .into_iter()
            .collect()
    }

    /// How far each element may be off. Values that were summed in another order differ by rounding.
    fn bounds(&self, canonical: &Canonical) -> Result<Vec<f64>> {
        let unit = if self.dtype.is_float() {
            epsilon(self.dtype) * allowed(canonical, self.tolerance)
        } else {
            0.0
        };
        Ok(canonical.magnitudes()?.into_iter().map(|magnitude| magnitude * unit).collect())
    }
}

/// The output moved by a few elements along each axis.
fn shifts(right: &Canonical) -> impl Iterator<Item = (String, Canonical)> + '_ {
    (0..right.axes.len()).flat_map(move |axis| {
        let reach = right.axes[axis].effective_kernel().clamp(1, 8);
        (-reach..=reach).filter(|&shift| shift != 0).map(move |shift| {
            let mut result = right.clone();
            result.axes[axis].pad_begin += shift;
            (describe(shift, axis), result)
        })
    })
}

fn describe(shift: i64, axis: usize) -> String {
    let elements = if shift.abs() == 1 { "element is" } else { "elements are" };
    let direction = if shift > 0 { "more" } else { "fewer" };
    format!("{} {direction} {elements} cropped at the beginning of axis {axis}", shift.abs())
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.agrees() {
            return write!(f, "the expected output agrees: all {} elements", self.elements);
        }
        if let Some([expected, computed]) = &self.shape {
            write!(
                f,
                "the expected output has shape {}, the computed one {}",
                sizes(expected),
                sizes(computed)
            )?;
        }
        if let Some(first) = &self.first {
            let FirstDifference { index, expected, computed } = first;
            write!(
                f,
                "the expected output differs in {} of {} elements; the first, {index:?}, is {expected}, but {computed} \
                 was computed",
                self.differing, self.elements
            )?;
        }
        match self.explained_by.as_slice() {
            [] => write!(f, "\nnone of the known deviations explains it"),
            explanations => explanations.iter().try_for_each(|what| write!(f, "\nexplained by: {what}")),
        }
    }
}
