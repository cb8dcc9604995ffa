//! Syntax highlighting: comments, strings, numbers, keywords, types and calls. It works line by line in one pass,
//! with the comment or string that the previous line left open. A diff shows parts of files, so a full grammar could
//! not know the context.

use super::language::{Case, Language};

/// A comment or string that a line leaves open for the next one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum LexState {
    #[default]
    Nothing,
    Comment,
    /// A string that ends with this mark.
    Text(&'static str),
}

/// The CSS class and the text of a part of a line.
type ColouredSpan<'l> = (&'static str, &'l str);

const PLAIN: &str = "";
const COMMENT: &str = "c";
const TEXT: &str = "s";
const NUMBER: &str = "n";
const WORD: &str = "k";
const TYPE: &str = "t";
const CALL: &str = "f";

/// Writes a line as HTML. The byte range `marked` is highlighted.
pub(super) fn line(
    out: &mut String,
    text: &str,
    language: Option<&'static Language>,
    open: &mut LexState,
    marked: Option<(usize, usize)>,
) {
    let pieces = match language {
        Some(language) => pieces(text, language, open),
        None => vec![(PLAIN, text)],
    };
    let (from, to) = marked.filter(|(from, to)| from < to).unwrap_or((usize::MAX, usize::MAX));
    let mut at = 0;
    for (class, piece) in pieces {
        let cuts = [from.clamp(at, at + piece.len()) - at, to.clamp(at, at + piece.len()) - at];
        write(out, class, &piece[..cuts[0]], false);
        write(out, class, &piece[cuts[0]..cuts[1]], true);
        write(out, class, &piece[cuts[1]..], false);
        at += piece.len();
    }
}

fn write(out: &mut String, class: &str, text: &str, is_marked: bool) {
    if text.is_empty() {
        return;
    }
    let tag = if is_marked { "mark" } else { "span" };
    match (class, is_marked) {
        (PLAIN, false) => return escape(out, text),
        (PLAIN, true) => out.push_str("<mark>"),
        (class, _) => out.push_str(&format!("<{tag} class={class}>")),
    }
    escape(out, text);
    out.push_str(&format!("</{tag}>"));
}

fn escape(out: &mut String, text: &str) {
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            letter if letter.is_control() && letter != '\t' => out.push('\u{fffd}'),
            letter => out.push(letter),
        }
    }
}

fn pieces<'l>(text: &'l str, language: &'static Language, open: &mut LexState) -> Vec<ColouredSpan<'l>> {
    let mut found = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (class, length) = match *open {
            LexState::Comment => {
                (COMMENT, language.block.map_or(rest.len(), |(_, end)| close(rest, 0, end, open)))
            }
            LexState::Text(end) => (TEXT, close(rest, 0, end, open)),
            LexState::Nothing => next(rest, language, open),
        };
        let (piece, left) = rest.split_at(length);
        found.push((class, piece));
        rest = left;
    }
    found
}

/// Returns the class and the length of the next part of a text.
fn next(rest: &str, language: &'static Language, open: &mut LexState) -> (&'static str, usize) {
    if language.line.iter().any(|mark| rest.starts_with(mark)) {
        return (COMMENT, rest.len());
    }
    if let Some((begin, end)) = language.block
        && rest.starts_with(begin)
    {
        *open = LexState::Comment;
        return (COMMENT, close(rest, begin.len(), end, open));
    }
    if let Some(quote) = language.long.iter().find(|quote| rest.starts_with(**quote)) {
        *open = LexState::Text(quote);
        return (TEXT, close(rest, quote.len(), quote, open));
    }
    let first = rest.chars().next().unwrap_or(' ');
    if language.quotes.contains(&first) {
        return (TEXT, quoted(rest, first));
    }
    if first.is_ascii_digit() {
        return (
            NUMBER,
            span(rest, |letter| letter.is_ascii_alphanumeric() || letter == '_' || letter == '.'),
        );
    }
    if first.is_alphabetic() || first == '_' {
        let length = span(rest, |letter| letter.is_alphanumeric() || letter == '_');
        return (class_of(&rest[..length], &rest[length..], language), length);
    }
    (PLAIN, span(rest, |letter| !starts_something(letter)).max(first.len_utf8()))
}

/// Returns the length up to and including the end mark. If the mark is found, nothing stays open.
fn close(rest: &str, from: usize, end: &str, open: &mut LexState) -> usize {
    match rest[from..].find(end) {
        Some(at) => {
            *open = LexState::Nothing;
            from + at + end.len()
        }
        None => rest.len(),
    }
}

