//! Messages from an agent to drydock: lines of standard output that are JSON objects with a `drydock` key.
//!
//! Unknown keys are ignored, because agents add their own. Unambiguous variants are normalised (`clear`). If
//! a required key is missing or has the wrong type, the line is reported as malformed instead of being
//! guessed.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::limit::{self, Resets};

/// Label of a checkpoint without one.
const UNNAMED: &str = "checkpoint";

/// A message from an agent, identified by its `drydock` key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "drydock", rename_all = "snake_case")]
pub enum Message {
    /// A choice that the agent made without asking.
    Choice {
        /// The question that was open.
        question: String,
        /// The chosen alternative.
        chosen: String,
        /// The other alternatives considered.
        #[serde(default)]
        alternatives: Vec<String>,
        /// The reason for the choice.
        #[serde(default)]
        rationale: Option<String>,
        /// Confidence from 0 to 1.
        #[serde(default)]
        confidence: Option<f64>,
        /// Id by which other choices refer to this one in `under`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// The choice from which this one follows, by id or question.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        under: Option<String>,
    },
    /// Progress of the work.
    Progress {
        /// The current activity.
        text: String,
        /// From 0 to 100, if known.
        #[serde(default)]
        percent: Option<f64>,
    },
    /// A state of the worktree that should be kept.
    Checkpoint {
        /// Label of the checkpoint.
        label: String,
    },
    /// A question that only a person can answer.
    Ask {
        /// Text of the question.
        question: String,
        /// The answers to choose from; empty if any text is accepted.
        #[serde(default)]
        options: Vec<AskOption>,
    },
    /// A part of the task that becomes a subplan; the object without its `drydock` key.
    Subplan(Value),
    /// The agent's service rejects further requests for now; the run ends.
    RateLimited {
        /// Reset time: RFC 3339, or seconds since 1970-01-01 UTC.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Value>,
        /// Time until the reset: seconds, or a duration such as `5m`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after: Option<Value>,
    },
    /// Usage since the previous usage message.
    Usage {
        /// Tokens of the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tokens: Option<u64>,
        /// Cost in US dollars, as text or as a number.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<Value>,
        /// Tool calls that drydock does not see.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_calls: Option<u64>,
    },
    /// A reviewer's verdict on the work.
    Verdict {
        /// Ack or refuse.
        verdict: VerdictKind,
        /// The reviewed version, if the reviewer names it; a number is converted to text.
        #[serde(default, deserialize_with = "text_or_number")]
        version: Option<String>,
        /// The reason for the verdict.
        #[serde(default)]
        reason: Option<String>,
    },
}

/// An answer that an agent offers with its question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskOption {
    /// Id that is sent back to the agent.
    pub id: String,
    /// Text shown to the person.
    pub label: String,
}

/// The kind of a reviewer's verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictKind {
    /// The work may continue.
    Ack,
    /// The work must not continue as it is.
    Refuse,
}

impl Message {
    /// Returns the reset time of a rate limit message, and `None` for other messages.
    pub fn resets(&self) -> Option<Resets> {
        match self {
            Message::RateLimited { until, retry_after } => {
                Some(limit::resets(until.as_ref(), retry_after.as_ref()).unwrap_or(Resets::Unknown))
            }
            Message::Choice { .. }
            | Message::Progress { .. }
            | Message::Checkpoint { .. }
            | Message::Ask { .. }
            | Message::Subplan(_)
            | Message::Usage { .. }
            | Message::Verdict { .. } => None,
        }
    }
}

/// The result of parsing a line of standard output.
#[derive(Debug, PartialEq)]
pub(crate) enum ParsedLine {
    Log,
    Message(Message),
    Garbled { reason: String },
}

/// Parses one line of standard output.
pub(crate) fn read(line: &str) -> ParsedLine {
    let text = line.trim();
    if !text.starts_with('{') {
        return ParsedLine::Log;
    }
    match serde_json::from_str::<Value>(text) {
        Ok(value) if value.get("drydock").is_some() => match from_value(value) {
            Ok(message) => ParsedLine::Message(message),
            Err(reason) => ParsedLine::Garbled { reason },
        },
        Ok(_) => ParsedLine::Log,
        Err(error) if claims_to_be_a_message(text) => {
            ParsedLine::Garbled { reason: format!("not valid JSON: {error}") }
        }
        Err(_) => ParsedLine::Log,
    }
}

/// Returns true if a line that cannot be parsed was meant for drydock.
pub(crate) fn claims_to_be_a_message(line: &str) -> bool {
    line.trim_start().starts_with('{') && line.contains("\"drydock\"")
}

