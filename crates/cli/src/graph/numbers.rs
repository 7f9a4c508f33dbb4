//! Between tensors of any type and plain numbers.

use anyhow::{Context as _, Result};
use outstride::{DType, bf16, f16};
use outstride_io::{AnyTensor, Storable};

/// The values as doubles, which hold every type's values exactly but those of large 64-bit integers.
pub(super) fn to_f64(tensor: &AnyTensor) -> Vec<f64> {
    (0..tensor.values().len()).filter_map(|index| tensor.values().get(index)).map(f64::from).collect()
}

/// The one value of a tensor.
pub(super) fn scalar(tensor: &AnyTensor) -> Result<f64> {
    match to_f64(tensor).as_slice() {
        [one] => Ok(*one),
        values => anyhow::bail!("expected one value, got {}", values.len()),
    }
}

/// A tensor of this type: floats are rounded to nearest, fractions of integers are cut off, and what an integer type
/// cannot hold becomes the nearest value that it can.
pub(super) fn from_f64(dtype: DType, shape: &[usize], values: Vec<f64>) -> Result<AnyTensor> {
    fn of<T: Storable>(shape: &[usize], values: Vec<f64>, convert: fn(f64) -> T) -> Option<AnyTensor> {
        AnyTensor::new(shape.to_vec(), values.into_iter().map(convert).collect())
    }
    let tensor = match dtype {
        DType::F16 => of(shape, values, f16::from_f64),
        DType::Bf16 => of(shape, values, bf16::from_f64),
        DType::F32 => of(shape, values, |value| value as f32),
        DType::F64 => of(shape, values, |value| value),
        DType::I8 => of(shape, values, |value| value as i8),
        DType::I16 => of(shape, values, |value| value as i16),
        DType::I32 => of(shape, values, |value| value as i32),
        DType::I64 => of(shape, values, |value| value as i64),
        DType::U8 => of(shape, values, |value| value as u8),
        DType::U16 => of(shape, values, |value| value as u16),
        DType::U32 => of(shape, values, |value| value as u32),
        DType::U64 => of(shape, values, |value| value as u64),
        DType::Bool => of(shape, values, |value| value != 0.0),
    };
    tensor.context("a shape and its values do not agree")
}
