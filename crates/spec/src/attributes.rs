//! Attributes as they come from files, commands and scripts: names with loosely typed values.

use std::collections::BTreeMap;
use std::fmt;

use crate::error::SpecError;

/// The value of one attribute, before a dialect has given it a meaning.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum AttributeValue {
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<AttributeValue>),
}

impl AttributeValue {
    fn int(&self) -> Option<i64> {
        if let AttributeValue::Int(value) = self { Some(*value) } else { None }
    }

    fn float(&self) -> Option<f64> {
        match self {
            AttributeValue::Float(value) => Some(*value),
            AttributeValue::Int(value) => Some(*value as f64),
            _ => None,
        }
    }

    fn list<T>(&self, item: impl Fn(&Self) -> Option<T>) -> Option<Vec<T>> {
        if let AttributeValue::List(items) = self { items.iter().map(item).collect() } else { None }
    }

    fn pair(&self) -> Option<(i64, i64)> {
        if let AttributeValue::List(items) = self
            && let [low, high] = items.as_slice()
        {
            Some((low.int()?, high.int()?))
        } else {
            None
        }
    }

    fn text(&self) -> Option<String> {
        if let AttributeValue::Text(text) = self { Some(text.clone()) } else { None }
    }
}

impl fmt::Display for AttributeValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AttributeValue::Bool(value) => write!(f, "{value}"),
            AttributeValue::Int(value) => write!(f, "{value}"),
            AttributeValue::Float(value) => write!(f, "{value}"),
            AttributeValue::Text(value) => write!(f, "`{value}`"),
            AttributeValue::List(items) => {
                let items: Vec<_> = items.iter().map(ToString::to_string).collect();
                write!(f, "[{}]", items.join(", "))
            }
        }
    }
}

/// Named attributes of one call. An attribute that is not in the map is absent, not defaulted.
pub type Attributes = BTreeMap<String, AttributeValue>;

/// Reads a dialect's attributes out of a map, with errors that name the attribute.
pub(crate) struct Reader<'a> {
    dialect: &'static str,
    attributes: &'a Attributes,
}

impl<'a> Reader<'a> {
    /// Refuses attributes outside `known` first, so that a misspelt name is reported as such.
    pub(crate) fn new(
        dialect: &'static str,
        known: &'static [&'static str],
        attributes: &'a Attributes,
    ) -> Result<Self, SpecError> {
        match attributes.keys().find(|name| !known.contains(&name.as_str())) {
            Some(name) => Err(SpecError::UnknownAttribute { dialect, name: name.clone(), known }),
            None => Ok(Reader { dialect, attributes }),
        }
    }

    fn get<T>(
        &self,
        name: &'static str,
        expected: &'static str,
        convert: impl Fn(&AttributeValue) -> Option<T>,
    ) -> Result<Option<T>, SpecError> {
        let Some(value) = self.attributes.get(name) else { return Ok(None) };
        match convert(value) {
            Some(converted) => Ok(Some(converted)),
            None => Err(SpecError::AttributeType { name: name.into(), expected, found: value.to_string() }),
        }
    }

    pub(crate) fn int(&self, name: &'static str) -> Result<Option<i64>, SpecError> {
        self.get(name, "an integer", AttributeValue::int)
    }

    /// A list of integers; absent means empty.
    pub(crate) fn ints(&self, name: &'static str) -> Result<Vec<i64>, SpecError> {
        Ok(self.optional_ints(name)?.unwrap_or_default())
    }

    pub(crate) fn optional_ints(&self, name: &'static str) -> Result<Option<Vec<i64>>, SpecError> {
        self.get(name, "a list of integers", |value| value.list(AttributeValue::int))
    }

    pub(crate) fn required_ints(&self, name: &'static str) -> Result<Vec<i64>, SpecError> {
        self.optional_ints(name)?.ok_or(SpecError::MissingAttribute { dialect: self.dialect, name })
    }

    /// One integer or a list of them; absent means empty.
    pub(crate) fn int_or_ints(&self, name: &'static str) -> Result<Vec<i64>, SpecError> {
        let convert = |value: &AttributeValue| {
            value.int().map(|one| vec![one]).or_else(|| value.list(AttributeValue::int))
        };
        Ok(self.get(name, "an integer or a list of integers", convert)?.unwrap_or_default())
    }

    pub(crate) fn floats(&self, name: &'static str) -> Result<Vec<f32>, SpecError> {
        let convert = |value: &AttributeValue| value.list(|item| item.float().map(|float| float as f32));
        Ok(self.get(name, "a list of numbers", convert)?.unwrap_or_default())
    }

    pub(crate) fn text(&self, name: &'static str) -> Result<Option<String>, SpecError> {
        self.get(name, "a string", AttributeValue::text)
    }

    pub(crate) fn texts(&self, name: &'static str) -> Result<Option<Vec<String>>, SpecError> {
        self.get(name, "a list of strings", |value| value.list(AttributeValue::text))
    }

    pub(crate) fn flag(&self, name: &'static str) -> Result<bool, SpecError> {
        let convert =
            |value: &AttributeValue| if let AttributeValue::Bool(flag) = value { Some(*flag) } else { None };
        Ok(self.get(name, "true or false", convert)?.unwrap_or(false))
    }

    /// A word, or a list of (low, high) pairs.
    pub(crate) fn word_or_pairs(&self, name: &'static str) -> Result<Option<WordOrPairs>, SpecError> {
        self.get(name, "a string or a list of integer pairs", |value| {
            let word = value.text().map(WordOrPairs::Word);
            word.or_else(|| value.list(AttributeValue::pair).map(WordOrPairs::Pairs))
        })
    }
}

pub(crate) enum WordOrPairs {
    Word(String),
    Pairs(Vec<(i64, i64)>),
}
