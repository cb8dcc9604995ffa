//! The measure of a rule: the fact that it compares, the measured value and the limit. Stored as data, so
//! that each reader formats its own sentence and no text needs to be parsed.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Maximum number of characters of a text value that a sentence quotes.
const QUOTED_MAX: usize = 80;

/// A comparison of a fact with a limit that evaluated to false.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measure {
    /// The fact, as written in the rule: `diff.lines_changed`.
    pub fact: String,
    /// The required relation between value and limit.
    pub demand: Demand,
    /// The measured value.
    pub value: Value,
    /// The limit that the rule compares the value with.
    pub limit: Value,
}

/// The required relation between a fact and a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Demand {
    /// Less than the limit.
    Below,
    /// At most the limit.
    AtMost,
    /// More than the limit.
    Above,
    /// At least the limit.
    AtLeast,
    /// Equal to the limit.
    Equal,
    /// Different from the limit.
    NotEqual,
}

impl Demand {
    /// Returns the same relation with its sides swapped: `3 > x` is the same as `x < 3`.
    pub fn mirrored(self) -> Self {
        match self {
            Demand::Below => Demand::Above,
            Demand::AtMost => Demand::AtLeast,
            Demand::Above => Demand::Below,
            Demand::AtLeast => Demand::AtMost,
            Demand::Equal | Demand::NotEqual => self,
        }
    }
}

impl Measure {
    /// Returns the value and the limit as text: `8 lines changed, limit 3`.
    pub fn describe(&self) -> String {
        let (value, limit) = (shown(&self.value), shown(&self.limit));
        let found = match unit(&self.fact) {
            Some((noun, rest)) if self.value == 1 => format!("1 {noun}{rest}"),
            Some((noun, rest)) => format!("{value} {noun}s{rest}"),
            None => format!("{} is {value}", self.fact),
        };
        match self.demand {
            Demand::Below | Demand::AtMost => format!("{found}, limit {limit}"),
            Demand::Above => format!("{found}, more than {limit} required"),
            Demand::AtLeast => format!("{found}, at least {limit} required"),
            Demand::Equal => format!("{found}, {limit} required"),
            Demand::NotEqual => format!("{found}, anything else required"),
        }
    }
}

/// Returns the unit of a counted fact in the singular, and the words after it, if it has a common name.
fn unit(fact: &str) -> Option<(&'static str, &'static str)> {
    match fact {
        "diff.lines_changed" => Some(("line", " changed")),
        "diff.lines_added" => Some(("line", " added")),
        "diff.lines_deleted" => Some(("line", " deleted")),
        "diff.files" | "diff.files_changed" => Some(("file", " changed")),
        "diff.binary_files" => Some(("binary file", "")),
        _ => None,
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) if text.chars().count() > QUOTED_MAX => {
            format!("{:?}…", text.chars().take(QUOTED_MAX).collect::<String>())
        }
        Value::String(text) => format!("{text:?}"),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Page B6: fails if a block is reported without the measured value, or with the wrong limit.
    #[test]
    fn a_measure_reads_as_value_and_limit() {
        let measure = |fact: &str, demand, value, limit| {
            Measure { fact: fact.to_owned(), demand, value, limit }.describe()
        };
        assert_eq!(
            measure("diff.lines_changed", Demand::Below, json!(8), json!(3)),
            "8 lines changed, limit 3"
        );
        assert_eq!(
            measure("diff.files", Demand::AtLeast, json!(0), json!(1)),
            "0 files changed, at least 1 required"
        );
        assert_eq!(measure("diff.files", Demand::Equal, json!(1), json!(0)), "1 file changed, 0 required");
        assert_eq!(
            measure("plan.profile", Demand::Equal, json!("auto"), json!("manual")),
            "plan.profile is \"auto\", \"manual\" required"
        );
    }
}
