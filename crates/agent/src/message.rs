//! Messages from an agent to drydock: lines of standard output that are JSON objects with a `drydock` key.
//!
//! Keys we do not know are let through, because agents embellish; a key of ours that is missing or of the wrong type
//! makes the line garbled, and the caller is told instead of guessing.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::limit::{self, Resets};

/// A message from an agent, by its `drydock` key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "drydock", rename_all = "snake_case")]
pub enum Message {
    /// A decision the agent took by itself.
    Choice {
        /// What was to be decided.
        question: String,
        /// What it decided.
        chosen: String,
        /// What else it considered.
        #[serde(default)]
        alternatives: Vec<String>,
        /// Why.
        #[serde(default)]
        rationale: Option<String>,
        /// How sure it is, from 0 to 1.
        #[serde(default)]
        confidence: Option<f64>,
        /// What other choices call it in `under`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// The choice that it follows from, by its id or its question.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        under: Option<String>,
    },
    /// How far it got.
    Progress {
        /// What it is doing.
        text: String,
        /// From 0 to 100, where it can tell.
        #[serde(default)]
        percent: Option<f64>,
    },
    /// A state of the worktree worth keeping.
    Checkpoint {
        /// What to call it.
        label: String,
    },
    /// A question only a person can answer.
    Ask {
        /// The question.
        question: String,
        /// The answers to choose from; empty when any text will do.
        #[serde(default)]
        options: Vec<AskOption>,
    },
    /// A part of the task to be planned on its own; the object without its `drydock` key.
    Subplan(Value),
    /// The service behind it lets it do no more for now; the run ends.
    RateLimited {
        /// When that is over: RFC 3339, or seconds since 1970-01-01 UTC.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<Value>,
        /// How long that lasts: seconds, or a duration such as `5m`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after: Option<Value>,
    },
    /// What it used since it last said so.
    Usage {
        /// Tokens of its model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tokens: Option<u64>,
        /// Money: US dollars, as text or as a number.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost_usd: Option<Value>,
        /// Uses of tools, where drydock does not see them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_calls: Option<u64>,
    },
    /// What a reviewer says of the work.
    Verdict {
        /// Yes or no.
        verdict: Opinion,
        /// What exactly was reviewed, where the reviewer says so; a number is taken as its text.
        #[serde(default, deserialize_with = "text_or_number")]
        version: Option<String>,
        /// Why.
        #[serde(default)]
        reason: Option<String>,
    },
}

/// One answer that an agent offers with its question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskOption {
    /// What is sent back.
    pub id: String,
    /// What a person reads.
    pub label: String,
}

/// A reviewer's yes or no.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Opinion {
    /// The work may go on.
    Ack,
    /// The work must not go on as it is.
    Refuse,
}

impl Message {
    /// Returns when a rate limit is over, for a message that tells of one.
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

/// What a line of standard output turned out to be.
#[derive(Debug, PartialEq)]
pub(crate) enum Reading {
    Log,
    Message(Message),
    Garbled { reason: String },
}

/// Reads one line of standard output.
pub(crate) fn read(line: &str) -> Reading {
    let text = line.trim();
    if !text.starts_with('{') {
        return Reading::Log;
    }
    match serde_json::from_str::<Value>(text) {
        Ok(value) if value.get("drydock").is_some() => match from_value(value) {
            Ok(message) => Reading::Message(message),
            Err(reason) => Reading::Garbled { reason },
        },
        Ok(_) => Reading::Log,
        Err(error) if claims_to_be_a_message(text) => {
            Reading::Garbled { reason: format!("not valid JSON: {error}") }
        }
        Err(_) => Reading::Log,
    }
}

/// Tells whether a line that cannot be parsed was meant for drydock.
pub(crate) fn claims_to_be_a_message(line: &str) -> bool {
    line.trim_start().starts_with('{') && line.contains("\"drydock\"")
}

/// Makes a message of a JSON object with a `drydock` key, or says what is wrong with it.
pub(crate) fn from_value(value: Value) -> Result<Message, String> {
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
    use super::{Message, Opinion, Reading, read};
    use serde_json::json;

    fn message(line: &str) -> Message {
        match read(line) {
            Reading::Message(message) => message,
            other => panic!("{line}: {other:?}"),
        }
    }

    fn reason(line: &str) -> String {
        match read(line) {
            Reading::Garbled { reason } => reason,
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
                verdict: Opinion::Refuse,
                version: Some("3".into()),
                reason: Some("no tests".into())
            }
        );
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
        assert!(reason(r#"{"drydock":"ask","question":"q","options":[{"id":"a","label":"A"},{"id":"a","label":"B"}]}"#)
            .contains("two options"));
    }

    #[test]
    fn what_was_not_meant_as_a_message_is_log() {
        for line in ["", "hello", "{", r#"{"level":"info"}"#, r#"["drydock"]"#, r#"see "drydock": {}"#] {
            assert_eq!(read(line), Reading::Log, "{line}");
        }
    }
}