/// Converts a JSON object with a `drydock` key into a message, or returns what is wrong with it.
pub(crate) fn from_value(mut value: Value) -> Result<Message, String> {
    clear(&mut value)?;
    let message: Message = serde_json::from_value(value).map_err(|error| error.to_string())?;
    match &message {
        Message::Choice { confidence: Some(confidence), .. } if !(0.0..=1.0).contains(confidence) => {
            Err(format!("confidence {confidence} is not between 0 and 1"))
        }
        Message::Progress { percent: Some(percent), .. } if !(0.0..=100.0).contains(percent) => {
            Err(format!("percent {percent} is not between 0 and 100"))
        }
        Message::Ask { options, .. } => match first_repeated(options) {
            Some(id) => Err(format!("two options have the id {id:?}")),
            None => Ok(message),
        },
        Message::RateLimited { until, retry_after } => {
            limit::resets(until.as_ref(), retry_after.as_ref())?;
            Ok(message)
        }
        Message::Choice { .. }
        | Message::Progress { .. }
        | Message::Checkpoint { .. }
        | Message::Subplan(_)
        | Message::Usage { .. }
        | Message::Verdict { .. } => Ok(message),
    }
}

/// Returns true if a line that cannot be parsed was meant as a question to a person. Searches the text,
/// because the line may be truncated or invalid JSON.
pub fn means_to_ask(line: &str) -> bool {
    let key = "\"drydock\"";
    line.match_indices(key).any(|(at, _)| {
        let value = line[at + key.len()..].trim_start().trim_start_matches(':').trim_start();
        value.trim_start_matches('"').get(..3).is_some_and(|start| start.eq_ignore_ascii_case("ask"))
    })
}

/// Normalises unambiguous variants: other common names of a message's main text, and plain texts as options.
fn clear(value: &mut Value) -> Result<(), String> {
    let Value::Object(fields) = value else { return Ok(()) };
    match fields.get("drydock").and_then(Value::as_str) {
        Some("progress") => rename(fields, "text", &["message"]),
        Some("checkpoint") => {
            rename(fields, "label", &["name", "text", "message"]);
            if fields.get("label").is_none_or(Value::is_null) {
                fields.insert("label".to_owned(), UNNAMED.into());
            }
        }
        Some("ask") => {
            rename(fields, "question", &["text", "message"]);
            match fields.get_mut("options") {
                Some(Value::Array(offered)) => clear_options(offered)?,
                Some(Value::Null) => drop(fields.remove("options")),
                Some(_) | None => {}
            }
        }
        Some(_) | None => {}
    }
    Ok(())
}

/// Copies the text from another key if `key` is missing.
fn rename(fields: &mut Map<String, Value>, key: &str, others: &[&str]) {
    if fields.get(key).is_some_and(|value| !value.is_null()) {
        return;
    }
    if let Some(text) = others.iter().find_map(|other| fields.get(*other).filter(|value| value.is_string())) {
        let text = text.clone();
        fields.insert(key.to_owned(), text);
    }
}

/// Converts texts and numbers into options, and fills a missing id from the label or a missing label from the
/// id. Removes duplicates.
fn clear_options(offered: &mut Vec<Value>) -> Result<(), String> {
    for option in offered.iter_mut() {
        let (id, label) = match &*option {
            Value::Object(fields) => (fields.get("id").and_then(words), fields.get("label").and_then(words)),
            single => (words(single), None),
        };
        let (Some(id), Some(label)) = (id.clone().or(label.clone()), label.or(id)) else {
            return Err(format!("the option {option} has neither an id nor a label"));
        };
        *option = serde_json::json!({ "id": id, "label": label });
    }
    let mut seen: Vec<Value> = Vec::new();
    offered.retain(|option| {
        let new = !seen.contains(option);
        seen.push(option.clone());
        new
    });
    Ok(())
}

/// Returns a text that is not blank, or a number as text.
fn words(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.trim().is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn first_repeated(options: &[AskOption]) -> Option<&str> {
    options
        .iter()
        .enumerate()
        .find(|(at, option)| options[..*at].iter().any(|earlier| earlier.id == option.id))
        .map(|(_, option)| option.id.as_str())
}

fn text_or_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    match Option::<Value>::deserialize(deserializer)? {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(Value::Number(number)) => Ok(Some(number.to_string())),
        Some(other) => Err(serde::de::Error::custom(format!("version {other} is neither text nor a number"))),
    }
}

#[cfg(test)]
mod tests {
    use super::{Message, ParsedLine, VerdictKind, means_to_ask, read};
    use serde_json::json;

    fn message(line: &str) -> Message {
        match read(line) {
            ParsedLine::Message(message) => message,
            other => panic!("{line}: {other:?}"),
        }
    }

