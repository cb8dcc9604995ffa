//! Hides secrets that were passed to an agent in everything the agent writes.

use std::sync::Arc;

use serde_json::Value;

use crate::credential::{credentials, is_secret_name, whole};
use crate::message::Message;
use crate::signal::{Activity, PermissionAsked, Signal};

/// Replacement text for a secret.
const HIDDEN: &str = "[hidden]";

/// The secrets of one run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Secrets {
    values: Arc<[String]>,
}

impl Secrets {
    /// Finds the secrets among an agent's configured variables: values whose name indicates a secret or is in
    /// `marked`, and credentials inside other values.
    pub(crate) fn of<'a>(variables: impl IntoIterator<Item = (&'a str, String)>, marked: &[String]) -> Self {
        let mut values: Vec<String> = Vec::new();
        for (name, value) in variables {
            let is_secret = is_secret_name(name) || marked.iter().any(|marked| marked == name);
            for secret in if is_secret { whole(&value) } else { credentials(&value) } {
                let quoted = Value::from(secret.as_str()).to_string();
                let inside = quoted.trim_matches('"').to_owned();
                if inside != secret {
                    values.push(inside);
                }
                values.push(secret);
            }
        }
        // Longer secrets first: they may contain a shorter one.
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        Self { values: values.into() }
    }

    /// Returns these secrets and one that drydock generated.
    pub(crate) fn and(&self, secret: &str) -> Self {
        Self { values: self.values.iter().cloned().chain([secret.to_owned()]).collect() }
    }

    pub(crate) fn with(&self, others: &Secrets) -> Self {
        let mut values: Vec<String> = self.values.iter().chain(others.values.iter()).cloned().collect();
        values.sort_by_key(|value| std::cmp::Reverse(value.len()));
        Self { values: values.into() }
    }

    /// Returns the text without secrets.
    pub(crate) fn hide(&self, text: String) -> String {
        if !self.values.iter().any(|secret| text.contains(secret.as_str())) {
            return text;
        }
        self.values.iter().fold(text, |text, secret| text.replace(secret.as_str(), HIDDEN))
    }

    /// Returns how many bytes after a cut `cut` needs to recognise every secret that begins before it.
    pub(crate) fn overlap(&self) -> usize {
        self.values.iter().map(String::len).max().unwrap_or(0)
    }

    /// Returns where to cut a text that is too long: at `max`, or before a secret that crosses it, because
    /// neither part could be recognised.
    pub(crate) fn cut(&self, text: &[u8], max: usize) -> usize {
        let mut at = max.min(text.len());
        // A moved cut may split another secret.
        while let Some(begin) =
            self.values.iter().filter_map(|secret| halved(text, secret.as_bytes(), at)).min()
        {
            at = begin;
        }
        at
    }

    /// Returns how many bytes at the end of a text may be the beginning of a secret.
    pub(crate) fn begun(&self, text: &str) -> usize {
        let begun = |secret: &String| {
            let most = (secret.len() - 1).min(text.len());
            (1..=most)
                .rev()
                .find(|length| secret.is_char_boundary(*length) && text.ends_with(&secret[..*length]))
        };
        self.values.iter().filter_map(begun).max().unwrap_or(0)
    }

    /// Returns the signal without secrets.
    pub(crate) fn hide_in(&self, signal: Signal) -> Signal {
        if self.values.is_empty() {
            return signal;
        }
        match signal {
            Signal::Log { stream, line } => Signal::Log { stream, line: self.hide(line) },
            Signal::Garbled { line, reason } => {
                Signal::Garbled { line: self.hide(line), reason: self.hide(reason) }
            }
            // The session id must stay as the agent knows it.
            Signal::Session { id, begun, told } => {
                Signal::Session { id, begun: begun.map(|why| self.hide(why)), told }
            }
            Signal::Used { more, session } => Signal::Used { more, session },
            Signal::Stalled { quiet } => Signal::Stalled { quiet },
            Signal::Message(message) => Signal::Message(self.hide_in_message(message)),
            Signal::Called(message, reply) => Signal::Called(self.hide_in_message(message), reply),
            Signal::Permission(PermissionAsked { tool, matches, question }) => {
                let (matches, question) = (self.hide(matches), self.hide(question));
                Signal::Permission(PermissionAsked { tool, matches, question })
            }
            Signal::Keep { label, reply } => Signal::Keep { label: self.hide(label), reply },
            Signal::Activity(activity) => Signal::Activity(self.hide_in_activity(activity)),
        }
    }

    fn hide_in_message(&self, message: Message) -> Message {
        let mut value = serde_json::to_value(&message).unwrap_or_default();
        self.hide_in_value(&mut value);
        // Only texts were replaced by texts, so the message has the same kind.
        serde_json::from_value(value).unwrap_or(Message::Progress { text: HIDDEN.to_owned(), percent: None })
    }

    fn hide_in_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.hide(std::mem::take(text)),
            Value::Array(items) => items.iter_mut().for_each(|item| self.hide_in_value(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.hide_in_value(field)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn hide_in_activity(&self, activity: Activity) -> Activity {
        match activity {
            Activity::Plan { mut steps } => {
                steps.iter_mut().for_each(|step| step.text = self.hide(std::mem::take(&mut step.text)));
                Activity::Plan { steps }
            }
            Activity::Tool { id, title, kind, status, paths, mut diffs } => {
                diffs.iter_mut().for_each(|diff| diff.path = self.hide(std::mem::take(&mut diff.path)));
                let paths = paths.into_iter().map(|path| self.hide(path)).collect();
                Activity::Tool { id: self.hide(id), title: self.hide(title), kind, status, paths, diffs }
            }
            Activity::Permission { title, kind, answer } => {
                Activity::Permission { title: self.hide(title), kind, answer }
            }
        }
    }
}

/// Returns the start of a secret that crosses this position.
fn halved(text: &[u8], secret: &[u8], at: usize) -> Option<usize> {
    let first = (at + 1).saturating_sub(secret.len());
    (first..at).find(|begin| text.get(*begin..begin + secret.len()) == Some(secret))
}

#[cfg(test)]
mod tests {
    use super::Secrets;
    use crate::message::Message;
    use crate::signal::Signal;

    /// Agents 11: breaks when a secret is forwarded, or a value that is not a secret is hidden.
    #[test]
    fn secrets_are_hidden_and_ordinary_words_are_not() {
        let given = [
            ("API_KEY", "sk-1234567890"),
            ("HOME", "/some/place"),
            ("LEVEL", "high"),
            ("Q", "pass\"word"),
            ("AIDER_MODEL", "openai/some-model"),
            ("OPENAI_API_BASE", "https://me:letmein99@models.example.org/v1"),
        ];
        let secrets = Secrets::of(given.map(|(name, value)| (name, value.to_owned())), &["Q".to_owned()]);
        let hidden = |text: &str| secrets.hide(text.to_owned());
        assert_eq!(hidden("key=sk-1234567890;"), "key=[hidden];");
        assert_eq!(hidden("level high in /some/place"), "level high in /some/place");
        assert_eq!(hidden("Model: openai/some-model"), "Model: openai/some-model");
        assert_eq!(
            hidden("POST https://me:letmein99@models.example.org/v1: letmein99 is wrong"),
            "POST https://[hidden]@models.example.org/v1: [hidden] is wrong"
        );
        assert_eq!(
            (hidden("pass\"word"), hidden(r#"{"x":"pass\"word"}"#)),
            ("[hidden]".into(), r#"{"x":"[hidden]"}"#.into())
        );
        let ask = Message::Ask { question: "use sk-1234567890?".into(), options: vec![] };
        let seen = secrets.hide_in(Signal::Message(ask));
        assert!(!format!("{seen:?}").contains("sk-123"), "{seen:?}");
    }

    /// N9. Breaks when a truncated line shows the beginning of a secret, or one line of a multi-line secret
    /// is not hidden.
    #[test]
    fn a_cut_never_halves_a_secret_and_each_line_of_one_is_hidden() {
        let key = "-----BEGIN KEY-----\nMIIEvQIBADANBg\nkqhkiG9w0\n-----END KEY-----";
        let secrets =
            Secrets::of([("KEY", key.to_owned()), ("TOKEN", "abcdefgh".to_owned())], &["KEY".to_owned()]);
        assert_eq!(secrets.hide("x MIIEvQIBADANBg".to_owned()), "x [hidden]");
        let text = b"0123abcdefgh89";
        for (max, at) in [(3, 3), (4, 4), (5, 4), (11, 4), (12, 12), (13, 13), (99, 14)] {
            assert_eq!(secrets.cut(text, max), at, "cut at {max}");
        }
        assert_eq!(["x abcd", "abcdefgh", "x -----B", "x"].map(|text| secrets.begun(text)), [4, 0, 6, 0]);
        assert_eq!(secrets.overlap(), key.len() + 3, "as it stands in JSON");
    }
}
