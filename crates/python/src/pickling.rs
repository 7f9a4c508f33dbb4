//! An operator as what pickle can store, and back: its weights as bytes, and the words it was made with.

use outstride::DType;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::attributes;
use crate::class::ConvTranspose;
use crate::error::invalid;
use crate::operator::Weights;
use crate::recipe::{Recipe, dialect_named};

/// What `restore` needs to make the same operator again.
pub(crate) fn reduce<'py>(
    py: Python<'py>,
    weights: &Weights<&[u8]>,
    recipe: &Recipe,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
    let words = PyDict::new(py);
    words.set_item("dialect", recipe.dialect.as_str())?;
    words.set_item("policy", &recipe.policy)?;
    words.set_item("activation", recipe.activation.clone())?;
    words.set_item("precision", &recipe.precision)?;
    words.set_item("opset", recipe.opset)?;
    words.set_item("attributes", attributes::to_python(py, &recipe.attributes)?)?;
    let shape = PyTuple::new(py, &weights.shape)?;
    let filter = PyBytes::new(py, weights.filter);
    let bias = weights.bias.map(|bias| PyBytes::new(py, bias));
    let arguments = (weights.dtype.name(), shape, filter, bias, words).into_pyobject(py)?;
    Ok((py.import("outstride._native")?.getattr("restore")?, arguments))
}

/// Makes a pickled operator again.
#[pyfunction]
pub(crate) fn restore(
    dtype: &str,
    shape: Vec<usize>,
    weight: Vec<u8>,
    bias: Option<Vec<u8>>,
    words: &Bound<'_, PyDict>,
) -> PyResult<ConvTranspose> {
    let word =
        |name: &str| words.get_item(name)?.ok_or_else(|| invalid(format!("the pickle has no `{name}`")));
    let recipe = Recipe {
        dialect: dialect_named(&word("dialect")?.extract::<String>()?)?,
        policy: word("policy")?.extract()?,
        activation: word("activation")?.extract()?,
        precision: word("precision")?.extract()?,
        opset: word("opset")?.extract()?,
        attributes: attributes::from_python(word("attributes")?.cast()?)?,
    };
    let dtype: DType = dtype.parse().map_err(|error| invalid(format!("{error}")))?;
    for bytes in [Some(&weight), bias.as_ref()].into_iter().flatten() {
        if !bytes.len().is_multiple_of(dtype.size()) {
            return Err(invalid(format!(
                "the pickle has {} bytes of weights, which are no {dtype}",
                bytes.len()
            )));
        }
    }
    ConvTranspose::from_parts(&Weights { dtype, shape, filter: weight, bias }, recipe)
}
