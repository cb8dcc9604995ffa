//! A lexical scan of a Rust file: its code without comments and the content of literals, its string literals, its
//! comments, and the start of its tests. It recognises tokens, not grammar, which is enough for the rules and keeps a parser out of the
//! build.

/// A scanned Rust file. Line numbers are those of the file, from 1.
#[derive(Debug)]
pub(crate) struct SourceFile {
    /// The code with comments and the content of literals blanked, line for line.
    pub(crate) code: String,
    /// The string literals.
    pub(crate) strings: Vec<Literal>,
    /// The comments; each line comment is separate.
    pub(crate) comments: Vec<Comment>,
    /// The tests inside the file.
    pub(crate) tests: Tests,
    /// The first line of the file.
    pub(crate) opening: String,
}

/// A string literal.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Literal {
    pub(crate) line: usize,
    pub(crate) text: String,
}

/// A comment with its slashes, so that doc comments can be distinguished.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Comment {
    pub(crate) line: usize,
    pub(crate) text: String,
}

/// Where a file's own tests are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tests {
    /// There are none; the file has this many lines.
    Absent { lines: usize },
    /// They fill the file from this line to its end.
    Last { from: usize },
    /// They start at this line, and other code follows them.
    Followed { from: usize },
}

impl SourceFile {
    pub(crate) fn scan(text: &str) -> Self {
        let mut scanner = Scanner {
            chars: text.chars().collect(),
            at: 0,
            line: 1,
            code: String::new(),
            strings: vec![],
            comments: vec![],
        };
        scanner.scan();
        let tests = find_tests(&scanner.code);
        let opening = text.lines().next().unwrap_or_default().to_owned();
        Self { code: scanner.code, strings: scanner.strings, comments: scanner.comments, tests, opening }
    }

    /// Returns the number of lines before the tests.
    pub(crate) fn production_lines(&self) -> usize {
        match self.tests {
            Tests::Absent { lines } => lines,
            Tests::Last { from } | Tests::Followed { from } => from - 1,
        }
    }

    /// Returns the code before the tests.
    pub(crate) fn production(&self) -> &str {
        let end = self
            .code
            .match_indices('\n')
            .nth(self.production_lines().saturating_sub(1))
            .map(|(at, _)| at + 1);
        match self.tests {
            Tests::Absent { .. } => &self.code,
            Tests::Last { from: 1 } | Tests::Followed { from: 1 } => "",
            Tests::Last { .. } | Tests::Followed { .. } => &self.code[..end.unwrap_or(self.code.len())],
        }
    }

    /// Returns the string literals before the tests.
    pub(crate) fn production_strings(&self) -> impl Iterator<Item = &Literal> {
        self.strings.iter().filter(|literal| literal.line <= self.production_lines())
    }
}

/// Returns the line of a byte offset.
pub(crate) fn line_at(code: &str, offset: usize) -> usize {
    code[..offset].matches('\n').count() + 1
}

/// Returns the offset just after the bracket that closes the one at `open`, if it is closed.
pub(crate) fn closing(code: &str, open: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (at, found) in code[open..].char_indices() {
        match found {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return Some(open + at + found.len_utf8());
        }
    }
    None
}

/// Returns each word of the code that is an identifier or keyword, with its offset.
pub(crate) fn words(code: &str) -> impl Iterator<Item = (usize, &str)> {
    let starts = code.char_indices().scan(' ', |before, (at, found)| {
        let starts = is_word(found) && !is_word(*before);
        *before = found;
        Some(starts.then_some(at))
    });
    starts
        .flatten()
        .map(|at| (at, &code[at..at + code[at..].find(|c| !is_word(c)).unwrap_or(code.len() - at)]))
}

fn is_word(found: char) -> bool {
    found.is_alphanumeric() || found == '_'
}

/// Finds the first `#[cfg(test)]` module with a body.
fn find_tests(code: &str) -> Tests {
    const MARK: &str = "#[cfg(test)]";
    for (at, _) in code.match_indices(MARK) {
        let rest = code[at + MARK.len()..].trim_start();
        let Some(named) = rest.strip_prefix("mod ") else { continue };
        let name_ends = named.find(['{', ';']).unwrap_or(named.len());
        if !named[name_ends..].starts_with('{') {
            continue;
        }
        let open = code.len() - named.len() + name_ends;
        let from = line_at(code, at);
        let after = closing(code, open).map_or("", |end| &code[end..]);
        return if after.trim().is_empty() { Tests::Last { from } } else { Tests::Followed { from } };
    }
    Tests::Absent { lines: code.lines().count() }
}

struct Scanner {
    chars: Vec<char>,
    at: usize,
    line: usize,
    code: String,
    strings: Vec<Literal>,
    comments: Vec<Comment>,
}

