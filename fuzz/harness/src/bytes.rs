//! Numbers and words from the fuzzer's bytes.

use arbitrary::{Result, Unstructured};
use outstride::{AttributeValue, DType};

/// True in one of `n` cases, and false once the bytes have run out.
pub(crate) fn one_in(bytes: &mut Unstructured<'_>, n: u8) -> Result<bool> {
    Ok(bytes.int_in_range(0..=n - 1)? == n - 1)
}

/// An integer of any kind: mostly small, sometimes at an edge, sometimes anything.
pub(crate) fn integer(bytes: &mut Unstructured<'_>) -> Result<i64> {
    const EDGES: [i64; 10] = [
        i64::MIN,
        i64::MIN + 1,
        i64::MIN / 2,
        -(1 << 57),
        i32::MAX as i64,
        1 << 32,
        1 << 57,
        (1 << 57) - 1,
        i64::MAX - 1,
        i64::MAX,
    ];
    Ok(match bytes.int_in_range(0..=7)? {
        0..=4 => bytes.int_in_range(-3..=12)?,
        5 => *bytes.choose(&EDGES)?,
        6 => 1 << bytes.int_in_range(0..=62)?,
        _ => bytes.arbitrary()?,
    })
}

/// A size of any kind.
pub(crate) fn size(bytes: &mut Unstructured<'_>) -> Result<usize> {
    Ok(match bytes.int_in_range(0..=7)? {
        0..=4 => bytes.int_in_range(0..=12)?,
        5 => usize::MAX >> bytes.int_in_range(0..=63)?,
        6 => 1 << bytes.int_in_range(0..=63)?,
        _ => bytes.arbitrary()?,
    })
}

/// Any element type.
pub(crate) fn dtype(bytes: &mut Unstructured<'_>) -> Result<DType> {
    Ok(*bytes.choose(&DType::ALL)?)
}

/// A word that some dialect knows, or a few characters of anything.
pub(crate) fn word(bytes: &mut Unstructured<'_>) -> Result<String> {
    const WORDS: [&str; 46] = [
        "",
        "NOTSET",
        "SAME_UPPER",
        "SAME_LOWER",
        "VALID",
        "SAME",
        "None",
        "none",
        "explicit",
        "Explicit",
        "same_upper",
        "same_lower",
        "valid",
        "notset",
        "NXC",
        "NCX",
        "nxc",
        "XIO",
        "OIX",
        "XOI",
        "IOX",
        "OXI",
        "NWC",
        "NCW",
        "NHWC",
        "NCHW",
        "NDHWC",
        "NCDHW",
        "Relu",
        "Tanh",
        "Sigmoid",
        "HardSwish",
        "LeakyRelu",
        "Clip",
        "HardSigmoid",
        "Elu",
        "zeros",
        "reflect",
        "NHC",
        "HIO",
        "NHWDC",
        "HWIO",
        "HWOI",
        "HWDIO",
        "NCH",
        "CHN",
    ];
    if one_in(bytes, 4)? {
        let length = bytes.int_in_range(0..=8)?;
        Ok(String::from_utf8_lossy(bytes.bytes(length.min(bytes.len()))?).into_owned())
    } else {
        Ok((*bytes.choose(&WORDS)?).to_owned())
    }
}

/// An attribute's value of any type, lists up to two deep.
pub(crate) fn value(bytes: &mut Unstructured<'_>) -> Result<AttributeValue> {
    nested_value(bytes, 2)
}

fn nested_value(bytes: &mut Unstructured<'_>, depth: u8) -> Result<AttributeValue> {
    Ok(match bytes.int_in_range(0..=if depth > 0 { 7 } else { 3 })? {
        0 => AttributeValue::Int(integer(bytes)?),
        1 => AttributeValue::Text(word(bytes)?),
        2 => AttributeValue::Float(bytes.arbitrary()?),
        3 => AttributeValue::Bool(bytes.arbitrary()?),
        4 | 5 => {
            let length = bytes.int_in_range(0..=8)?;
            AttributeValue::List(
                (0..length).map(|_| Ok(AttributeValue::Int(integer(bytes)?))).collect::<Result<_>>()?,
            )
        }
        _ => {
            let length = bytes.int_in_range(0..=4)?;
            AttributeValue::List((0..length).map(|_| nested_value(bytes, depth - 1)).collect::<Result<_>>()?)
        }
    })
}
