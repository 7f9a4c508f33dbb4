//! What a dialect makes of a question.

use std::collections::BTreeMap;

use outstride::{Axis, Call, DialectName, Operands, Policy, Request, SpecError, TensorType};
use outstride_io::attributes;
use outstride_spec::neutral::{SpellError, Spelling};
use serde::Serialize;

use super::question::{Form, Question};

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Answer {
    Resolved(Box<Resolved>),
    Refused(Refused),
}

/// A call that means something.
#[derive(Debug, Serialize)]
pub(super) struct Resolved {
    pub(super) dialect: &'static str,
    pub(super) policy: String,
    pub(super) output: Laid,
    pub(super) input: Laid,
    pub(super) filter: Laid,
    pub(super) axes: Vec<AxisAnswer>,
    pub(super) rule: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) note: Option<String>,
    pub(super) multiply_adds: u128,
    /// The call in the dialect's own words.
    pub(super) attributes: BTreeMap<String, serde_json::Value>,
    /// OpenVINO's third input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) output_shape_input: Option<Vec<i64>>,
}

/// A shape and the meaning of its axes.
#[derive(Debug, Serialize)]
pub(super) struct Laid {
    pub(super) shape: Vec<usize>,
    pub(super) layout: String,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct AxisAnswer {
    pub(crate) input: usize,
    pub(crate) kernel: usize,
    pub(crate) stride: usize,
    pub(crate) dilation: usize,
    pub(crate) full: i64,
    pub(crate) pad_begin: i64,
    pub(crate) pad_end: i64,
    pub(crate) output: usize,
}

/// A call that the dialect refuses or cannot express.
#[derive(Debug, Serialize)]
pub(super) struct Refused {
    pub(super) dialect: &'static str,
    error: RefusalError,
}

#[derive(Debug, Serialize)]
struct RefusalError {
    kind: &'static str,
    message: String,
}

impl Refused {
    pub(super) fn message(&self) -> &str {
        &self.error.message
    }
}

impl From<&Axis> for AxisAnswer {
    fn from(axis: &Axis) -> Self {
        AxisAnswer {
            input: axis.input,
            kernel: axis.kernel,
            stride: axis.stride,
            dilation: axis.dilation,
            full: axis.full(),
            pad_begin: axis.pad_begin,
            pad_end: axis.pad_end(),
            output: axis.output,
        }
    }
}

pub(super) fn in_every_dialect(question: &Question, policy: Policy) -> Vec<Answer> {
    DialectName::ALL.into_iter().map(|dialect| answer(dialect, question, policy)).collect()
}

pub(super) fn answer(dialect: DialectName, question: &Question, policy: Policy) -> Answer {
    match resolve(dialect, question, policy) {
        Ok(resolved) => Answer::Resolved(Box::new(resolved)),
        Err(error) => Answer::Refused(Refused {
            dialect: dialect.as_str(),
            error: RefusalError { kind: kind(&error), message: error.to_string() },
        }),
    }
}

fn kind(error: &SpellError) -> &'static str {
    match error {
        SpellError::Invalid(error) => error.kind(),
        _ => "inexpressible",
    }
}

fn resolve(dialect: DialectName, question: &Question, policy: Policy) -> Result<Resolved, SpellError> {
    let mut spelling = match &question.form {
        Form::Neutral(problem) => problem.spell(dialect)?,
        Form::Native { input, filter, request } => {
            Spelling { request: request.clone(), input: input.clone(), filter: filter.clone(), note: None }
        }
    };
    spelling.request.version = question.version(dialect);
    let call = call(dialect, question, policy, &spelling)?;
    let Spelling { request: Request { attributes, output_shape, .. }, input, filter, note } = spelling;
    Ok(Resolved {
        dialect: dialect.as_str(),
        policy: policy.to_string(),
        output: Laid { shape: call.output_shape(), layout: call.output.to_string() },
        input: Laid { shape: input, layout: call.input.to_string() },
        filter: Laid { shape: filter, layout: call.filter.to_string() },
        axes: call.geometry.axes().iter().map(AxisAnswer::from).collect(),
        rule: call.pad_rule.to_string(),
        note,
        multiply_adds: call.geometry.multiply_adds(),
        attributes: attributes
            .iter()
            .map(|(name, value)| (name.clone(), attributes::to_json(value)))
            .collect(),
        output_shape_input: output_shape,
    })
}

fn call(
    dialect: DialectName,
    question: &Question,
    policy: Policy,
    spelling: &Spelling,
) -> Result<Call, SpecError> {
    let reader = spelling.request.read(dialect)?;
    let tensor = |shape| TensorType::new(question.dtype, shape);
    let filter = tensor(&spelling.filter);
    let bias_shape = [reader.filter(&filter)?.out_channels];
    let mut operands = Operands::new(tensor(&spelling.input), filter);
    if question.bias {
        operands = operands.with_bias(TensorType::new(question.dtype, &bias_shape));
    }
    reader.resolve(&operands, policy)
}
