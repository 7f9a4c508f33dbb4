//! Tensors whose element type is known only once a file has been read.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use half::{bf16, f16};
use outstride_spec::{DType, TensorType};
use serde_json::Value;

use crate::node::{FieldError, Node};

/// A tensor in row-major order. Its shape and its values agree: only this crate makes one from outside data.
#[derive(Clone, Debug, PartialEq)]
pub struct AnyTensor {
    shape: Vec<usize>,
    values: Values,
}

/// One value of a tensor, wide enough to hold any of them exactly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// Of one of the floating-point types.
    Float(f64),
    /// Of one of the integer types; booleans are 0 and 1.
    Integer(i128),
}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Number::Float(value) => write!(f, "{value}"),
            Number::Integer(value) => write!(f, "{value}"),
        }
    }
}

impl From<Number> for f64 {
    /// The nearest double.
    fn from(number: Number) -> Self {
        match number {
            Number::Float(value) => value,
            Number::Integer(value) => value as f64,
        }
    }
}

/// A type that tensors in files can hold.
pub trait Storable: Copy {
    /// The type's name.
    const DTYPE: DType;

    /// The values as this type, or `None` if they are of another.
    fn slice(values: &Values) -> Option<&[Self]>;

    /// Values of this type.
    fn values(values: Vec<Self>) -> Values;

    /// The value a JSON number stands for; `None` if the type cannot hold it.
    fn from_json(value: &Value) -> Option<Self>;

    /// The value of exactly [`DType::size`] little-endian bytes; `None` if they are no value of the type.
    fn from_le_bytes(bytes: &[u8]) -> Option<Self>;

    /// Appends the value's little-endian bytes.
    fn write_le_bytes(self, bytes: &mut Vec<u8>);

    /// The value, widened.
    fn number(self) -> Number;
}

macro_rules! storable {
    ($($variant:ident: $type:ty, $from_json:expr, $from_bytes:expr, $to_bytes:expr, $number:expr;)*) => {
        /// The values of a tensor, by element type.
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs)]
        pub enum Values {
            $($variant(Vec<$type>),)*
        }

        impl Values {
            /// The element type.
            pub fn dtype(&self) -> DType {
                match self { $(Values::$variant(_) => DType::$variant,)* }
            }

            /// How many there are.
            pub fn len(&self) -> usize {
                match self { $(Values::$variant(values) => values.len(),)* }
            }

            /// One of them, or `None` beyond the end.
            pub fn get(&self, index: usize) -> Option<Number> {
                match self { $(Values::$variant(values) => values.get(index).map(|value| value.number()),)* }
            }

            fn read_json(dtype: DType, data: &Node<'_>) -> Result<Values, FieldError> {
                match dtype { $(DType::$variant => read_json::<$type>(data),)* }
            }

            fn read_bytes(dtype: DType, bytes: &[u8]) -> Option<Values> {
                match dtype { $(DType::$variant => read_bytes::<$type>(bytes),)* }
            }

            /// The values' little-endian bytes, one after the other.
            pub fn to_le_bytes(&self) -> Vec<u8> {
                let mut bytes = Vec::with_capacity(self.len() * self.dtype().size());
                match self {
                    $(Values::$variant(values) => values.iter().for_each(|value| value.write_le_bytes(&mut bytes)),)*
                }
                bytes
            }
        }

        $(impl Storable for $type {
            const DTYPE: DType = DType::$variant;

            fn slice(values: &Values) -> Option<&[Self]> {
                if let Values::$variant(values) = values { Some(values) } else { None }
            }

            fn values(values: Vec<Self>) -> Values {
                Values::$variant(values)
            }

            fn from_json(value: &Value) -> Option<Self> {
                $from_json(value)
            }

            fn from_le_bytes(bytes: &[u8]) -> Option<Self> {
                bytes.try_into().ok().and_then($from_bytes)
            }

            fn write_le_bytes(self, bytes: &mut Vec<u8>) {
                bytes.extend($to_bytes(self));
            }

            fn number(self) -> Number {
                $number(self)
            }
        })*
    };
}

