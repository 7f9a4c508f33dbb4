//! Loosely typed attributes from and to JSON.

use outstride_spec::AttributeValue;
use serde_json::Value;

/// The attribute value a JSON value stands for, or `None` for objects and `null`, which no dialect uses.
///
/// Integers beyond 64 bits become floats, which every dialect refuses where it wants an integer.
///
/// ```
/// use outstride_io::attributes::from_json;
/// use outstride_spec::AttributeValue;
///
/// assert_eq!(from_json(&serde_json::json!(2)), Some(AttributeValue::Int(2)));
/// assert_eq!(from_json(&serde_json::json!({})), None);
/// ```
pub fn from_json(value: &Value) -> Option<AttributeValue> {
    Some(match value {
        Value::Bool(flag) => AttributeValue::Bool(*flag),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => AttributeValue::Int(integer),
            None => AttributeValue::Float(number.as_f64()?),
        },
        Value::String(text) => AttributeValue::Text(text.clone()),
        Value::Array(items) => AttributeValue::List(items.iter().map(from_json).collect::<Option<_>>()?),
        Value::Null | Value::Object(_) => return None,
    })
}

/// The JSON value of an attribute. A float that JSON cannot hold becomes `null`.
pub fn to_json(value: &AttributeValue) -> Value {
    match value {
        AttributeValue::Bool(flag) => (*flag).into(),
        AttributeValue::Int(integer) => (*integer).into(),
        AttributeValue::Float(float) => (*float).into(),
        AttributeValue::Text(text) => text.as_str().into(),
        AttributeValue::List(items) => items.iter().map(to_json).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_round_trips() {
        for text in ["true", "-3", "0.5", "\"SAME\"", "[[0,1],[2,3]]", "[]", "[\"NHWC\",\"HWIO\"]"] {
            let json: Value = serde_json::from_str(text).unwrap();
            assert_eq!(to_json(&from_json(&json).unwrap()), json);
        }
    }

    #[test]
    fn an_integer_beyond_64_bits_is_not_an_integer() {
        let json: Value = serde_json::from_str("9223372036854775808").unwrap();
        assert!(matches!(from_json(&json), Some(AttributeValue::Float(_))));
    }

    #[test]
    fn objects_and_nulls_are_no_attributes_even_inside_lists() {
        for text in ["null", "{}", "[1,null]", "[[{}]]"] {
            assert_eq!(from_json(&serde_json::from_str(text).unwrap()), None, "{text}");
        }
    }
}
