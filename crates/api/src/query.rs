//! Builds query strings and path segments from typed values. The server parses the same structs, so names cannot
//! differ.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde::Serialize;
use serde_json::Value;

/// Returns the query string of a flat struct with its question mark, or an empty text if no field is set.
pub(crate) fn query(fields: &impl Serialize) -> String {
    let value = serde_json::to_value(fields).expect("queries are flat structs of text, numbers and words");
    let Value::Object(fields) = value else { return String::new() };
    // Sorted here: whether a JSON object keeps the order of its fields depends on features that other crates turn on.
    let fields: BTreeMap<_, _> = fields.into_iter().collect();
    let mut text = String::new();
    for (name, value) in fields {
        let value = match value {
            Value::Null => continue,
            Value::String(text) => text,
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
        };
        text.push(if text.is_empty() { '?' } else { '&' });
        text.push_str(&name);
        text.push('=');
        text.push_str(&segment(&value));
    }
    text
}

/// Escapes a text for use as one segment of a path or one value of a query.
pub(crate) fn segment(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            write!(escaped, "%{byte:02X}").expect("writing to a String cannot fail");
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DecisionQuery, EventQuery, Phase, PlanQuery};

    #[test]
    fn only_set_fields_are_sent_and_values_are_escaped() {
        assert_eq!(query(&PlanQuery::default()), "");
        let plans = PlanQuery {
            phase: Some(Phase::Execute),
            project: Some("a b&c/d".into()),
            limit: Some(5),
            ..PlanQuery::default()
        };
        assert_eq!(query(&plans), "?limit=5&phase=execute&project=a%20b%26c%2Fd");
        assert_eq!(query(&DecisionQuery { open: Some(true), ..DecisionQuery::default() }), "?open=true");
        assert_eq!(
            query(&EventQuery { after: Some(0), wait_ms: Some(1), ..EventQuery::default() }),
            "?after=0&wait_ms=1"
        );
    }

    #[test]
    fn a_segment_cannot_leave_its_place() {
        assert_eq!(segment("../x?y#z"), "..%2Fx%3Fy%23z");
        assert_eq!(segment("é"), "%C3%A9");
    }
}
