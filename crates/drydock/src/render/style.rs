//! The styles of terminal output, and the escaping of control characters.

use std::borrow::Cow;

use anstyle::{AnsiColor, Style};

/// Names and ids.
pub(crate) const STRONG: Style = Style::new().bold();
/// Labels and secondary text.
pub(crate) const FAINT: Style = Style::new().dimmed();
/// Success.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// A warning.
pub(crate) const CAUTION: Style = AnsiColor::Yellow.on_default();
/// An error.
pub(crate) const BAD: Style = AnsiColor::Red.on_default();
/// Work in progress.
pub(crate) const BUSY: Style = AnsiColor::Cyan.on_default();

pub(crate) fn paint(style: Style, text: &str) -> String {
    format!("{style}{}{style:#}", plain(text))
}

/// Returns the text with control characters made visible (`^[` for escape). Line breaks and tabs stay.
///
/// Agents write text that we print, and a terminal executes the control sequences it receives.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    let harmful = |c: char| c.is_control() && c != '\n' && c != '\t';
    if !text.contains(harmful) {
        return Cow::Borrowed(text);
    }
    let mut harmless = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if !harmful(c) => harmless.push(c),
            '\u{7f}' => harmless.push_str("^?"),
            c if (c as u32) < 0x20 => {
                harmless.push('^');
                harmless.push(char::from(c as u8 + 0x40));
            }
            _ => harmless.push('\u{fffd}'),
        }
    }
    Cow::Owned(harmless)
}

/// Returns the first line of a text, cut to a number of characters.
pub(crate) fn short(text: &str, chars_max: usize) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    let cut = line.chars().count() > chars_max || text.trim().lines().nth(1).is_some();
    let mut short: String = line.chars().take(chars_max).collect();
    if cut {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_from_elsewhere_cannot_steer_a_terminal() {
        assert_eq!(plain("a\u{1b}[2Jb\u{7}\u{9b}c\u{7f}\r\n\td"), "a^[[2Jb^G\u{fffd}c^?^M\n\td");
        assert!(!paint(BAD, "\u{1b}]0;x").contains("\u{1b}]"));
    }

    #[test]
    fn a_long_text_is_cut_to_its_first_line() {
        assert_eq!(short("abc", 3), "abc");
        assert_eq!(short("abcd", 3), "abc…");
        assert_eq!(short("ab\ncd", 9), "ab…");
    }
}
