//! The rule about plain English: phrases for which technical prose has a simpler word are rare in every kind of text.
//! One phrase is a place to look at and not an error, because "who" is right about a person. Therefore the rule limits
//! their rate over the workspace. It reads words, not grammar, and skips code inside prose.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::places::is_sql;
use super::rules::Violation;
use super::source::{SourceFile, line_at, words};
use super::tree::SourceTree;

/// The phrases, as words in a row. `a|b` is one word of several, `!a|b` any word except these.
const PHRASES: &[&str] = &[
    "tell|tells|telling|told",
    "mend|mends|mended|mending",
    "who|whom|whoever",
    "nobody|somebody|anybody|everybody",
    WHAT_CLAUSE,
    "go|goes|going|went|gone on",
    "come|comes|came to|of",
    "by itself|themselves",
    "at the most|least|latest",
    "however often|much|many|late|it|its|a|they",
    "whatever|whichever",
    "anew",
    "for ever|good",
    "as ever",
    "is|are|was|were no !longer|more|doubt",
    "let|lets|letting go of",
    "unless said",
    "heed|shall",
];

/// A clause with `what` in place of a noun: "what is left" for "the rest".
const WHAT_CLAUSE: &str = "what is|was|were|are|has|had|it|they|a|an|the|others|comes|came|cannot|could|only|no|\
                           nobody|somebody|belongs|left|lies|stands|changes|changed|happens|happened";

/// The permitted number of phrases per 1,000 words, for each kind of text.
const RATE_MAX: usize = 2;

/// The number of lines that are reported for a kind of text.
const LINES_MAX: usize = 20;

/// A string literal with fewer words is a name, a format or a list, and not a text for users.
const STRING_WORDS_MIN: usize = 4;

/// Each kind of text has few phrases of the list. Test files, and literals in tests, are skipped.
pub(crate) fn prose_is_plain(tree: &SourceTree) -> Vec<Violation> {
    let mut totals: BTreeMap<ProseKind, Total> = BTreeMap::new();
    for prose in tree_prose(tree) {
        totals.entry(prose.kind).or_default().add(&prose);
    }
    totals.into_iter().flat_map(|(kind, total)| total.findings(kind)).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ProseKind {
    ModuleHeader,
    DocComment,
    Comment,
    UserText,
    Markdown,
}

impl ProseKind {
    /// Returns the kind of a comment, and its text without slashes.
    fn of_comment(text: &str) -> (Self, &str) {
        let kinds = [("//!", Self::ModuleHeader), ("///", Self::DocComment), ("//", Self::Comment)];
        let found = kinds.iter().find_map(|(mark, kind)| Some((*kind, text.strip_prefix(mark)?)));
        found.unwrap_or((Self::Comment, text))
    }

    fn shown(self) -> &'static str {
        match self {
            Self::ModuleHeader => "module headers",
            Self::DocComment => "doc comments",
            Self::Comment => "comments",
            Self::UserText => "string literals",
            Self::Markdown => "Markdown files",
        }
    }
}

/// A coherent text: a literal, a comment of one or more lines, or a document.
struct Prose<'a> {
    kind: ProseKind,
    path: &'a str,
    /// The line of the file at which the text starts.
    line: usize,
    text: String,
}

fn tree_prose(tree: &SourceTree) -> Vec<Prose<'_>> {
    let mut found = Vec::new();
    for file in tree.texts().filter(|file| file.path.ends_with(".md") && !file.path.contains("/tests/")) {
        let text = file.text.clone();
        found.push(Prose { kind: ProseKind::Markdown, path: &file.path, line: 1, text });
    }
    for (path, source) in tree.production() {
        found.extend(comments(path, source));
        let texts = source.production_strings().filter(|literal| is_user_text(&literal.text));
        found.extend(texts.map(|literal| Prose {
            kind: ProseKind::UserText,
            path,
            line: literal.line,
            text: unescaped(&literal.text),
        }));
    }
    found
}

/// Returns the comments; lines of one kind that follow each other are one text, because a phrase can span two lines.
fn comments<'a>(path: &'a str, source: &SourceFile) -> Vec<Prose<'a>> {
    let mut found: Vec<Prose<'_>> = Vec::new();
    let mut next_line = 0;
    for comment in &source.comments {
        let (kind, text) = ProseKind::of_comment(&comment.text);
        match found.last_mut().filter(|before| before.kind == kind && comment.line == next_line) {
            Some(before) => {
                before.text.push('\n');
                before.text.push_str(text);
            }
            None => found.push(Prose { kind, path, line: comment.line, text: text.to_owned() }),
        }
        next_line = comment.line + comment.text.matches('\n').count() + 1;
    }
    found
}

