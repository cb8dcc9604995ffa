//! Problems: refusals and failures as `application/problem+json` (RFC 9457).

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Code;

/// Why a request was refused or failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Problem {
    /// The URI of the kind of problem.
    #[serde(rename = "type", default)]
    pub kind: String,
    /// A short title.
    #[serde(default)]
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// The stable code.
    pub code: Code,
    /// The error, with the object and the reason.
    #[serde(default)]
    pub detail: String,
    /// The next step.
    #[serde(default)]
    pub hint: Option<String>,
    /// Fields that depend on the code.
    #[serde(flatten)]
    pub details: Map<String, Value>,
}

impl Problem {
    /// The media type of a problem.
    pub const MEDIA_TYPE: &'static str = "application/problem+json";

    /// Returns a problem with the title and status of the code.
    pub fn new(code: Code, detail: impl Into<String>) -> Self {
        Self {
            kind: format!("urn:drydock:problem:{code}"),
            title: code.title().to_owned(),
            status: code.status(),
            code,
            detail: detail.into(),
            hint: None,
            details: Map::new(),
        }
    }

    /// Adds the next step.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds a field.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.details.insert(key.to_owned(), value.into());
        self
    }

    /// Returns a field that is text.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.details.get(key).and_then(Value::as_str)
    }

    /// Returns the exit code of a command that ends with it.
    pub fn exit_code(&self) -> u8 {
        self.code.exit_code()
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl std::error::Error for Problem {}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn details_travel_beside_the_fixed_fields_and_come_back() {
        let problem = Problem::new(Code::LockHeld, "the plan is held").hint("wait").with("pid", 7);
        let wire = serde_json::to_value(&problem).unwrap();
        assert_eq!(
            (&wire["pid"], &wire["code"], &wire["status"]),
            (&json!(7), &json!("lock_held"), &json!(409))
        );
        assert_eq!(serde_json::from_value::<Problem>(wire).unwrap(), problem);
    }
}
