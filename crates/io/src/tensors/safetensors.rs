//! `.safetensors`: a length, a JSON header, then the values.

use std::collections::BTreeMap;

use outstride_spec::DType;
use serde_json::{Value, json};

use crate::error::FileError;
use crate::model::{Data, DataType, TensorSource};
use crate::node::{FieldError, Node};
use crate::source::Source;
use crate::tensor::AnyTensor;

/// The format's own limit for the header.
const MAX_HEADER: u64 = 100_000_000;

/// An entry of the header that is no tensor.
const METADATA: &str = "__metadata__";

pub(super) fn read(source: &Source) -> Result<BTreeMap<String, TensorSource>, FileError> {
    let length = source.read(0..source.length().min(8))?;
    let length: [u8; 8] = length.try_into().map_err(|length: Vec<u8>| {
        source.malformed("the file", "8 bytes of length and a header", format!("{} bytes", length.len()))
    })?;
    let length = u64::from_le_bytes(length);
    if length > MAX_HEADER || length > source.length() - 8 {
        let expected = format!("a header of at most {MAX_HEADER} bytes, all of them there");
        return Err(source.malformed("byte 0", expected, format!("{length} bytes")));
    }
    let start = 8 + length;
    let header: Value = serde_json::from_slice(&source.read(8..start)?)
        .map_err(|error| source.malformed("the header", "JSON", error))?;
    let mut tensors = BTreeMap::new();
    for (name, node) in Node::root(&header).fields().map_err(|error| in_header(source, error))? {
        if name != METADATA {
            let tensor = tensor(source, start, name, &node).map_err(|error| in_header(source, error))?;
            tensors.insert(name.to_owned(), tensor);
        }
    }
    Ok(tensors)
}

fn in_header(source: &Source, error: FieldError) -> FileError {
    let FieldError { field, problem } = error;
    let place = if field.is_empty() { "the header".to_owned() } else { format!("`{field}` of the header") };
    FileError::Malformed { file: source.path().to_owned(), place, problem }
}

fn tensor(source: &Source, start: u64, name: &str, node: &Node<'_>) -> Result<TensorSource, FieldError> {
    let data_type = data_type(node.required("dtype")?.text()?);
    let size = |node: Node<'_>| usize::try_from(node.integer()?).map_err(|_| node.error("at least 0"));
    let shape = node.required("shape")?.items()?.map(size).collect::<Result<_, _>>()?;
    let offsets = node.required("data_offsets")?;
    let ends = offsets.items()?.map(|end| end.integer()).collect::<Result<Vec<i64>, _>>()?;
    let available = source.length() - start;
    let range = match *ends.as_slice() {
        [begin, end] if 0 <= begin && begin <= end && end as u64 <= available => begin as u64..end as u64,
        _ => return Err(offsets.error(format!("[begin, end] within the {available} bytes of data"))),
    };
    let data = Data::Raw(source.clone(), start + range.start..start + range.end);
    Ok(TensorSource { name: name.to_owned(), data_type, shape, data })
}

fn data_type(name: &str) -> DataType {
    DataType::Known(match name {
        "F16" => DType::F16,
        "BF16" => DType::Bf16,
        "F32" => DType::F32,
        "F64" => DType::F64,
        "I8" => DType::I8,
        "I16" => DType::I16,
        "I32" => DType::I32,
        "I64" => DType::I64,
        "U8" => DType::U8,
        "U16" => DType::U16,
        "U32" => DType::U32,
        "U64" => DType::U64,
        "BOOL" => DType::Bool,
        _ => return DataType::Other("of this safetensors file"),
    })
}

/// The bytes of a file.
pub(super) fn write(tensors: &[(&str, &AnyTensor)]) -> Vec<u8> {
    let mut header = serde_json::Map::new();
    let mut data = Vec::new();
    for (name, tensor) in tensors {
        let begin = data.len();
        data.extend(tensor.values().to_le_bytes());
        let dtype = tensor.values().dtype().name().to_uppercase();
        let entry = json!({"dtype": dtype, "shape": tensor.shape(), "data_offsets": [begin, data.len()]});
        header.insert((*name).to_owned(), entry);
    }
    let mut header = Value::Object(header).to_string();
    // The values begin at a multiple of 8 bytes.
    header.extend(std::iter::repeat_n(' ', header.len().next_multiple_of(8) - header.len()));
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}
