//! The tensors of a case, by their roles.

use outstride_spec::DialectName;

use super::Case;
use crate::tensor::AnyTensor;

/// The tensors of a case, by their roles rather than the dialect's names for them.
#[derive(Clone, Copy, Debug)]
pub struct CaseInputs<'a> {
    /// The data.
    pub input: &'a AnyTensor,
    /// The weights.
    pub filter: &'a AnyTensor,
    /// One value per output channel.
    pub bias: Option<&'a AnyTensor>,
    /// OpenVINO's third input.
    pub output_shape: Option<&'a AnyTensor>,
}

/// Why the tensors of a case do not make a call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The messages say what each field is.
pub enum InputError {
    #[error("{dialect} takes no input `{name}`; it takes {}", known.join(", "))]
    Unknown { dialect: DialectName, name: String, known: Vec<&'static str> },

    #[error("the input `{name}` is missing; {dialect} requires it")]
    Missing { dialect: DialectName, name: &'static str },
}

/// What a dialect calls its tensors.
struct Names {
    input: &'static str,
    filter: &'static str,
    bias: Option<&'static str>,
    output_shape: Option<&'static str>,
}

impl Names {
    fn of(dialect: DialectName) -> Self {
        let two = |input, filter| Names { input, filter, bias: None, output_shape: None };
        match dialect {
            DialectName::Onnx | DialectName::OrtNhwc => Names { bias: Some("B"), ..two("X", "W") },
            DialectName::OnednnGraph => Names { bias: Some("bias"), ..two("data", "filter") },
            DialectName::Openvino | DialectName::OpenvinoGroup => {
                Names { output_shape: Some("output_shape"), ..two("data", "filter") }
            }
            DialectName::Torch => Names { bias: Some("bias"), ..two("input", "weight") },
            DialectName::Tensorflow => two("input", "filters"),
            DialectName::Jax => two("lhs", "rhs"),
        }
    }

    fn known(&self) -> Vec<&'static str> {
        [Some(self.input), Some(self.filter), self.bias, self.output_shape].into_iter().flatten().collect()
    }
}

impl Case {
    /// The tensors by their roles: the dialect's required ones, its optional ones, and no others.
    pub fn inputs(&self) -> Result<CaseInputs<'_>, InputError> {
        let dialect = self.dialect;
        let names = Names::of(dialect);
        let known = names.known();
        if let Some(name) = self.tensors.keys().find(|name| !known.contains(&name.as_str())) {
            return Err(InputError::Unknown { dialect, name: name.clone(), known });
        }
        let optional = |name: Option<&str>| name.and_then(|name| self.tensors.get(name));
        let required = |name| self.tensors.get(name).ok_or(InputError::Missing { dialect, name });
        Ok(CaseInputs {
            input: required(names.input)?,
            filter: required(names.filter)?,
            bias: optional(names.bias),
            output_shape: optional(names.output_shape),
        })
    }
}
