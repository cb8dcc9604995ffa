//! The text of an error with its causes, for people and logs. Our errors keep the cause in `source()` only,
//! so printing an error without this function loses the cause.

use std::error::Error;

/// Returns the text of an error and its causes, each once.
///
/// Errors of other crates may include their cause's text, or be included in it; such duplicates are removed.
pub fn error_chain(error: &dyn Error) -> String {
    let mut text = said(error);
    let mut last_at = 0;
    let mut cause = error.source();
    while let Some(error) = cause {
        let piece = said(error);
        if piece.contains(&text[last_at..]) {
            text.truncate(last_at);
            text.push_str(&piece);
        } else if !text.contains(&piece) {
            text.push_str(": ");
            last_at = text.len();
            text.push_str(&piece);
        }
        cause = error.source();
    }
    text
}

fn said(error: &dyn Error) -> String {
    error.to_string().trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Layer {
        text: &'static str,
        source: Option<Box<Layer>>,
    }

    fn stacked(texts: &[&'static str]) -> Layer {
        let mut layers = texts.iter().rev();
        let deepest = Layer { text: layers.next().unwrap(), source: None };
        layers.fold(deepest, |cause, text| Layer { text, source: Some(Box::new(cause)) })
    }

    /// Fails if a cause is missing or repeated.
    #[test]
    fn every_cause_is_told_once() {
        for (texts, expected) in [
            (&["could not renew"][..], "could not renew"),
            (&["could not renew", "db error", "deadlock"], "could not renew: db error: deadlock"),
            (&["no session: refused", "refused", "by policy"], "no session: refused: by policy"),
            (&["cannot write", "read-only", "code 8: read-only"], "cannot write: code 8: read-only"),
            (&["no slot: timed out\n", "timed out"], "no slot: timed out"),
        ] {
            assert_eq!(error_chain(&stacked(texts)), expected);
        }
    }
}
