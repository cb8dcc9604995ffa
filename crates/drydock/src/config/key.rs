//! The message for an unknown key: its line, and the known key that was probably meant.

use drydock_domain::edits;

/// Returns the error message, with the nearest known key if one is close.
///
/// The keys are taken from serde's own message, so they are exactly those that serde compared.
pub(crate) fn explain(message: &str) -> String {
    let mut quoted = message.split('`').skip(1).step_by(2);
    let unknown = message.starts_with("unknown field").then(|| quoted.next()).flatten();
    let Some(unknown) = unknown else { return message.to_owned() };
    let known: Vec<&str> = quoted.collect();
    match nearest(unknown, &known) {
        Some(near) => format!("unknown key `{unknown}`; did you mean `{near}`?"),
        None => format!("unknown key `{unknown}`; known here: {}", known.join(", ")),
    }
}

/// Returns the known word that is at most two edits away, and at most half of the length of the given one.
pub(crate) fn nearest<'a>(given: &str, known: &[&'a str]) -> Option<&'a str> {
    let allowed = 2.min(given.chars().count() / 2);
    let near = known.iter().map(|word| (edits(given, word), *word)).min()?;
    (near.0 <= allowed).then_some(near.1)
}

/// Returns the line number, from 1, of a position in a text.
pub(crate) fn line_of(text: &str, at: usize) -> usize {
    1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_recognised_and_another_word_is_not() {
        let known = ["protocol", "command", "timeout"];
        assert_eq!(nearest("tmeout", &known), Some("timeout"));
        assert_eq!(nearest("protocoll", &known), Some("protocol"));
        assert_eq!(nearest("colour", &known), None);
        assert_eq!(nearest("x", &["y"]), None);
    }

    #[test]
    fn other_complaints_are_left_as_they_are() {
        assert_eq!(explain("invalid type: integer `5`"), "invalid type: integer `5`");
    }
}
