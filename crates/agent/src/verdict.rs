//! Finds a reviewer's verdict in its output when the verdict is not on one line of its own: models often put JSON into
//! a code fence or indent it.

use serde_json::{Deserializer, Value};

use crate::message::{self, Message};

/// Returns the last verdict in a text: a JSON object with `"drydock": "verdict"`, over any number of lines and among any
/// other words. One that cannot be read is not a verdict.
pub fn verdict_in(text: &str) -> Option<Message> {
    let (mut found, mut at) = (None, 0);
    while let Some(start) = text[at..].find('{').map(|offset| at + offset) {
        let mut values = Deserializer::from_str(&text[start..]).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) => {
                at = start + values.byte_offset();
                if value["drydock"] == "verdict" {
                    found = message::from_value(value).ok().or(found);
                }
            }
            Some(Err(_)) | None => at = start + 1,
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::verdict_in;
    use crate::message::{Message, Opinion};

    fn opinion(text: &str) -> Option<Opinion> {
        match verdict_in(text)? {
            Message::Verdict { verdict, .. } => Some(verdict),
            other => panic!("{other:?}"),
        }
    }

    /// Finding 8 of agents: breaks when a verdict as models write it is not one, or the template counts as one.
    #[test]
    fn fenced_indented_and_broken_lines_are_verdicts() {
        let fenced = "Looks good.\n```json\n{\n  \"drydock\": \"verdict\",\n  \"verdict\": \"ack\",\n  \"version\": 1\n}\n```\n";
        assert_eq!(opinion(fenced), Some(Opinion::Ack));
        assert_eq!(opinion("so: {\"drydock\":\"verdict\",\"verdict\":\"refuse\"}."), Some(Opinion::Refuse));
        let twice = "{\"drydock\":\"verdict\",\n\"verdict\":\"ack\"} no: { \"drydock\":\"verdict\",\"verdict\":\"refuse\"}";
        assert_eq!(opinion(twice), Some(Opinion::Refuse), "the last one counts");
        assert_eq!(
            opinion("{ fn main() {} } {\"drydock\":\"verdict\",\"verdict\":\"ack\"}"),
            Some(Opinion::Ack)
        );
        for none in [
            r#"{"drydock":"verdict","verdict":"ack" or "refuse","version":1,"reason":"why"}"#,
            r#"{"drydock":"verdict","verdict":"maybe"}"#,
            r#"{"drydock":"progress","text":"half"}"#,
            "ack",
            "{",
        ] {
            assert_eq!(opinion(none), None, "{none}");
        }
    }
}
