//! An operator as what pickle can store, and back: its weights as bytes, and the words it was made with.

use std::sync::Arc;

use outstride::{AttributeValue, Attributes, DType, DialectName, Policy, Request};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

use crate::attributes::{self, ActivationArgument};
use crate::class::ConvTranspose;
use crate::error::{invalid, refused};
use crate::operator::{Settings, Weights};
use crate::threads::executor;

/// What an operator is made of beside its weights, in the words of its caller.
pub(crate) struct Recipe {
    pub(crate) dialect: DialectName,
    policy: Policy,
    activation: Option<ActivationArgument>,
    opset: Option<i64>,
    pub(crate) attributes: Attributes,
}

impl Recipe {
    pub(crate) fn new(
        dialect: &str,
        policy: &str,
        activation: Option<ActivationArgument>,
        opset: Option<i64>,
        attributes: Attributes,
    ) -> PyResult<Self> {
        let dialect = dialect.parse::<DialectName>().map_err(|error| invalid(error.to_string()))?;
        let policies = [Policy::Spec, Policy::Runtime];
        let policy = policies.into_iter().find(|known| known.to_string() == policy).ok_or_else(|| {
            invalid(format!(
                "`policy` must be one of {}, got `{policy}`",
                policies.map(|p| p.to_string()).join(", ")
            ))
        })?;
        Ok(Recipe { dialect, policy, activation, opset, attributes })
    }

    /// The words, understood.
    pub(crate) fn settings(&self) -> PyResult<Settings> {
        let mut request =
            Request { version: self.opset, attributes: self.attributes.clone(), ..Request::default() };
        let mut activation = self.activation.as_ref();
        match (self.dialect, activation) {
            // This dialect has an attribute of that name, with its parameters in another.
            (DialectName::OrtNhwc, Some(ActivationArgument::Name(name))) => {
                request.attributes.insert("activation".into(), AttributeValue::Text(name.clone()));
                activation = None;
            }
            // These take the output's shape as a tensor.
            (DialectName::Openvino | DialectName::OpenvinoGroup, _) => {
                request.output_shape =
                    request.attributes.remove("output_shape").map(|shape| integers(&shape)).transpose()?;
            }
            _ => {}
        }
        let dialect = request.read(self.dialect).map_err(|error| refused(&error.into()))?;
        Ok(Settings {
            dialect: Arc::from(dialect),
            policy: self.policy,
            activation: activation.map(ActivationArgument::read).transpose()?,
            executor: executor(None)?,
        })
    }
}

fn integers(value: &AttributeValue) -> PyResult<Vec<i64>> {
    let integer =
        |item: &AttributeValue| if let AttributeValue::Int(value) = item { Some(*value) } else { None };
    let integers = match value {
        AttributeValue::List(items) => items.iter().map(integer).collect(),
        _ => None,
    };
    integers.ok_or_else(|| invalid(format!("`output_shape` must be a list of integers, got {value}")))
}

/// What `restore` needs to make the same operator again.
pub(crate) fn reduce<'py>(
    py: Python<'py>,
    weights: &Weights<&[u8]>,
    recipe: &Recipe,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
    let words = PyDict::new(py);
    words.set_item("dialect", recipe.dialect.as_str())?;
    words.set_item("policy", recipe.policy.to_string())?;
    words.set_item("activation", recipe.activation.clone())?;
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
    let recipe = Recipe::new(
        &word("dialect")?.extract::<String>()?,
        &word("policy")?.extract::<String>()?,
        word("activation")?.extract()?,
        word("opset")?.extract()?,
        attributes::from_python(word("attributes")?.cast()?)?,
    )?;
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
