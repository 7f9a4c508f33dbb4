//! TensorProto: type and shape first, values on demand.

use std::ops::Range;

use half::{bf16, f16};
use outstride_spec::DType;

use super::wire::{Reader, Value};
use crate::error::FileError;
use crate::model::{Data, DataType, External, TensorSource};
use crate::tensor::{AnyTensor, element_count};

const EXTERNAL: i64 = 1;

/// The element type of a number in the file, where it is one that is read here.
pub(super) fn dtype(number: i64) -> Option<DType> {
    Some(match number {
        1 => DType::F32,
        2 => DType::U8,
        3 => DType::I8,
        4 => DType::U16,
        5 => DType::I16,
        6 => DType::I32,
        7 => DType::I64,
        9 => DType::Bool,
        10 => DType::F16,
        11 => DType::F64,
        12 => DType::U32,
        13 => DType::U64,
        16 => DType::Bf16,
        _ => return None,
    })
}

/// The number that stands for an element type in files.
pub(super) fn number(dtype: DType) -> u64 {
    match dtype {
        DType::F32 => 1,
        DType::U8 => 2,
        DType::I8 => 3,
        DType::U16 => 4,
        DType::I16 => 5,
        DType::I32 => 6,
        DType::I64 => 7,
        DType::Bool => 9,
        DType::F16 => 10,
        DType::F64 => 11,
        DType::U32 => 12,
        DType::U64 => 13,
        DType::Bf16 => 16,
    }
}

fn data_type(number: i64) -> DataType {
    match dtype(number) {
        Some(dtype) => DataType::Known(dtype),
        None => DataType::Other(match number {
            0 => "undefined",
            8 => "string",
            14 => "complex64",
            15 => "complex128",
            17..=20 => "float8",
            21 => "uint4",
            22 => "int4",
            23 => "float4",
            _ => "unknown",
        }),
    }
}

/// Type, shape, name and place of a tensor.
pub(super) fn header(reader: &mut Reader, message: Range<u64>) -> Result<TensorSource, FileError> {
    let mut rest = message.clone();
    let mut name = String::new();
    let (mut dims, mut kind, mut location) = (Vec::new(), 0, 0);
    let mut entries = Vec::new();
    while let Some((number, value)) = reader.field(&mut rest)? {
        match number {
            1 => reader.ints(&value, &mut dims)?,
            2 => kind = reader.int(&value)?,
            8 => name = reader.text(&value)?,
            13 => {
                let message = reader.bytes(&value)?;
                entries.push(entry(reader, message)?);
            }
            14 => location = reader.int(&value)?,
            _ => {}
        }
    }
    let size = |(axis, &dim): (usize, &i64)| {
        usize::try_from(dim).map_err(|_| {
            let place = format!("tensor `{name}`: dims[{axis}]");
            reader.source.malformed(place, "at least 0", dim)
        })
    };
    let shape = dims.iter().enumerate().map(size).collect::<Result<_, _>>()?;
    let data = if location == EXTERNAL {
        Data::External(external(reader, &name, &entries)?)
    } else {
        Data::Proto(reader.source.clone(), message)
    };
    Ok(TensorSource { name, data_type: data_type(kind), shape, data })
}

fn entry(reader: &mut Reader, mut rest: Range<u64>) -> Result<(String, String), FileError> {
    let (mut key, mut text) = (String::new(), String::new());
    while let Some((number, value)) = reader.field(&mut rest)? {
        match number {
            1 => key = reader.text(&value)?,
            2 => text = reader.text(&value)?,
            _ => {}
        }
    }
    Ok((key, text))
}

fn external(reader: &Reader, name: &str, entries: &[(String, String)]) -> Result<External, FileError> {
    let get = |key: &str| entries.iter().find(|(name, _)| name == key).map(|(_, text)| text.as_str());
    let number = |key: &str| {
        let parse = |text: &str| {
            let place = format!("tensor `{name}`: external_data.{key}");
            text.parse().map_err(|_| reader.source.malformed(place, "a number of bytes", format!("`{text}`")))
        };
        get(key).map(parse).transpose()
    };
    let Some(location) = get("location") else {
        let place = format!("tensor `{name}`: external_data");
        return Err(reader.source.malformed(place, "a list with `location`", "none"));
    };
    Ok(External {
        model: reader.source.path().to_owned(),
        location: location.to_owned(),
        offset: number("offset")?.unwrap_or(0),
        length: number("length")?,
    })
}

