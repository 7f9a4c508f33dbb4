//! A JSON value that knows where in its document it stands, so that errors can say so.

use std::fmt::Display;
use std::str::FromStr;

use serde_json::{Map, Value};

/// What was wrong at one place of a document.
#[derive(Debug)]
pub(crate) struct FieldError {
    /// Where, such as `inputs.X.shape[2]`; empty at the top.
    pub(crate) field: String,
    /// What was expected there and what was found.
    pub(crate) problem: String,
}

#[derive(Clone, Debug)]
pub(crate) struct Node<'a> {
    pub(crate) value: &'a Value,
    path: String,
}

impl<'a> Node<'a> {
    /// A node whose fields are named from here on.
    pub(crate) fn root(value: &'a Value) -> Self {
        Node { value, path: String::new() }
    }

    pub(crate) fn error(&self, expected: impl Display) -> FieldError {
        self.error_with(expected, brief(self.value))
    }

    pub(crate) fn error_with(&self, expected: impl Display, found: impl Display) -> FieldError {
        FieldError { field: self.path.clone(), problem: format!("must be {expected}, got {found}") }
    }

    fn child(&self, name: &str, value: &'a Value) -> Self {
        let path = if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) };
        Node { value, path }
    }

    fn object(&self) -> Result<&'a Map<String, Value>, FieldError> {
        self.value.as_object().ok_or_else(|| self.error("an object"))
    }

    /// The fields of an object, in the order of their names.
    pub(crate) fn fields(&self) -> Result<impl Iterator<Item = (&'a str, Node<'a>)>, FieldError> {
        Ok(self.object()?.iter().map(|(name, value)| (name.as_str(), self.child(name, value))))
    }

    /// A field of an object; `null` counts as absent.
    pub(crate) fn optional(&self, name: &str) -> Result<Option<Node<'a>>, FieldError> {
        let value = self.object()?.get(name).filter(|value| !value.is_null());
        Ok(value.map(|value| self.child(name, value)))
    }

    pub(crate) fn required(&self, name: &str) -> Result<Node<'a>, FieldError> {
        let missing = || self.child(name, self.value).error_with("present", "nothing");
        self.optional(name)?.ok_or_else(missing)
    }

    pub(crate) fn items(&self) -> Result<impl Iterator<Item = Node<'a>>, FieldError> {
        Ok(self.list()?.iter().enumerate().map(|(index, value)| self.item(index, value)))
    }

    /// The bare items, for long lists: naming each would cost more than reading it.
    pub(crate) fn list(&self) -> Result<&'a [Value], FieldError> {
        self.value.as_array().map(Vec::as_slice).ok_or_else(|| self.error("a list"))
    }

    pub(crate) fn item(&self, index: usize, value: &'a Value) -> Self {
        Node { value, path: format!("{}[{index}]", self.path) }
    }

    pub(crate) fn text(&self) -> Result<&'a str, FieldError> {
        self.value.as_str().ok_or_else(|| self.error("a string"))
    }

    pub(crate) fn integer(&self) -> Result<i64, FieldError> {
        self.value.as_i64().ok_or_else(|| self.error("a 64-bit integer"))
    }

    /// The text as one of the names that `T` knows; the name's own error says which those are.
    pub(crate) fn name<T: FromStr<Err: Display>>(&self) -> Result<T, FieldError> {
        let wrong = |error| FieldError { field: self.path.clone(), problem: format!("is wrong: {error}") };
        self.text()?.parse().map_err(wrong)
    }
}

/// The beginning of a value, for messages.
fn brief(value: &Value) -> String {
    const LONGEST: usize = 60;
    match value {
        Value::Array(items) if items.len() > 8 => format!("a list of {}", items.len()),
        Value::Object(fields) => format!("an object with {} fields", fields.len()),
        _ => {
            let text = value.to_string();
            match text.char_indices().nth(LONGEST) {
                Some((end, _)) => format!("{}…", &text[..end]),
                None => text,
            }
        }
    }
}
