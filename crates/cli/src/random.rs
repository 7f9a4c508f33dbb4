//! Values that look random and are the same on every machine.

use anyhow::{Context as _, Result, bail};
use outstride::{DType, Limits, bf16, f16};
use outstride_io::{AnyTensor, Storable};

/// A tensor of values that depend on the seed and the name alone: floats in −1..1, integers of a few bits.
pub(crate) fn tensor(seed: u64, name: &str, dtype: DType, shape: &[usize]) -> Result<AnyTensor> {
    let limit = Limits::default().max_bytes;
    let count = shape.iter().try_fold(1usize, |count, &size| count.checked_mul(size));
    let Some(count) = count.filter(|&count| (count as u64).saturating_mul(dtype.size() as u64) <= limit)
    else {
        bail!("`{name}` of shape {shape:?} needs more than {limit} bytes");
    };
    let mut state = name.bytes().fold(seed, |state, byte| mix(state ^ u64::from(byte)));
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        // 24 bits fill an f32 exactly.
        (mix(state) >> 40) as f64 / f64::from(1 << 23) - 1.0
    };
    let mut fill = |spread: f64| (0..count).map(|_| next() * spread).collect::<Vec<f64>>();
    let tensor = match dtype {
        DType::F16 => of(shape, fill(1.0), f16::from_f64),
        DType::Bf16 => of(shape, fill(1.0), bf16::from_f64),
        DType::F32 => of(shape, fill(1.0), |value| value as f32),
        DType::F64 => of(shape, fill(1.0), |value| value),
        DType::I8 => of(shape, fill(8.0), |value| value as i8),
        DType::I16 => of(shape, fill(8.0), |value| value as i16),
        DType::I32 => of(shape, fill(8.0), |value| value as i32),
        DType::I64 => of(shape, fill(8.0), |value| value as i64),
        DType::U8 => of(shape, fill(8.0), |value| value.abs() as u8),
        DType::U16 => of(shape, fill(8.0), |value| value.abs() as u16),
        DType::U32 => of(shape, fill(8.0), |value| value.abs() as u32),
        DType::U64 => of(shape, fill(8.0), |value| value.abs() as u64),
        DType::Bool => of(shape, fill(1.0), |value| value >= 0.0),
    };
    tensor.context("a shape and its values do not agree")
}

fn of<T: Storable>(shape: &[usize], values: Vec<f64>, convert: fn(f64) -> T) -> Option<AnyTensor> {
    AnyTensor::new(shape.to_vec(), values.into_iter().map(convert).collect())
}

/// The finisher of SplitMix64: every bit of the state reaches every bit of the result.
fn mix(mut state: u64) -> u64 {
    state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use outstride_io::Number;

    #[test]
    fn values_depend_on_seed_and_name_and_fill_their_range() {
        let of = |seed, name| tensor(seed, name, DType::F32, &[1000]).unwrap();
        assert_eq!(of(1, "x"), of(1, "x"));
        assert_ne!(of(1, "x"), of(2, "x"));
        assert_ne!(of(1, "x"), of(1, "y"));
        let values: Vec<f64> = (0..1000)
            .filter_map(|index| match of(1, "x").values().get(index)? {
                Number::Float(value) => Some(value),
                Number::Integer(_) => None,
            })
            .collect();
        assert!(values.iter().all(|value| (-1.0..1.0).contains(value)));
        let mean = values.iter().sum::<f64>() / 1000.0;
        assert!(mean.abs() < 0.1, "{mean}");
    }

    #[test]
    fn every_type_can_be_generated_and_sizes_beyond_memory_are_refused() {
        for dtype in DType::ALL {
            assert_eq!(tensor(0, "x", dtype, &[2, 3]).unwrap().values().dtype(), dtype);
        }
        assert!(tensor(0, "x", DType::F32, &[usize::MAX, 2]).is_err());
        assert!(tensor(0, "x", DType::F32, &[1 << 40]).is_err());
    }
}
