//! Runs the call of a case.

use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use outstride::{
    ConvTranspose, DType, Dialect, Element, Limits, Operands, Policy, Request, SpecError, TensorView, bf16,
    f16, openvino,
};
use outstride_io::conformance::{Case, CaseInputs};
use outstride_io::{AnyTensor, Number, Storable};

/// The call's result, or why it was refused.
pub(super) fn execute(case: &Case, policy: Policy) -> Result<AnyTensor> {
    let inputs = case.inputs()?;
    let request = Request {
        op: Some(case.op.clone()),
        version: case.version,
        attributes: case.attributes.clone(),
        output_shape: inputs.output_shape.map(output_shape_values).transpose()?,
    };
    let dialect: Arc<dyn Dialect> = request.read(case.dialect)?.into();
    // The types are checked as they stand in the file: the operator below knows only one.
    let mut operands = Operands::new(inputs.input.tensor_type(), inputs.filter.tensor_type());
    operands.bias = inputs.bias.map(AnyTensor::tensor_type);
    dialect.resolve(&operands, policy)?;
    match operands.input.dtype {
        DType::F16 => execute_in::<f16>(dialect, &inputs, policy),
        DType::Bf16 => execute_in::<bf16>(dialect, &inputs, policy),
        DType::F32 => execute_in::<f32>(dialect, &inputs, policy),
        DType::F64 => execute_in::<f64>(dialect, &inputs, policy),
        DType::I8 => execute_in::<i8>(dialect, &inputs, policy),
        DType::I16 => execute_in::<i16>(dialect, &inputs, policy),
        DType::I32 => execute_in::<i32>(dialect, &inputs, policy),
        DType::I64 => execute_in::<i64>(dialect, &inputs, policy),
        DType::U8 => execute_in::<u8>(dialect, &inputs, policy),
        DType::U16 => execute_in::<u16>(dialect, &inputs, policy),
        DType::U32 => execute_in::<u32>(dialect, &inputs, policy),
        DType::U64 => execute_in::<u64>(dialect, &inputs, policy),
        DType::Bool => bail!("no dialect computes in bool"),
    }
}

fn execute_in<T: Element + Storable>(
    dialect: Arc<dyn Dialect>,
    inputs: &CaseInputs<'_>,
    policy: Policy,
) -> Result<AnyTensor> {
    let bias = inputs.bias.map(values_of::<T>).transpose()?;
    let op = ConvTranspose::from_dialect(dialect, view_of::<T>(inputs.filter)?, bias, Limits::default())?;
    let output = op.with_policy(policy).run(view_of(inputs.input)?)?;
    let shape = output.shape().to_vec();
    AnyTensor::new(shape, output.into_vec()).context("the output's shape and values do not agree")
}

fn values_of<T: Storable>(tensor: &AnyTensor) -> Result<&[T]> {
    T::slice(tensor.values()).with_context(|| format!("mixed types: expected {}", T::DTYPE))
}

fn view_of<T: Storable>(tensor: &AnyTensor) -> Result<TensorView<'_, T>> {
    Ok(TensorView::from_slice(tensor.shape(), values_of(tensor)?)?)
}

fn output_shape_values(tensor: &AnyTensor) -> Result<Vec<i64>, SpecError> {
    let values = (0..tensor.values().len()).filter_map(|index| match tensor.values().get(index)? {
        // Whatever does not fit is refused as a size, just as the largest value is.
        Number::Integer(value) => Some(i64::try_from(value).unwrap_or(i64::MAX)),
        Number::Float(_) => None,
    });
    openvino::output_shape(&tensor.tensor_type(), &values.collect::<Vec<_>>())
}
