//! Runs the call of a case.

use anyhow::Result;
use outstride::{Policy, Request};
use outstride_io::AnyTensor;
use outstride_io::conformance::Case;

use crate::convolve::{Tensors, convolve, output_shape_values};

/// The call's result, or why it was refused.
pub(super) fn execute(case: &Case, policy: Policy) -> Result<AnyTensor> {
    let inputs = case.inputs()?;
    let request = Request {
        op: Some(case.op.clone()),
        version: case.version,
        attributes: case.attributes.clone(),
        output_shape: inputs.output_shape.map(output_shape_values).transpose()?,
    };
    let tensors = Tensors { input: inputs.input, filter: inputs.filter, bias: inputs.bias };
    convolve(request.read(case.dialect)?.into(), &tensors, policy)
}
