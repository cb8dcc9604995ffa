//! Formatting that all views share: times, short ids, and the first line of a task.

use drydock_api::Plan;
use jiff::Timestamp;
use maud::{Markup, html};

use crate::render::time::ago;

/// How many characters of a commit id are shown.
const COMMIT_CHARS: usize = 10;
/// How many characters of the random part of an id are shown in lists.
const ID_CHARS: usize = 8;

/// Returns the current time.
pub(super) fn now() -> Timestamp {
    let micros = drydock_engine::now().as_micros();
    Timestamp::from_microsecond(micros).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// Returns a timestamp of the API as relative time, with the exact time in its title.
pub(super) fn when(at: &str) -> Markup {
    html! { time datetime=(at) title=(at) { (ago(at, now())) } }
}

/// Returns the shortened id of a commit.
pub(super) fn commit(id: &str) -> &str {
    id.get(..COMMIT_CHARS).unwrap_or(id)
}

/// Returns the shortened id with its prefix, which is enough to type.
pub(super) fn short_id(id: &str) -> &str {
    let prefix = id.find('-').map_or(0, |at| at + 1);
    id.get(..prefix + ID_CHARS).unwrap_or(id)
}

/// Returns the line that identifies a plan to a person.
pub(super) fn title(plan: &Plan) -> &str {
    first_line(&plan.task)
}

/// Returns the first line that is not empty.
pub(super) fn first_line(text: &str) -> &str {
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("(empty)")
}

/// Returns a text with the parts between backticks as code.
pub(super) fn with_code(text: &str) -> Markup {
    html! {
        @for (at, part) in text.split('`').enumerate() {
            @if at % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

/// Returns a text with its first letter in upper case.
pub(super) fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// Escapes a text for use in a query.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(byte.into()),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_cut_behind_their_prefix_and_only_when_long() {
        assert_eq!(short_id("pln-7k3m9q2x5v8wz4t1"), "pln-7k3m9q2x");
        assert_eq!(short_id("pln-1"), "pln-1");
        assert_eq!(short_id("é"), "é");
        assert_eq!(commit("0123456789abcdef"), "0123456789");
        assert_eq!(escaped("a b&c/é"), "a%20b%26c%2F%C3%A9");
    }
}