impl Scanner {
    fn scan(&mut self) {
        while let Some(found) = self.peek(0) {
            match found {
                '/' if matches!(self.peek(1), Some('/' | '*')) => self.comment(),
                '"' => self.string(),
                '\'' => self.quote(),
                _ if is_word(found) => self.word(),
                _ => self.keep(),
            }
        }
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    /// Takes a character into the code.
    fn keep(&mut self) {
        self.take(|found| found);
    }

    /// Takes a character and leaves a space in the code; line ends stay.
    fn blank(&mut self) {
        self.take(|found| if found == '\n' { '\n' } else { ' ' });
    }

    fn take(&mut self, shown: impl Fn(char) -> char) {
        if let Some(found) = self.peek(0) {
            self.line += usize::from(found == '\n');
            self.code.push(shown(found));
            self.at += 1;
        }
    }

    fn blank_while(&mut self, go_on: impl Fn(&Self) -> bool) {
        while self.at < self.chars.len() && go_on(self) {
            self.blank();
        }
    }

    fn comment(&mut self) {
        let (line, start) = (self.line, self.at);
        match self.peek(1) {
            Some('*') => self.block_comment(),
            _ => self.blank_while(|scanner| scanner.peek(0) != Some('\n')),
        }
        self.comments.push(Comment { line, text: self.chars[start..self.at].iter().collect() });
    }

    fn block_comment(&mut self) {
        let mut depth = 0;
        while self.at < self.chars.len() {
            match (self.peek(0), self.peek(1)) {
                (Some('/'), Some('*')) => depth += 1,
                (Some('*'), Some('/')) => depth -= 1,
                _ => {
                    self.blank();
                    continue;
                }
            }
            self.blank();
            self.blank();
            if depth == 0 {
                return;
            }
        }
    }

    /// Takes a string, starting at its opening quote.
    fn string(&mut self) {
        let (line, start) = (self.line, self.at + 1);
        self.keep();
        while let Some(found) = self.peek(0) {
            match found {
                '"' => break,
                '\\' => {
                    self.blank();
                    self.blank();
                }
                _ => self.blank(),
            }
        }
        self.finish_string(line, start);
    }

    /// Takes a raw string, starting at its opening quote; `hashes` follow its closing one.
    fn raw_string(&mut self, hashes: usize) {
        let (line, start) = (self.line, self.at + 1);
        self.keep();
        let ends = |scanner: &Self| {
            scanner.peek(0) == Some('"') && (1..=hashes).all(|ahead| scanner.peek(ahead) == Some('#'))
        };
        self.blank_while(|scanner| !ends(scanner));
        self.finish_string(line, start);
    }

    fn finish_string(&mut self, line: usize, start: usize) {
        let text = self.chars[start.min(self.at)..self.at].iter().collect();
        self.strings.push(Literal { line, text });
        self.keep();
    }

    /// Takes a character literal, or the tick of a lifetime.
    fn quote(&mut self) {
        let escaped = self.peek(1) == Some('\\');
        if !escaped && self.peek(2) != Some('\'') {
            return self.keep();
        }
        self.keep();
        if escaped {
            self.blank();
        }
        // The escaped or plain character itself may be a tick.
        self.blank();
        self.blank_while(|scanner| scanner.peek(0) != Some('\''));
        self.keep();
    }

    /// Takes a word, and the raw or byte string that it may introduce.
    fn word(&mut self) {
        let start = self.at;
        while self.peek(0).is_some_and(is_word) {
            self.keep();
        }
        let word: String = self.chars[start..self.at].iter().collect();
        let hashes = (0..).take_while(|&ahead| self.peek(ahead) == Some('#')).count();
        if matches!(word.as_str(), "r" | "br" | "cr") && self.peek(hashes) == Some('"') {
            for _ in 0..hashes {
                self.keep();
            }
            self.raw_string(hashes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_the_insides_of_literals_are_not_code() {
        let text = "a /* b /* c */ d */ e // f\n\"g\\\"h\" r#\"i\"j\"# b\"k\" 'l' '\\'' '{' x";
        let source = SourceFile::scan(text);
        let words: Vec<&str> = words(&source.code).map(|(_, word)| word).collect();
        assert_eq!(words, ["a", "e", "r", "b", "x"]);
        let strings: Vec<&str> = source.strings.iter().map(|literal| literal.text.as_str()).collect();
        assert_eq!(strings, ["g\\\"h", "i\"j", "k"]);
        assert!(!source.code.contains('{'));
        let comments: Vec<&str> = source.comments.iter().map(|comment| comment.text.as_str()).collect();
        assert_eq!(comments, ["/* b /* c */ d */", "// f"]);
    }

    #[test]
    fn a_lifetime_is_not_the_start_of_a_literal() {
        let source = SourceFile::scan("fn f<'a>(x: &'a str) -> &'static str { \"y\" }");
        assert!(source.code.contains("-> &'static str {"));
    }

    #[test]
    fn lines_stay_where_they_are() {
        let source = SourceFile::scan("\"one\ntwo\" /*\n*/ \"three\"\nend");
        assert_eq!(source.strings[1], Literal { line: 3, text: "three".to_owned() });
        assert_eq!(source.code.lines().count(), 4);
    }

    #[test]
    fn tests_are_found_only_as_a_module_with_a_body() {
        let last = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n";
        assert_eq!(SourceFile::scan(last).tests, Tests::Last { from: 2 });
        assert_eq!(SourceFile::scan(last).production(), "fn a() {}\n");
        assert_eq!(SourceFile::scan(&format!("{last}fn c() {{}}\n")).tests, Tests::Followed { from: 2 });
        assert_eq!(
            SourceFile::scan("#[cfg(test)]\nmod tests;\nfn a() {}\n").tests,
            Tests::Absent { lines: 3 }
        );
        assert_eq!(
            SourceFile::scan("#[cfg(test)]\nfn only_for_tests() {}\n").tests,
            Tests::Absent { lines: 2 }
        );
    }
}