/// The values of a tensor, from its bytes or from its list of typed values.
pub(super) fn load(
    reader: &mut Reader,
    message: Range<u64>,
    tensor: &TensorSource,
    dtype: DType,
) -> Result<AnyTensor, FileError> {
    let place = format!("tensor `{}`", tensor.name);
    let mut rest = message;
    let mut typed = Typed::default();
    while let Some((number, value)) = reader.field(&mut rest)? {
        if number == 9 {
            typed.raw = Some(reader.bytes(&value)?);
        } else {
            typed.add(reader, number, &value, dtype)?;
        }
    }
    if let Some(raw) = typed.raw.clone().filter(|raw| raw.start < raw.end) {
        let expected = tensor.byte_length(dtype);
        let found = raw.end - raw.start;
        if expected != Some(found) {
            let expected = format!("raw_data for {dtype} of shape {:?}", tensor.shape);
            return Err(reader.source.malformed(place, expected, format!("{found} bytes")));
        }
        let bytes = reader.source.read(raw)?;
        let values = AnyTensor::from_le_bytes(dtype, tensor.shape.clone(), &bytes);
        return values
            .ok_or_else(|| reader.source.malformed(place, format!("values of {dtype}"), "other bytes"));
    }
    let found = typed.length();
    if element_count(&tensor.shape) != Some(found) {
        let expected = format!("{dtype} of shape {:?}", tensor.shape);
        return Err(reader.source.malformed(place, expected, format!("{found} values")));
    }
    let values = typed.tensor(dtype, tensor.shape.clone());
    values.ok_or_else(|| reader.source.malformed(place, format!("values that {dtype} can hold"), "others"))
}

/// The lists that a TensorProto may keep its values in.
#[derive(Default)]
struct Typed {
    raw: Option<Range<u64>>,
    floats: Vec<f32>,
    doubles: Vec<f64>,
    ints: Vec<i64>,
}

impl Typed {
    fn add(
        &mut self,
        reader: &mut Reader,
        number: u64,
        value: &Value,
        dtype: DType,
    ) -> Result<(), FileError> {
        match (number, dtype) {
            (4, DType::F32) => reader.floats(value, &mut self.floats),
            (10, DType::F64) => reader.doubles(value, &mut self.doubles),
            (7, DType::I64) | (11, DType::U32 | DType::U64) => reader.ints(value, &mut self.ints),
            (5, dtype) if dtype.size() <= 2 || dtype == DType::I32 => reader.ints(value, &mut self.ints),
            _ => Ok(()),
        }
    }

    fn length(&self) -> usize {
        self.floats.len() + self.doubles.len() + self.ints.len()
    }

    fn tensor(self, dtype: DType, shape: Vec<usize>) -> Option<AnyTensor> {
        /// Each integer as a narrower one.
        fn narrow<T: TryFrom<i64>>(ints: &[i64]) -> Option<Vec<T>> {
            ints.iter().map(|&int| T::try_from(int).ok()).collect()
        }
        match dtype {
            DType::F32 => AnyTensor::new(shape, self.floats),
            DType::F64 => AnyTensor::new(shape, self.doubles),
            DType::I64 => AnyTensor::new(shape, self.ints),
            // A 64-bit varint holds the bits of an unsigned number as well.
            DType::U64 => AnyTensor::new(shape, self.ints.iter().map(|&int| int as u64).collect()),
            DType::U32 => AnyTensor::new(shape, narrow::<u32>(&self.ints)?),
            DType::I32 => AnyTensor::new(shape, narrow::<i32>(&self.ints)?),
            DType::I16 => AnyTensor::new(shape, narrow::<i16>(&self.ints)?),
            DType::I8 => AnyTensor::new(shape, narrow::<i8>(&self.ints)?),
            DType::U16 => AnyTensor::new(shape, narrow::<u16>(&self.ints)?),
            DType::U8 => AnyTensor::new(shape, narrow::<u8>(&self.ints)?),
            DType::F16 => {
                let bits = narrow::<u16>(&self.ints)?;
                AnyTensor::new(shape, bits.into_iter().map(f16::from_bits).collect())
            }
            DType::Bf16 => {
                let bits = narrow::<u16>(&self.ints)?;
                AnyTensor::new(shape, bits.into_iter().map(bf16::from_bits).collect())
            }
            DType::Bool => AnyTensor::new(shape, self.ints.iter().map(|&int| int != 0).collect()),
        }
    }
}