storable! {
    F16: f16, |value: &Value| Some(f16::from_f64(value.as_f64()?)).filter(|float| float.is_finite()),
        |bytes| Some(f16::from_le_bytes(bytes)), f16::to_le_bytes, |value: f16| Number::Float(value.to_f64());
    Bf16: bf16, |value: &Value| Some(bf16::from_f64(value.as_f64()?)).filter(|float| float.is_finite()),
        |bytes| Some(bf16::from_le_bytes(bytes)), bf16::to_le_bytes, |value: bf16| Number::Float(value.to_f64());
    F32: f32, |value: &Value| Some(value.as_f64()? as f32).filter(|float| float.is_finite()),
        |bytes| Some(f32::from_le_bytes(bytes)), f32::to_le_bytes, |value| Number::Float(f64::from(value));
    F64: f64, Value::as_f64, |bytes| Some(f64::from_le_bytes(bytes)), f64::to_le_bytes, Number::Float;
    I8: i8, integer, |bytes| Some(i8::from_le_bytes(bytes)), i8::to_le_bytes, widen;
    I16: i16, integer, |bytes| Some(i16::from_le_bytes(bytes)), i16::to_le_bytes, widen;
    I32: i32, integer, |bytes| Some(i32::from_le_bytes(bytes)), i32::to_le_bytes, widen;
    I64: i64, integer, |bytes| Some(i64::from_le_bytes(bytes)), i64::to_le_bytes, widen;
    U8: u8, integer, |bytes| Some(u8::from_le_bytes(bytes)), u8::to_le_bytes, widen;
    U16: u16, integer, |bytes| Some(u16::from_le_bytes(bytes)), u16::to_le_bytes, widen;
    U32: u32, integer, |bytes| Some(u32::from_le_bytes(bytes)), u32::to_le_bytes, widen;
    U64: u64, integer, |bytes| Some(u64::from_le_bytes(bytes)), u64::to_le_bytes, widen;
    Bool: bool, |value: &Value| value.as_bool().or_else(|| truth(integer(value)?)),
        |bytes| truth(u8::from_le_bytes(bytes)), |value| [u8::from(value)], |value| Number::Integer(i128::from(value));
}

fn integer<T: TryFrom<i64> + TryFrom<u64>>(value: &Value) -> Option<T> {
    match value.as_i64() {
        Some(integer) => integer.try_into().ok(),
        None => value.as_u64()?.try_into().ok(),
    }
}

fn widen(value: impl Into<i128>) -> Number {
    Number::Integer(value.into())
}

