//! numpy's `.npy`: a line of Python that says type, order and shape, then the values.

use std::ops::Range;

use outstride_spec::DType;

use crate::error::FileError;
use crate::model::{Data, DataType, TensorSource};
use crate::source::Source;
use crate::tensor::AnyTensor;

pub(super) const MAGIC: &[u8] = b"\x93NUMPY";

/// Headers are a line; numpy itself refuses longer ones.
const MAX_HEADER: u64 = 1 << 16;

/// What the header says.
struct Header {
    dtype: DType,
    big_endian: bool,
    fortran_order: bool,
    shape: Vec<usize>,
}

/// The tensor of a file, of which only the header is read, unless its values are in an order that is not ours.
pub(super) fn read(source: &Source) -> Result<TensorSource, FileError> {
    let (header, data) = header(source)?;
    let Header { dtype, shape, .. } = &header;
    let tensor = TensorSource {
        name: String::new(),
        data_type: DataType::Known(*dtype),
        shape: shape.clone(),
        data: Data::Raw(source.clone(), data.clone()),
    };
    let found = data.end - data.start;
    if tensor.byte_length(*dtype) != Some(found) {
        let expected = format!("{dtype} of shape {shape:?} in as many bytes");
        return Err(source.malformed("the data", expected, format!("{found} bytes")));
    }
    if !header.big_endian && (!header.fortran_order || shape.len() < 2) {
        return Ok(tensor);
    }
    let mut bytes = source.read(data)?;
    if header.big_endian {
        bytes.chunks_exact_mut(dtype.size()).for_each(<[u8]>::reverse);
    }
    if header.fortran_order {
        bytes = row_major(&bytes, shape, dtype.size());
    }
    let values = AnyTensor::from_le_bytes(*dtype, shape.clone(), &bytes);
    let values =
        values.ok_or_else(|| source.malformed("the data", format!("values of {dtype}"), "other bytes"))?;
    Ok(TensorSource::from_values("", values))
}

fn header(source: &Source) -> Result<(Header, Range<u64>), FileError> {
    let fixed = source.read(0..source.length().min(12))?;
    let (length, start) = match *fixed.as_slice() {
        [_, _, _, _, _, _, 1, _, a, b, ..] => (u64::from(u16::from_le_bytes([a, b])), 10),
        [_, _, _, _, _, _, 2 | 3, _, a, b, c, d] => (u64::from(u32::from_le_bytes([a, b, c, d])), 12),
        [_, _, _, _, _, _, version, ..] => {
            return Err(source.malformed("byte 6", "the format's version 1, 2 or 3", version));
        }
        _ => return Err(source.malformed("the file", "a header of at least 10 bytes", fixed.len())),
    };
    if length > MAX_HEADER || start + length > source.length() {
        let expected = format!("a header of at most {MAX_HEADER} bytes, all of them there");
        return Err(source.malformed("byte 8", expected, format!("{length} bytes")));
    }
    let bytes = source.read(start..start + length)?;
    let text = String::from_utf8_lossy(&bytes);
    let header =
        parse(text.trim()).map_err(|(expected, found)| source.malformed("the header", expected, found))?;
    Ok((header, start + length..source.length()))
}

type Mismatch = (String, String);

/// Parses `{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }`.
fn parse(text: &str) -> Result<Header, Mismatch> {
    let value = |key: &str| {
        let quoted = [format!("'{key}'"), format!("\"{key}\"")];
        let after = quoted.iter().find_map(|key| text.split_once(key.as_str())).map(|(_, after)| after);
        let after = after.and_then(|after| after.trim_start().strip_prefix(':')).map(str::trim_start);
        after.ok_or_else(|| (format!("a dictionary with '{key}'"), brief(text)))
    };
    let descr = value("descr")?;
    let (big_endian, dtype) = match descr.as_bytes().first() {
        Some(&quote @ (b'\'' | b'"')) => {
            let word = descr[1..].split(quote as char).next().unwrap_or_default();
            data_type(word)
                .ok_or_else(|| ("a type such as '<f4'".to_owned(), format!("'{}'", brief(word))))?
        }
        _ => return Err(("one type for all values".into(), brief(descr))),
    };
    let order = value("fortran_order")?;
    let fortran_order = match (order.starts_with("True"), order.starts_with("False")) {
        (true, _) => true,
        (_, true) => false,
        _ => return Err(("True or False for 'fortran_order'".into(), brief(order))),
    };
    let shape = value("shape")?;
    let inside = shape.strip_prefix('(').and_then(|rest| rest.split_once(')')).map(|(inside, _)| inside);
    let wrong = || ("sizes such as (2, 3) for 'shape'".to_owned(), brief(shape));
    let sizes = inside.ok_or_else(wrong)?.split(',').map(str::trim).filter(|size| !size.is_empty());
    let shape = sizes.map(|size| size.parse().map_err(|_| wrong())).collect::<Result<_, _>>()?;
    Ok(Header { dtype, big_endian, fortran_order, shape })
}

fn brief(text: &str) -> String {
    text.chars().take(60).collect()
}

/// The byte order and element type of a word such as `<f4`.
fn data_type(word: &str) -> Option<(bool, DType)> {
    let big_endian = word.starts_with('>');
    let kind = word.trim_start_matches(['<', '>', '|', '=']);
    let dtype = match kind {
        "f2" => DType::F16,
        // numpy has no bf16; extensions write it as two bytes of no type.
        "V2" => DType::Bf16,
        "f4" => DType::F32,
        "f8" => DType::F64,
        "i1" => DType::I8,
        "i2" => DType::I16,
        "i4" => DType::I32,
        "i8" => DType::I64,
        "u1" => DType::U8,
        "u2" => DType::U16,
        "u4" => DType::U32,
        "u8" => DType::U64,
        "b1" => DType::Bool,
        _ => return None,
    };
    Some((big_endian && dtype.size() > 1, dtype))
}

/// Values of which the first axis runs fastest, in the order in which the last one does.
fn row_major(bytes: &[u8], shape: &[usize], size: usize) -> Vec<u8> {
    let mut ordered = Vec::with_capacity(bytes.len());
    let mut index = vec![0; shape.len()];
    for _ in 0..bytes.len() / size {
        let position = index.iter().zip(shape).rev().fold(0, |position, (&i, &axis)| position * axis + i);
        ordered.extend_from_slice(&bytes[position * size..(position + 1) * size]);
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            if index[axis] < shape[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
    ordered
}

/// The bytes of a file.
pub(super) fn write(tensor: &AnyTensor) -> Vec<u8> {
    let kind = match tensor.values().dtype() {
        DType::F16 => "<f2",
        DType::Bf16 => "<V2",
        DType::F32 => "<f4",
        DType::F64 => "<f8",
        DType::I8 => "|i1",
        DType::I16 => "<i2",
        DType::I32 => "<i4",
        DType::I64 => "<i8",
        DType::U8 => "|u1",
        DType::U16 => "<u2",
        DType::U32 => "<u4",
        DType::U64 => "<u8",
        DType::Bool => "|b1",
    };
    let sizes: String = tensor.shape().iter().map(|size| format!("{size}, ")).collect();
    let sizes = if tensor.shape().len() == 1 { sizes.trim_end() } else { sizes.trim_end_matches(", ") };
    let mut header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({sizes}), }}");
    // The values begin at a multiple of 64 bytes.
    let padding = 63 - (10 + header.len()) % 64;
    header.extend(std::iter::repeat_n(' ', padding));
    header.push('\n');
    let mut bytes = MAGIC.to_vec();
    bytes.extend([1, 0]);
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(tensor.values().to_le_bytes());
    bytes
}
