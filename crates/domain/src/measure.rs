//! The measure of a rule: the fact that it compares, the value found and the limit. Kept as data, so that each reader
//! makes its own sentence of it and none is parsed.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How many characters of a text value a sentence quotes.
const QUOTED_MAX: usize = 80;

/// A comparison of a fact with a limit that came out false.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measure {
    /// The fact, as the rule writes it: `diff.lines_changed`.
    pub fact: String,
    /// The demand of the rule.
    pub demand: Demand,
    /// The value found.
    pub value: Value,
    /// The value that the rule compares it with.
    pub limit: Value,
}

/// The demand that a comparison makes of a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Demand {
    /// Less than the limit.
    Below,
    /// The limit at most.
    AtMost,
    /// More than the limit.
    Above,
    /// The limit at least.
    AtLeast,
    /// The limit itself.
    Equal,
    /// Anything but the limit.
    NotEqual,
}

impl Demand {
    /// Returns the demand of the same comparison with its sides exchanged: `3 > x` demands what `x < 3` does.
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
    /// Returns the value and the limit for a person: `8 lines changed, limit 3`.
    pub fn describe(&self) -> String {
        let (value, limit) = (shown(&self.value), shown(&self.limit));
        let found = match counted(&self.fact) {
            Some(unit) => format!("{value} {unit}"),
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

/// Returns the unit that a fact counts, where it has a common name.
fn counted(fact: &str) -> Option<&'static str> {
    match fact {
        "diff.lines_changed" => Some("lines changed"),
        "diff.lines_added" => Some("lines added"),
        "diff.lines_deleted" => Some("lines deleted"),
        "diff.files" | "diff.files_changed" => Some("files changed"),
        "diff.binary_files" => Some("binary files"),
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

    /// Page B6: breaks when a block is reported without the value that was measured, or with the wrong limit.
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
        assert_eq!(
            measure("plan.profile", Demand::Equal, json!("auto"), json!("manual")),
            "plan.profile is \"auto\", \"manual\" required"
        );
    }
}