fn quoted(rest: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, letter) in rest.char_indices().skip(1) {
        if letter == quote && !is_escaped {
            return at + letter.len_utf8();
        }
        is_escaped = letter == '\\' && !is_escaped;
    }
    rest.len()
}

fn class_of(word: &str, behind: &str, language: &Language) -> &'static str {
    let is_word = match language.case {
        Case::Exact => language.words.contains(&word),
        Case::Either => language.words.contains(&word.to_ascii_lowercase().as_str()),
    };
    if is_word {
        WORD
    } else if word.starts_with(char::is_uppercase) && word.contains(char::is_lowercase) {
        TYPE
    } else if behind.starts_with('(') || behind.starts_with("!(") {
        CALL
    } else {
        PLAIN
    }
}

fn starts_something(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '"' | '\'' | '`' | '/' | '#' | '-' | '<')
}

fn span(text: &str, belongs: impl Fn(char) -> bool) -> usize {
    text.find(|letter| !belongs(letter)).unwrap_or(text.len())
}

/// Returns the byte range that differs in each of two lines, or none if they have too little in common.
pub(super) fn difference(old: &str, new: &str) -> Option<((usize, usize), (usize, usize))> {
    let before: usize = old
        .chars()
        .zip(new.chars())
        .take_while(|(one, other)| one == other)
        .map(|(one, _)| one.len_utf8())
        .sum();
    let (old_rest, new_rest) = (&old[before..], &new[before..]);
    let behind: usize = old_rest
        .chars()
        .rev()
        .zip(new_rest.chars().rev())
        .take_while(|(one, other)| one == other)
        .map(|(one, _)| one.len_utf8())
        .sum();
    let common = before + behind;
    if common * 3 < old.len().max(new.len()) {
        return None;
    }
    Some(((before, old.len() - behind), (before, new.len() - behind)))
}

#[cfg(test)]
mod tests {
    use super::super::language::language;
    use super::*;

    fn shown(path: &str, lines: &[&str]) -> String {
        let mut open = LexState::default();
        let mut out = String::new();
        for text in lines {
            line(&mut out, text, language(path), &mut open, None);
            out.push('\n');
        }
        out
    }

    #[test]
    fn words_strings_comments_and_numbers_are_told_apart() {
        assert_eq!(
            shown("a.rs", &["let x = f(\"a<b\", 1_0); // Why"]),
            "<span class=k>let</span> x = <span class=f>f</span>(<span class=s>&quot;a&lt;b&quot;</span>, \
             <span class=n>1_0</span>); <span class=c>// Why</span>\n"
        );
        assert_eq!(shown("a.unknown", &["let <x>"]), "let &lt;x&gt;\n");
        assert_eq!(shown("a.sql", &["drop From"]), "<span class=k>drop</span> <span class=k>From</span>\n");
    }

    #[test]
    fn what_is_open_stays_open_on_the_next_line() {
        assert_eq!(
            shown("a.c", &["/* a", "b */ int"]),
            "<span class=c>/* a</span>\n<span class=c>b */</span> <span class=k>int</span>\n"
        );
        assert!(shown("a.py", &["x = \"\"\"a", "def", "\"\"\""]).contains("<span class=s>def</span>"));
    }

    /// Breaks if a changed part splits a character, or its HTML is not closed.
    #[test]
    fn the_changed_part_is_set_off_across_pieces() {
        let (old, new) = ("let größe = 1;", "let grüße = 1;");
        let (_, marked) = difference(old, new).unwrap();
        let mut out = String::new();
        line(&mut out, new, language("a.rs"), &mut LexState::default(), Some(marked));
        assert_eq!(out, "<span class=k>let</span> gr<mark>ü</mark>ße = <span class=n>1</span>;");
        assert_eq!(difference("abc", "xyz"), None);
    }

    /// Breaks if some text makes highlighting lose or add a character, or never end.
    #[test]
    fn no_letter_is_lost_whatever_the_text() {
        let texts = ["", "'", "\"\\", "/*", "*/", "`${", "é\u{1f600}'é", "#", "--", "<!--", "0x1F.é", "\t"];
        for path in ["a.rs", "a.py", "a.js", "a.sql", "a.html", "a.sh", "a.css", "a.toml"] {
            for one in texts {
                for other in texts {
                    let text = format!("{one}{other}");
                    let mut open = LexState::default();
                    let whole: String = language(path)
                        .map(|known| pieces(&text, known, &mut open))
                        .unwrap_or_default()
                        .iter()
                        .map(|(_, piece)| *piece)
                        .collect();
                    assert_eq!(whole, text, "{path}");
                }
            }
        }
    }
}