    fn reason(line: &str) -> String {
        match read(line) {
            ParsedLine::Garbled { reason } => reason,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn every_kind_of_message_is_read() {
        assert_eq!(
            message(
                r#"{"drydock":"choice","question":"q","chosen":"a","alternatives":["b"],"rationale":"r","confidence":0.8,"id":"i","under":"u"}"#
            ),
            Message::Choice {
                question: "q".into(),
                chosen: "a".into(),
                alternatives: vec!["b".into()],
                rationale: Some("r".into()),
                confidence: Some(0.8),
                id: Some("i".into()),
                under: Some("u".into()),
            }
        );
        assert_eq!(
            message(r#"  {"drydock":"progress","text":"half","percent":50}  "#),
            Message::Progress { text: "half".into(), percent: Some(50.0) }
        );
        assert_eq!(
            message(r#"{"drydock":"checkpoint","label":"before","mood":"unknown keys are let through"}"#),
            Message::Checkpoint { label: "before".into() }
        );
        assert!(matches!(
            message(r#"{"drydock":"ask","question":"q","options":[{"id":"y","label":"Yes"}]}"#),
            Message::Ask { options, .. } if options[0].label == "Yes"
        ));
        assert_eq!(
            message(r#"{"drydock":"subplan","name":"docs","after":[]}"#),
            Message::Subplan(json!({"name": "docs", "after": []}))
        );
        assert_eq!(
            message(r#"{"drydock":"verdict","verdict":"refuse","version":3,"reason":"no tests"}"#),
            Message::Verdict {
                verdict: VerdictKind::Refuse,
                version: Some("3".into()),
                reason: Some("no tests".into())
            }
        );
    }

    fn offered(options: &str) -> Vec<(String, String)> {
        match message(&format!(r#"{{"drydock":"ask","question":"q","options":{options}}}"#)) {
            Message::Ask { options, .. } => options.into_iter().map(|one| (one.id, one.label)).collect(),
            other => panic!("{other:?}"),
        }
    }

    /// Breaks when an unambiguous variant is rejected, or another name overrides the documented one.
    #[test]
    fn what_is_clear_is_taken() {
        let pairs = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|(id, label)| ((*id).to_owned(), (*label).to_owned())).collect()
        };
        assert_eq!(offered(r#"["red","blue","red"]"#), pairs(&[("red", "red"), ("blue", "blue")]));
        assert_eq!(offered(r#"[1,2.5]"#), pairs(&[("1", "1"), ("2.5", "2.5")]));
        assert_eq!(
            offered(r#"[{"id":"a"},{"label":"B"},{"id":" ","label":"C"}]"#),
            pairs(&[("a", "a"), ("B", "B"), ("C", "C")])
        );
        assert_eq!(offered("null"), pairs(&[]));
        assert!(
            matches!(message(r#"{"drydock":"ask","text":"q?"}"#), Message::Ask { question, .. } if question == "q?")
        );
        let progress = |line: &str| match message(line) {
            Message::Progress { text, .. } => text,
            other => panic!("{other:?}"),
        };
        assert_eq!(progress(r#"{"drydock":"progress","message":"half"}"#), "half");
        assert_eq!(progress(r#"{"drydock":"progress","message":"other","text":"half"}"#), "half");
        assert_eq!(
            message(r#"{"drydock":"checkpoint"}"#),
            Message::Checkpoint { label: super::UNNAMED.into() }
        );
        assert_eq!(
            message(r#"{"drydock":"checkpoint","name":"half"}"#),
            Message::Checkpoint { label: "half".into() }
        );
    }

    /// Breaks when a line meant as a question to a person is not recognised, or another line is.
    #[test]
    fn a_line_that_was_meant_to_ask_is_known_by_its_words() {
        for line in [
            r#"{"drydock":"ask""#,
            r#"{"question":"q","drydock" : "Ask"#,
            r#"{"drydock":ask}"#,
            r#"{"of":"drydock","drydock":"ask_human"}"#,
        ] {
            assert!(means_to_ask(line), "{line}");
        }
        for line in [r#"{"drydock":"progress","text":"ask"#, "ask", r#"{"drydock":"#, r#"{"drydock":"äsk"}"#]
        {
            assert!(!means_to_ask(line), "{line}");
        }
    }

    #[test]
    fn what_was_meant_as_a_message_is_never_passed_off_as_log() {
        assert!(reason(r#"{"drydock":"choice","question":"q"}"#).contains("chosen"));
        assert!(reason(r#"{"drydock":"sing"}"#).contains("sing"));
        assert!(reason(r#"{"drydock":"rate_limited","until":"soon"}"#).contains("not a time"));
        assert!(reason(r#"{"drydock":7}"#).contains('7'));
        assert!(reason(r#"{"drydock":"progress","text":"x""#).contains("not valid JSON"));
        assert!(reason(r#"{"drydock":"progress","text":"x","percent":101}"#).contains("101"));
        assert!(
            reason(r#"{"drydock":"choice","question":"q","chosen":"c","confidence":-0.1}"#).contains("-0.1")
        );
        assert!(reason(r#"{"drydock":"ask","question":"q","options":["",{}]}"#).contains("neither an id"));
        assert!(reason(r#"{"drydock":"ask","question":"q","options":"red"}"#).contains("red"));
        assert!(reason(r#"{"drydock":"ask","question":"q","options":[{"id":"a","label":"A"},{"id":"a","label":"B"}]}"#)
            .contains("two options"));
    }

    #[test]
    fn what_was_not_meant_as_a_message_is_log() {
        for line in ["", "hello", "{", r#"{"level":"info"}"#, r#"["drydock"]"#, r#"see "drydock": {}"#] {
            assert_eq!(read(line), ParsedLine::Log, "{line}");
        }
    }
}
