//! Small words that every view uses: times, short ids, and the first line of a task.

use drydock_api::Plan;
use jiff::Timestamp;
use maud::{Markup, html};

use crate::render::time::ago;

/// How much of a commit's id is shown.
const COMMIT_CHARS: usize = 10;
/// How much of a plan's or decision's random part is shown where many stand side by side.
const ID_CHARS: usize = 8;

/// The time that a view is made at.
pub(super) fn now() -> Timestamp {
    let micros = drydock_engine::now().as_micros();
    Timestamp::from_microsecond(micros).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// Returns a time of the wire as people say it; the exact one is in its title.
pub(super) fn when(at: &str) -> Markup {
    html! { time datetime=(at) title=(at) { (ago(at, now())) } }
}

/// Returns the beginning of a commit's id.
pub(super) fn commit(id: &str) -> &str {
    id.get(..COMMIT_CHARS).unwrap_or(id)
}

/// Returns the beginning of an id, with its prefix: enough to be typed.
pub(super) fn short_id(id: &str) -> &str {
    let prefix = id.find('-').map_or(0, |at| at + 1);
    id.get(..prefix + ID_CHARS).unwrap_or(id)
}

/// Returns the line by which a person knows a plan.
pub(super) fn title(plan: &Plan) -> &str {
    first_line(&plan.task)
}

/// Returns the first line that says something.
pub(super) fn first_line(text: &str) -> &str {
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("(no words)")
}

/// Returns a text in which the parts between backticks are code.
pub(super) fn with_code(text: &str) -> Markup {
    html! {
        @for (at, part) in text.split('`').enumerate() {
            @if at % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

/// Returns a text that begins like a sentence.
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
