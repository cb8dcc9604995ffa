//! Problems: how a refusal or failure travels, as `application/problem+json` (RFC 9457).

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Code;

/// Why a request was not carried out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Problem {
    /// Names the kind of problem.
    #[serde(rename = "type", default)]
    pub kind: String,
    /// What it is about, in a few words.
    #[serde(default)]
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// The stable code.
    pub code: Code,
    /// What happened, naming the thing and the reason.
    #[serde(default)]
    pub detail: String,
    /// The next step.
    #[serde(default)]
    pub hint: Option<String>,
    /// What belongs to this code, as fields of their own.
    #[serde(flatten)]
    pub details: Map<String, Value>,
}

impl Problem {
    /// The media type it travels under.
    pub const MEDIA_TYPE: &'static str = "application/problem+json";

    /// Returns a problem with what the code's row in the table says.
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

    /// Adds one field of detail.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.details.insert(key.to_owned(), value.into());
        self
    }

    /// Returns a detail that is text.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.details.get(key).and_then(Value::as_str)
    }

    /// Returns the exit code it ends a command with.
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