fn is_user_text(literal: &str) -> bool {
    literal.split_whitespace().count() >= STRING_WORDS_MIN && !is_sql(literal)
}

/// Returns a literal's text without escapes. A line that ends with a backslash continues in the next.
fn unescaped(literal: &str) -> String {
    literal.replace("\\\n", "\n").replace("\\n", ";").replace("\\t", ";")
}

/// The words of a kind of text, and the phrases found in them.
#[derive(Default)]
struct Total {
    words: usize,
    /// The phrases by path and line.
    hits: BTreeMap<(String, usize), Vec<String>>,
}

impl Total {
    fn add(&mut self, prose: &Prose<'_>) {
        let text = without_code(&prose.text);
        let words = prose_words(&text);
        self.words += words.len();
        for at in 0..words.len() {
            let length = PHRASES.iter().find_map(|phrase| phrase_length(phrase, &words[at..]));
            let Some(length) = length else { continue };
            let phrase: Vec<&str> = words[at..at + length].iter().map(|word| word.text).collect();
            let line = prose.line + line_at(&text, words[at].at) - 1;
            self.hits.entry((prose.path.to_owned(), line)).or_default().push(phrase.join(" "));
        }
    }

    /// Returns the lines with the most phrases if the rate is too high.
    fn findings(self, kind: ProseKind) -> Vec<Violation> {
        let hits: usize = self.hits.values().map(Vec::len).sum();
        if hits * 1000 <= RATE_MAX * self.words {
            return vec![];
        }
        let mut lines: Vec<_> = self.hits.into_iter().collect();
        lines.sort_by_key(|(_, phrases)| Reverse(phrases.len()));
        let found = lines.into_iter().take(LINES_MAX).map(|((path, line), phrases)| {
            let text = format!(
                "\"{}\"; {} have {hits} such phrases in {} words, at most {RATE_MAX} per 1,000 are permitted",
                phrases.join("\", \""),
                kind.shown(),
                self.words
            );
            Violation::new(&path, line, text)
        });
        found.collect()
    }
}

/// A word of prose.
struct ProseWord<'a> {
    text: &'a str,
    at: usize,
    /// Only spaces or one line end separate it from the word before.
    adjacent: bool,
}

fn prose_words(text: &str) -> Vec<ProseWord<'_>> {
    let mut found = Vec::new();
    let mut end = 0;
    for (at, word) in words(text) {
        let gap = &text[end..at];
        end = at + word.len();
        // Numbers, and the rest of a word such as `plan's`, are not words.
        if word.starts_with(char::is_alphabetic) && gap != "'" {
            let adjacent = gap.trim().is_empty() && gap.matches('\n').count() <= 1;
            found.push(ProseWord { text: word, at, adjacent });
        }
    }
    found
}

