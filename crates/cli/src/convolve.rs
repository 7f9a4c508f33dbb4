//! One call of the operator on tensors whose type is known only at run time.

use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use outstride::{
    ConvTranspose, DType, Dialect, Element, Limits, Operands, Policy, SpecError, TensorView, bf16, f16,
    openvino,
};
use outstride_io::{AnyTensor, Number, Storable};

/// The tensors of a call, in the dialect's layouts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tensors<'a> {
    pub(crate) input: &'a AnyTensor,
    pub(crate) filter: &'a AnyTensor,
    pub(crate) bias: Option<&'a AnyTensor>,
}

impl<'a> Tensors<'a> {
    pub(crate) fn operands(&self) -> Operands<'a> {
        let mut operands = Operands::new(self.input.tensor_type(), self.filter.tensor_type());
        operands.bias = self.bias.map(AnyTensor::tensor_type);
        operands
    }
}

/// Calls `$function::<T>($arguments)` with the element type that a [`DType`] names.
macro_rules! with_element {
    ($dtype:expr, $function:ident($($argument:expr),* $(,)?)) => {
        match $dtype {
            DType::F16 => $function::<f16>($($argument),*),
            DType::Bf16 => $function::<bf16>($($argument),*),
            DType::F32 => $function::<f32>($($argument),*),
            DType::F64 => $function::<f64>($($argument),*),
            DType::I8 => $function::<i8>($($argument),*),
            DType::I16 => $function::<i16>($($argument),*),
            DType::I32 => $function::<i32>($($argument),*),
            DType::I64 => $function::<i64>($($argument),*),
            DType::U8 => $function::<u8>($($argument),*),
            DType::U16 => $function::<u16>($($argument),*),
            DType::U32 => $function::<u32>($($argument),*),
            DType::U64 => $function::<u64>($($argument),*),
            DType::Bool => bail!("no dialect computes in bool"),
        }
    };
}
pub(crate) use with_element;

/// The call's result, or why it was refused.
pub(crate) fn convolve(
    dialect: Arc<dyn Dialect>,
    tensors: &Tensors<'_>,
    policy: Policy,
) -> Result<AnyTensor> {
    // The types are checked as they stand in the file: the operator below knows only one.
    let operands = tensors.operands();
    dialect.resolve(&operands, policy)?;
    with_element!(operands.input.dtype, convolve_in(dialect, tensors, policy))
}

fn convolve_in<T: Element + Storable>(
    dialect: Arc<dyn Dialect>,
    tensors: &Tensors<'_>,
    policy: Policy,
) -> Result<AnyTensor> {
    let bias = tensors.bias.map(values_of::<T>).transpose()?;
    let op = ConvTranspose::from_dialect(dialect, view_of::<T>(tensors.filter)?, bias, Limits::default())?;
    let output = op.with_policy(policy).run(view_of(tensors.input)?)?;
    let shape = output.shape().to_vec();
    AnyTensor::new(shape, output.into_vec()).context("the output's shape and values do not agree")
}

/// The values, where they are of this type.
pub(crate) fn values_of<T: Storable>(tensor: &AnyTensor) -> Result<&[T]> {
    T::slice(tensor.values()).with_context(|| format!("mixed types: expected {}", T::DTYPE))
}

fn view_of<T: Storable>(tensor: &AnyTensor) -> Result<TensorView<'_, T>> {
    Ok(TensorView::from_slice(tensor.shape(), values_of(tensor)?)?)
}

/// The sizes in OpenVINO's third input.
pub(crate) fn output_shape_values(tensor: &AnyTensor) -> Result<Vec<i64>, SpecError> {
    let values = (0..tensor.values().len()).filter_map(|index| match tensor.values().get(index)? {
        // Whatever does not fit is refused as a size, just as the largest value is.
        Number::Integer(value) => Some(i64::try_from(value).unwrap_or(i64::MAX)),
        Number::Float(_) => None,
    });
    openvino::output_shape(&tensor.tensor_type(), &values.collect::<Vec<_>>())
}
