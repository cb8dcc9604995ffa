//! Finds a reviewer's verdict in output in which it is not on a line of its own: models often indent JSON or
//! put it into a code fence.

use serde_json::{Deserializer, Value};

use crate::message::{self, Message};

/// Returns the verdict in a text: a JSON object with `"drydock": "verdict"` that begins a line, may span
/// several lines, and names its version. An object preceded on its line by other text, a diff sign or a
/// quotation mark is a quotation and is ignored. If several verdicts differ, none counts.
pub fn verdict_in(text: &str) -> Option<Message> {
    let mut found: Vec<Message> = Vec::new();
    let mut at = 0;
    while let Some(start) = text[at..].find('{').map(|offset| at + offset) {
        let mut values = Deserializer::from_str(&text[start..]).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) => {
                at = start + values.byte_offset();
                if value["drydock"] == "verdict" && begins_line(text, start) {
                    found.extend(message::from_value(value).ok().filter(names_version));
                }
            }
            Some(Err(_)) | None => at = start + 1,
        }
    }
    let last = found.pop()?;
    found.iter().all(|other| agree(other, &last)).then_some(last)
}

fn begins_line(text: &str, at: usize) -> bool {
    let before = &text[..at];
    before.rsplit('\n').next().is_none_or(|line| line.trim().is_empty())
}

fn names_version(message: &Message) -> bool {
    matches!(message, Message::Verdict { version: Some(_), .. })
}

fn agree(one: &Message, other: &Message) -> bool {
    match (one, other) {
        (
            Message::Verdict { verdict, version, .. },
            Message::Verdict { verdict: other_verdict, version: other_version, .. },
        ) => verdict == other_verdict && version == other_version,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::verdict_in;
    use crate::message::{Message, VerdictKind};

    fn opinion(text: &str) -> Option<VerdictKind> {
        match verdict_in(text)? {
            Message::Verdict { verdict, .. } => Some(verdict),
            other => panic!("{other:?}"),
        }
    }

    /// Finding 8 of agents: breaks when a verdict in a form that models write is not recognised, or the
    /// template counts as one.
    #[test]
    fn fenced_indented_and_broken_lines_are_verdicts() {
        let fenced = "Looks good.\n```json\n{\n  \"drydock\": \"verdict\",\n  \"verdict\": \"ack\",\n  \"version\": 1\n}\n```\n";
        assert_eq!(opinion(fenced), Some(VerdictKind::Ack));
        let after = "so:\n  {\"drydock\":\"verdict\",\"verdict\":\"refuse\",\"version\":2}.";
        assert_eq!(opinion(after), Some(VerdictKind::Refuse));
        let code = "{ fn main() {} }\n{\"drydock\":\"verdict\",\"verdict\":\"ack\",\"version\":1}";
        assert_eq!(opinion(code), Some(VerdictKind::Ack));
        assert_eq!(opinion(&format!("{code}\n{code}")), Some(VerdictKind::Ack), "said twice");
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

    /// Breaks when a verdict that a reviewer only quotes counts, or one of two that differ.
    #[test]
    fn a_quoted_verdict_and_verdicts_that_differ_count_for_nothing() {
        let ack = r#"{"drydock":"verdict","verdict":"ack","version":1}"#;
        let refuse = r#"{"drydock":"verdict","verdict":"refuse","version":1}"#;
        for quoted in [
            format!("+{ack}"),
            format!("-{ack}"),
            format!("> {ack}"),
            format!("The file says \"{ack}\"."),
            format!("The file says `{ack}`."),
            r#"{"drydock":"verdict","verdict":"ack"}"#.to_owned(),
        ] {
            assert_eq!(opinion(&quoted), None, "{quoted}");
            assert_eq!(opinion(&format!("{quoted}\n{refuse}")), Some(VerdictKind::Refuse), "{quoted}");
        }
        assert_eq!(opinion(&format!("{refuse}\nThe file says:\n{ack}\n")), None);
        let version_2 = ack.replace('1', "2");
        assert_eq!(opinion(&format!("{ack}\n{version_2}\n")), None);
    }
}
