//! The value types that both databases store, and rows of them. A column with an unexpected type is an error
//! (a damaged row), never replaced by a default.

use std::borrow::Cow;

use drydock_domain::Timestamp;

use crate::StoreError;

/// A value in a column or a parameter.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Null,
    Int(i64),
    Text(String),
    Blob(Vec<u8>),
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Value::Int(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Value::Text(value.to_owned())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Value::Text(value)
    }
}

impl From<Timestamp> for Value {
    fn from(value: Timestamp) -> Self {
        Value::Int(value.as_micros())
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Null, Into::into)
    }
}

/// An SQL statement with its parameters.
#[derive(Debug, Clone)]
pub(crate) struct Statement {
    pub(crate) sql: Cow<'static, str>,
    pub(crate) params: Vec<Value>,
}

impl Statement {
    pub(crate) fn new<const N: usize>(sql: &'static str, params: [Value; N]) -> Self {
        Self { sql: Cow::Borrowed(sql), params: params.into() }
    }

    /// Builds a statement whose text depends on the given filters.
    pub(crate) fn composed(sql: String, params: Vec<Value>) -> Self {
        Self { sql: Cow::Owned(sql), params }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row(pub(crate) Vec<Value>);

impl Row {
    /// Returns the total size of its values in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let bytes = |value: &Value| match value {
            Value::Null | Value::Int(_) => size_of::<i64>(),
            Value::Text(text) => text.len(),
            Value::Blob(bytes) => bytes.len(),
        };
        self.0.iter().map(bytes).sum()
    }

    pub(crate) fn int(&self, column: usize) -> Result<i64, StoreError> {
        match self.0.get(column) {
            Some(Value::Int(value)) => Ok(*value),
            other => Err(unexpected(column, "an integer", other)),
        }
    }

    pub(crate) fn text(&self, column: usize) -> Result<&str, StoreError> {
        match self.0.get(column) {
            Some(Value::Text(value)) => Ok(value),
            other => Err(unexpected(column, "text", other)),
        }
    }

    pub(crate) fn text_or_null(&self, column: usize) -> Result<Option<&str>, StoreError> {
        match self.0.get(column) {
            Some(Value::Null) => Ok(None),
            Some(_) | None => self.text(column).map(Some),
        }
    }

    pub(crate) fn int_or_null(&self, column: usize) -> Result<Option<i64>, StoreError> {
        match self.0.get(column) {
            Some(Value::Null) => Ok(None),
            Some(_) | None => self.int(column).map(Some),
        }
    }

    pub(crate) fn time(&self, column: usize) -> Result<Timestamp, StoreError> {
        self.int(column).map(Timestamp::from_micros)
    }
}

fn unexpected(column: usize, wanted: &str, found: Option<&Value>) -> StoreError {
    let found = match found {
        None => "nothing",
        Some(Value::Null) => "null",
        Some(Value::Int(_)) => "an integer",
        Some(Value::Text(_)) => "text",
        Some(Value::Blob(_)) => "bytes",
    };
    StoreError::damaged("result", format!("column {column}"), format!("expected {wanted}, found {found}"))
}