fn truth(value: u8) -> Option<bool> {
    match value {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

fn read_json<T: Storable>(data: &Node<'_>) -> Result<Values, FieldError> {
    let convert = |(index, value)| {
        let wrong = || data.item(index, value).error(format!("a value of type {}", T::DTYPE));
        T::from_json(value).ok_or_else(wrong)
    };
    data.list()?.iter().enumerate().map(convert).collect::<Result<_, _>>().map(T::values)
}

fn read_bytes<T: Storable>(bytes: &[u8]) -> Option<Values> {
    bytes.chunks_exact(T::DTYPE.size()).map(T::from_le_bytes).collect::<Option<_>>().map(T::values)
}

impl Values {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl AnyTensor {
    /// A tensor of these values in row-major order, or `None` if the shape asks for another number of them.
    ///
    /// ```
    /// use outstride_io::AnyTensor;
    ///
    /// assert!(AnyTensor::new(vec![2, 3], vec![0i8; 6]).is_some());
    /// assert!(AnyTensor::new(vec![2, 3], vec![0i8; 5]).is_none());
    /// ```
    pub fn new<T: Storable>(shape: Vec<usize>, values: Vec<T>) -> Option<Self> {
        let agree = element_count(&shape) == Some(values.len());
        agree.then(|| AnyTensor { shape, values: T::values(values) })
    }

    /// A tensor of values given by their little-endian bytes, or `None` if those are not what the shape asks for.
    pub fn from_le_bytes(dtype: DType, shape: Vec<usize>, bytes: &[u8]) -> Option<Self> {
        let expected = element_count(&shape)?.checked_mul(dtype.size())?;
        let values = if expected == bytes.len() { Values::read_bytes(dtype, bytes)? } else { return None };
        Some(AnyTensor { shape, values })
    }

    /// The size of each axis.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The values in row-major order.
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// The element type and shape.
    pub fn tensor_type(&self) -> TensorType<'_> {
        TensorType::new(self.values.dtype(), &self.shape)
    }

    /// The index, one entry per axis, of the element at a row-major position.
    pub fn index_of(&self, position: usize) -> Vec<usize> {
        let mut rest = position;
        let mut index: Vec<usize> =
            self.shape.iter().rev().map(|&size| next_digit(&mut rest, size)).collect();
        index.reverse();
        index
    }

    /// Reads `{"dtype", "shape", "data" or "b64"}`. What is allocated is what the file really holds; the shape is
    /// only compared with it.
    pub(crate) fn read(node: &Node<'_>) -> Result<Self, FieldError> {
        let dtype: DType = node.required("dtype")?.name()?;
        let shape_node = node.required("shape")?;
        let shape = shape_node.items()?.map(|size| {
            let value = size.value.as_u64().and_then(|value| usize::try_from(value).ok());
            value.ok_or_else(|| size.error("a size of at least 0"))
        });
        let shape: Vec<usize> = shape.collect::<Result<_, _>>()?;
        let (source, values) = match (node.optional("data")?, node.optional("b64")?) {
            (Some(data), None) => {
                let values = Values::read_json(dtype, &data)?;
                (data, values)
            }
            (None, Some(b64)) => {
                let values = read_b64(dtype, &b64)?;
                (b64, values)
            }
            (Some(_), Some(b64)) => return Err(b64.error_with("absent beside `data`", "both")),
            (None, None) => return Err(node.error("a tensor with `data` or `b64`")),
        };
        if element_count(&shape) != Some(values.len()) {
            let expected = match element_count(&shape) {
                Some(count) => format!("{count} values for shape {shape:?}"),
                None => format!("more values than can be counted for shape {shape:?}"),
            };
            return Err(source.error_with(expected, format!("{} values", values.len())));
        }
        Ok(AnyTensor { shape, values })
    }
}

fn read_b64(dtype: DType, node: &Node<'_>) -> Result<Values, FieldError> {
    let bytes =
        STANDARD.decode(node.text()?).map_err(|error| node.error_with("base64", error.to_string()))?;
    if bytes.len() % dtype.size() != 0 {
        let expected = format!("a multiple of {} bytes for {dtype}", dtype.size());
        return Err(node.error_with(expected, format!("{} bytes", bytes.len())));
    }
    Values::read_bytes(dtype, &bytes).ok_or_else(|| node.error(format!("the bytes of {dtype} values")))
}

/// The number of elements of a shape; a zero anywhere makes it zero. `None` if it does not fit.
pub(crate) fn element_count(shape: &[usize]) -> Option<usize> {
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(1usize, |product, &size| product.checked_mul(size))
}

fn next_digit(rest: &mut usize, size: usize) -> usize {
    let size = size.max(1);
    let digit = *rest % size;
    *rest /= size;
    digit
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(value: Value) -> Result<AnyTensor, String> {
        AnyTensor::read(&Node::root(&value)).map_err(|error| format!("{}: {}", error.field, error.problem))
    }

    #[test]
    fn data_and_bytes_say_the_same() {
        let numbers = read(json!({"dtype": "i16", "shape": [2], "data": [1, -2]})).unwrap();
        let bytes = read(json!({"dtype": "i16", "shape": [2], "b64": "AQD+/w=="})).unwrap();
        assert_eq!(numbers, bytes);
        assert_eq!(numbers.values().get(1), Some(Number::Integer(-2)));
        assert_eq!(numbers.values().get(2), None);
    }

    #[test]
    fn every_type_reads_its_extremes_and_refuses_what_lies_beyond() {
        for (dtype, largest, beyond) in [
            ("f16", "65504", "1e5"),
            ("bf16", "3e38", "1e39"),
            ("f32", "3e38", "1e39"),
            ("i8", "-128", "128"),
            ("i16", "-32768", "32768"),
            ("i32", "-2147483648", "2147483648"),
            ("i64", "-9223372036854775808", "9223372036854775808"),
            ("u8", "255", "-1"),
            ("u16", "65535", "65536"),
            ("u32", "4294967295", "0.5"),
            ("u64", "18446744073709551615", "-1"),
            ("bool", "1", "2"),
        ] {
            let tensor = |number: &str| {
                let number: Value = serde_json::from_str(number).unwrap();
                read(json!({"dtype": dtype, "shape": [1], "data": [number]}))
            };
            assert!(tensor(largest).is_ok(), "{dtype} {largest}");
            assert!(
                tensor(beyond).unwrap_err().starts_with("data[0]: must be a value of type"),
                "{dtype} {beyond}"
            );
        }
    }

    #[test]
    fn the_shape_is_checked_against_the_values_that_are_there() {
        for (shape, message) in [
            (json!([3]), "data: must be 3 values"),
            (json!([u64::MAX, 2]), "data: must be more values than can be counted"),
            (json!([1u64 << 60]), "data: must be 1152921504606846976 values"),
            (json!([-1]), "shape[0]: must be a size"),
            (json!(2), "shape: must be a list"),
        ] {
            let error = read(json!({"dtype": "f32", "shape": shape, "data": [1, 2]})).unwrap_err();
            assert!(error.starts_with(message), "{error}");
        }
        assert!(read(json!({"dtype": "f32", "shape": [0, 1u64 << 60], "data": []})).is_ok());
    }

    #[test]
    fn sources_are_checked() {
        for (source, message) in [
            (json!({"dtype": "f32", "shape": [1]}), ": must be a tensor with `data` or `b64`"),
            (json!({"dtype": "f32", "shape": [1], "data": [1], "b64": ""}), "b64: must be absent beside"),
            (json!({"dtype": "f32", "shape": [1], "b64": "AAA"}), "b64: must be base64"),
            (json!({"dtype": "f32", "shape": [1], "b64": "AAA="}), "b64: must be a multiple of 4"),
            (json!({"dtype": "bool", "shape": [1], "b64": "Ag=="}), "b64: must be the bytes of bool"),
            (json!({"dtype": "float", "shape": [1], "data": [1]}), "dtype: is wrong: `float`"),
        ] {
            let error = read(source).unwrap_err();
            assert!(error.starts_with(message), "{error}");
        }
    }

    #[test]
    fn positions_become_indices() {
        let tensor = AnyTensor::new(vec![2, 3, 4], vec![0u8; 24]).unwrap();
        assert_eq!(tensor.index_of(0), [0, 0, 0]);
        assert_eq!(tensor.index_of(23), [1, 2, 3]);
        assert_eq!(tensor.index_of(5), [0, 1, 1]);
    }
}
