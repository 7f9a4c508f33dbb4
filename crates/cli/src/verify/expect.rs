//! Someone else's output, and what explains it where it differs.

use std::fmt;

use anyhow::Result;
use outstride::{DType, Request};
use outstride_io::AnyTensor;
use outstride_io::model::ModelLayer;
use serde::Serialize;

use super::canonical::{Canonical, doubles};
use super::deviations::{Deviation, deviations, pairs};
use super::ulps::{allowed, distance, epsilon};
use crate::output::sizes;
use crate::relayout::Order;

/// How many elements of a result are looked at before all of them are computed.
const PROBES: usize = 64;

/// More pairs of mistakes than this tell nobody which two were made.
const MOST_PAIRS: usize = 8;

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
    /// What gives the expected values, each alone.
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

    /// The simplest deviations that give the expected values: known ones, else a shift, else two known ones at once.
    fn explain(&self, expected: &AnyTensor, wanted: &[f64]) -> Vec<String> {
        let explains = |deviation: &Deviation| self.explains(&deviation.result, expected.shape(), wanted);
        let all = |candidates: Vec<Deviation>| candidates.into_iter().filter(explains).collect::<Vec<_>>();
        let mut found = all(deviations(self.layer, self.request, self.canonical));
        if found.is_empty() {
            found = all(shifts(self.canonical).collect());
        }
        if found.is_empty() {
            for pair in pairs(self.layer, self.request, self.canonical) {
                // Two mistakes come to the same in either order.
                let known = found.iter().any(|other| other.result.same(&pair.result));
                if !known && explains(&pair) {
                    found.push(pair);
                }
                if found.len() == MOST_PAIRS {
                    break;
                }
            }
        }
        found.into_iter().map(|deviation| deviation.what).collect()
    }

    /// Whether this gives the expected values. Most that do not are found out by a few elements.
    fn explains(&self, result: &Canonical, shape: &[usize], wanted: &[f64]) -> bool {
        let canonical = result.output_shape();
        if result.layout.arrange(&canonical) != shape {
            return false;
        }
        let order = Order::of_data(&result.layout, shape);
        let limit = result.magnitude_limit() * self.unit(result);
        let agrees = |index: Vec<usize>| {
            let element = result.element(&index);
            element.is_ok_and(|element| distance(element, wanted[order.position(&index)]) <= limit)
        };
        if !probes(&canonical).all(agrees) {
            return false;
        }
        let (Ok((_, values)), Ok(bounds)) = (result.evaluate(), self.bounds(result)) else { return false };
        values.iter().zip(wanted).zip(&bounds).all(|((&a, &b), &bound)| distance(a, b) <= bound)
    }

    /// How far each element may be off. Values that were summed in another order differ by rounding.
    fn bounds(&self, canonical: &Canonical) -> Result<Vec<f64>> {
        let unit = self.unit(canonical);
        Ok(canonical.magnitudes()?.into_iter().map(|magnitude| magnitude * unit).collect())
    }

    /// How far an element may be off in proportion to the sum of its magnitudes.
    fn unit(&self, canonical: &Canonical) -> f64 {
        let allowed = allowed(canonical, self.dtype, self.tolerance);
        if self.dtype.is_float() { epsilon(self.dtype) * allowed } else { 0.0 }
    }
}

/// Some indices of a shape, spread all over it: multiples of the golden ratio leave no large gap and repeat no pattern.
fn probes(shape: &[usize]) -> impl Iterator<Item = Vec<usize>> + '_ {
    const GOLDEN: f64 = 0.618_033_988_749_894_9;
    let count: usize = shape.iter().product();
    (0..count.min(PROBES)).map(move |probe| {
        let mut rest = ((probe as f64 * GOLDEN).fract() * count as f64) as usize;
        let mut index = vec![0; shape.len()];
        for (at, &size) in index.iter_mut().zip(shape).rev() {
            *at = rest % size;
            rest /= size;
        }
        index
    })
}

/// The output moved by a few elements along each axis.
fn shifts(right: &Canonical) -> impl Iterator<Item = Deviation> + '_ {
    (0..right.axes.len()).flat_map(move |axis| {
        let reach = right.axes[axis].effective_kernel().clamp(1, 8);
        (-reach..=reach).filter(|&shift| shift != 0).map(move |shift| {
            let mut result = right.clone();
            result.axes[axis].pad_begin += shift;
            Deviation { what: describe(shift, axis), result }
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
            [] => write!(f, "\nno known deviation explains it, nor do two at once"),
            [one] => write!(f, "\nexplained by: {one}"),
            several => {
                write!(f, "\nexplained by each of these alone:")?;
                several.iter().try_for_each(|what| write!(f, "\n  {what}"))
            }
        }
    }
}