/// Returns the number of words of a phrase if the text starts with it.
fn phrase_length(phrase: &str, text: &[ProseWord<'_>]) -> Option<usize> {
    let mut length = 0;
    for step in phrase.split(' ') {
        let word = text.get(length).filter(|word| length == 0 || word.adjacent)?;
        let listed = |words: &str| words.split('|').any(|one| one.eq_ignore_ascii_case(word.text));
        let matches = step.strip_prefix('!').map_or_else(|| listed(step), |excluded| !listed(excluded));
        if !matches {
            return None;
        }
        length += 1;
    }
    Some(length)
}

/// Blanks fenced code, code between backticks and the names in placeholders, line for line.
fn without_code(text: &str) -> String {
    let mut fenced = false;
    let mut shown = String::with_capacity(text.len());
    for line in text.lines() {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        if !fence && !fenced {
            shown.push_str(&without_placeholders(&without_spans(line)));
        }
        shown.push('\n');
    }
    shown
}

/// Replaces each pair of backticks and the code inside by one backtick, so that the words around it are not adjacent.
fn without_spans(line: &str) -> String {
    let parts: Vec<&str> = line.split('`').collect();
    let prose = parts.iter().enumerate().filter(|(index, _)| index % 2 == 0 || index + 1 == parts.len());
    prose.map(|(_, part)| *part).collect::<Vec<_>>().join("`")
}

/// Replaces each `{name}` and `{{ name }}` by a closing brace. Braces around several words, as in JSON, stay.
fn without_placeholders(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, after)) = rest.split_once('{') {
        shown.push_str(before);
        let name = after.split_once('}').map(|(inside, _)| inside);
        let is_placeholder =
            name.is_some_and(|name| !name.trim_matches(['{', ' ']).contains(char::is_whitespace));
        rest = match name.filter(|_| is_placeholder) {
            Some(name) => &after[name.len()..],
            None => after,
        };
    }
    shown + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected result if no line is refused.
    const NONE: [usize; 0] = [];

    fn lines(path: &str, text: &str) -> Vec<usize> {
        prose_is_plain(&SourceTree::of(&[(path, text)])).into_iter().map(|found| found.line).collect()
    }

    #[test]
    fn a_phrase_is_refused_in_every_kind_of_text() {
        for (path, text) in [
            ("crates/a/src/x.rs", "//! Nobody waits.\n"),
            ("crates/a/src/x.rs", "/// Goes on with it.\n"),
            ("crates/a/src/x.rs", "f(); // came of it\n"),
            ("crates/a/src/x.rs", "/* The caller is told. */\n"),
            ("crates/a/src/x.rs", "f(\"the plan goes on here\");\n"),
            ("docs/x.md", "This is no error.\n"),
        ] {
            assert_eq!(lines(path, text), [1], "{text}");
        }
    }

    #[test]
    fn every_phrase_of_the_list_is_found() {
        for phrase in PHRASES {
            let first = |step: &str| match step.strip_prefix('!') {
                Some(_) => "other".to_owned(),
                None => step.split('|').next().unwrap_or_default().to_owned(),
            };
            let text: Vec<String> = phrase.split(' ').map(first).collect();
            assert_eq!(lines("docs/x.md", &format!("Fine.\n{}.\n", text.join(" "))), [2], "{phrase}");
        }
    }

    #[test]
    fn a_phrase_over_two_lines_is_found_and_one_over_a_full_stop_is_not() {
        assert_eq!(lines("crates/a/src/x.rs", "f();\n    // It goes\n    // on there.\n"), [2]);
        assert_eq!(lines("crates/a/src/x.rs", "f(\"then it goes \\\n   on and ends\");\n"), [1]);
        assert_eq!(lines("crates/a/src/x.rs", "f(\"a b c d\\n\\\n   nobody comes\");\n"), [2]);
        for fine in ["It goes. On it.", "It goes\n\non.", "- goes\n- on", "It is no longer there."] {
            assert_eq!(lines("docs/x.md", fine), NONE, "{fine}");
        }
    }

    #[test]
    fn code_inside_prose_is_not_prose() {
        let documents =
            ["Calls `told` here.", "```\nlet who = told();\n```\nFine.", "`a` and `who`, `whom`."];
        for text in documents {
            assert_eq!(lines("docs/x.md", text), NONE, "{text}");
        }
        assert_eq!(lines("docs/x.md", "`a` told `b`."), [1]);
        assert_eq!(lines("docs/x.md", "```\nfine\n```\nNobody."), [4]);
    }

    #[test]
    fn names_in_placeholders_and_short_literals_are_not_user_text() {
        for fine in ["{who} reached a rate limit", "add a greeting for {{ who }} now", "who|whom", "tell"] {
            assert_eq!(lines("crates/a/src/x.rs", &format!("f(\"{fine}\");")), NONE, "{fine}");
        }
        for bad in ["{who} told the plan {} again", "{{nobody is in braces here}}"] {
            assert_eq!(lines("crates/a/src/x.rs", &format!("f(\"{bad}\");")), [1], "{bad}");
        }
        assert_eq!(lines("crates/a/src/x.rs", "f(\"SELECT who FROM told\");"), NONE, "SQL");
    }

    #[test]
    fn tests_are_not_measured() {
        assert_eq!(lines("crates/a/tests/x.rs", "// Nobody.\n"), NONE);
        assert_eq!(
            lines("crates/a/src/x.rs", "#[cfg(test)]\nmod tests { f(\"and nobody is here\"); }\n"),
            NONE
        );
    }

    #[test]
    fn the_rate_is_limited_and_the_worst_lines_come_first() {
        let fine = "word ".repeat(497);
        assert_eq!(lines("docs/x.md", &format!("{fine}\nIt shall be.\n")), NONE, "1 in 500");
        assert_eq!(lines("docs/x.md", &format!("{fine}\nIt shall.\n")), [2], "1 in 499");
        assert_eq!(lines("docs/x.md", "Nobody.\n\nNobody shall.\n"), [3, 1]);
        assert_eq!(lines("docs/x.md", &"Nobody.\n".repeat(LINES_MAX + 5)).len(), LINES_MAX);
        let found = prose_is_plain(&SourceTree::of(&[("docs/x.md", "Nobody shall.\n")]));
        assert!(
            found[0].to_string().starts_with("docs/x.md:1: \"Nobody\", \"shall\"; Markdown files have 2")
        );
    }
}
