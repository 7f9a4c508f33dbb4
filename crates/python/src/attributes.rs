//! Python values as a dialect's attributes, and back.

use outstride::{Activation, AttributeValue, Attributes};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use crate::error::invalid;

/// Deeper than any attribute of any dialect; a list may contain itself.
const DEEPEST: usize = 3;

/// The attributes of a call. `None` is how Python writes an argument that was left out.
pub(crate) fn from_python(attributes: &Bound<'_, PyDict>) -> PyResult<Attributes> {
    let mut converted = Attributes::new();
    for (name, value) in attributes {
        let name: String = name.extract()?;
        if !value.is_none() {
            let value = value_from_python(&name, &value, DEEPEST)?;
            converted.insert(name, value);
        }
    }
    Ok(converted)
}

fn value_from_python(name: &str, value: &Bound<'_, PyAny>, depth: usize) -> PyResult<AttributeValue> {
    let items = |items: &mut dyn Iterator<Item = Bound<'_, PyAny>>| match depth.checked_sub(1) {
        Some(depth) => items.map(|item| value_from_python(name, &item, depth)).collect(),
        None => Err(invalid(format!("attribute `{name}` is a list nested too deep for any dialect"))),
    };
    if let Ok(flag) = value.cast::<PyBool>() {
        Ok(AttributeValue::Bool(flag.is_true()))
    } else if let Ok(text) = value.cast::<PyString>() {
        Ok(AttributeValue::Text(text.to_cow()?.into_owned()))
    } else if let Ok(list) = value.cast::<PyList>() {
        Ok(AttributeValue::List(items(&mut list.iter())?))
    } else if let Ok(tuple) = value.cast::<PyTuple>() {
        Ok(AttributeValue::List(items(&mut tuple.iter())?))
    } else if let Ok(integer) = value.extract::<i64>() {
        Ok(AttributeValue::Int(integer))
    } else if value.is_instance_of::<PyInt>() {
        Err(invalid(format!("attribute `{name}` is {value}, which 64 bits cannot hold")))
    } else if let Ok(float) = value.cast::<PyFloat>() {
        Ok(AttributeValue::Float(float.value()))
    } else {
        let found = value.get_type().name()?;
        let expected = "a number, string, boolean, or a list or tuple of these";
        Err(invalid(format!("attribute `{name}` must be {expected}, got an object of type {found}")))
    }
}

/// The same attributes as a `dict`.
pub(crate) fn to_python<'py>(py: Python<'py>, attributes: &Attributes) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in attributes {
        dict.set_item(name, value_to_python(py, value)?)?;
    }
    Ok(dict)
}

fn value_to_python<'py>(py: Python<'py>, value: &AttributeValue) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        AttributeValue::Bool(flag) => PyBool::new(py, *flag).to_owned().into_any(),
        AttributeValue::Int(integer) => integer.into_pyobject(py)?.into_any(),
        AttributeValue::Float(float) => float.into_pyobject(py)?.into_any(),
        AttributeValue::Text(text) => text.into_pyobject(py)?.into_any(),
        AttributeValue::List(items) => {
            let items: Vec<_> =
                items.iter().map(|item| value_to_python(py, item)).collect::<PyResult<_>>()?;
            PyList::new(py, items)?.into_any()
        }
    })
}

/// An activation as Python writes it: a name, or a name and its parameters.
#[derive(Clone, Debug, PartialEq, FromPyObject, IntoPyObject)]
pub(crate) enum ActivationArgument {
    Name(String),
    One(String, f32),
    Two(String, f32, f32),
}

impl ActivationArgument {
    pub(crate) fn read(&self) -> PyResult<Activation> {
        let (name, params) = match self {
            ActivationArgument::Name(name) => (name, vec![]),
            ActivationArgument::One(name, a) => (name, vec![*a]),
            ActivationArgument::Two(name, a, b) => (name, vec![*a, *b]),
        };
        Activation::from_name(name, &params).ok_or_else(|| {
            let known = Activation::NAMES.map(|(name, params)| match params {
                0 => format!("\"{name}\""),
                1 => format!("(\"{name}\", alpha)"),
                _ => format!("(\"{name}\", a, b)"),
            });
            let found = format!("`{name}` with {} parameters", params.len());
            invalid(format!("`activation` must be one of {}, got {found}", known.join(", ")))
        })
    }
}
