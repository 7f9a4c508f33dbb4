//! The words an operator was made with, and what they mean.

use std::sync::Arc;

use outstride::{AttributeValue, Attributes, DialectName, Policy, Precision, Request};
use pyo3::PyResult;

use crate::attributes::ActivationArgument;
use crate::error::{invalid, refused};
use crate::operator::Settings;
use crate::threads::executor;

const POLICIES: [(&str, Policy); 2] = [("spec", Policy::Spec), ("runtime", Policy::Runtime)];
const PRECISIONS: [(&str, Precision); 3] =
    [("full", Precision::Full), ("strict", Precision::Strict), ("bf16-compute", Precision::Bf16Compute)];

/// What an operator is made of beside its weights, in the words of its caller.
pub(crate) struct Recipe {
    pub(crate) dialect: DialectName,
    pub(crate) policy: String,
    pub(crate) activation: Option<ActivationArgument>,
    pub(crate) precision: String,
    pub(crate) opset: Option<i64>,
    pub(crate) attributes: Attributes,
}

impl Recipe {
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
            policy: meaning("policy", &self.policy, &POLICIES)?,
            activation: activation.map(ActivationArgument::read).transpose()?,
            precision: meaning("precision", &self.precision, &PRECISIONS)?,
            executor: executor(None)?,
        })
    }
}

pub(crate) fn dialect_named(word: &str) -> PyResult<DialectName> {
    word.parse().map_err(|error| invalid(format!("{error}")))
}

/// What a word stands for among those that an argument may be.
fn meaning<T: Copy>(argument: &str, word: &str, known: &[(&str, T)]) -> PyResult<T> {
    let found = known.iter().find(|(name, _)| *name == word).map(|&(_, value)| value);
    found.ok_or_else(|| {
        let names: Vec<_> = known.iter().map(|&(name, _)| name).collect();
        invalid(format!("`{argument}` must be one of {}, got `{word}`", names.join(", ")))
    })
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
