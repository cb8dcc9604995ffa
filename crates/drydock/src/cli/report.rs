//! What a command came to: data for programs, text for people, and how it ended.

use std::borrow::Cow;
use std::fmt::Display;

use drydock_api::{Problem, exit};
use serde::Serialize;
use serde_json::Value;

use crate::render::next::go_on;

/// A command ends with a report, or with a problem and no data.
pub(crate) type Outcome = Result<Report, Box<Problem>>;

/// What a command came to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Report {
    pub(crate) data: Value,
    /// What stdout gets in text.
    pub(crate) text: String,
    pub(crate) print: Print,
    pub(crate) notes: Vec<Note>,
    pub(crate) ending: Ending,
}

/// How the text is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Print {
    /// Without colour where colour is not wanted.
    Styled,
    /// Byte for byte.
    Exact,
}

/// A remark beside the data: on stderr in text, in `messages` in JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Note {
    pub(crate) level: Level,
    pub(crate) text: String,
}

/// How weighty a remark is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Level {
    Info,
    Warn,
}

/// How a command ended that has data to show.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Ending {
    /// As wished.
    Done,
    /// Somebody must look, with this exit code.
    Attention(u8),
    /// Not as wished, and why.
    Failed(Box<Problem>),
}

impl Report {
    /// Returns a report that all went well.
    pub(crate) fn new(data: impl Serialize, text: impl Into<String>) -> Self {
        let data = serde_json::to_value(data).expect("wire values are maps, lists, text and numbers");
        Self { data, text: text.into(), print: Print::Styled, notes: Vec::new(), ending: Ending::Done }
    }

    /// Returns the text as whole lines.
    pub(crate) fn lines(&self) -> Cow<'_, str> {
        match self.text.as_str() {
            text if text.is_empty() || text.ends_with('\n') => Cow::Borrowed(text),
            text => Cow::Owned(format!("{text}\n")),
        }
    }

    /// Adds a remark.
    #[must_use]
    pub(crate) fn note(mut self, level: Level, text: impl Into<String>) -> Self {
        self.notes.push(Note { level, text: text.into() });
        self
    }

    /// Adds the command to go on with, when there is one.
    #[must_use]
    pub(crate) fn go_on(self, level: Level, command: Option<String>) -> Self {
        match command {
            Some(command) => self.note(level, go_on(&command)),
            None => self,
        }
    }

    /// Adds how to read on, when there is more than was listed.
    #[must_use]
    pub(crate) fn or_more(self, next: Option<impl Display>) -> Self {
        match next {
            Some(next) => self.note(Level::Info, format!("there are more: --after {next}")),
            None => self,
        }
    }

    /// Adds a remark when there is nothing to list, so that a person does not wonder about the silence.
    #[must_use]
    pub(crate) fn or_say(self, nothing: &str) -> Self {
        if self.text.is_empty() { self.note(Level::Info, nothing) } else { self }
    }

    /// Has the text printed byte for byte.
    #[must_use]
    pub(crate) fn exact(self) -> Self {
        Self { print: Print::Exact, ..self }
    }

    /// Sets how it ended.
    #[must_use]
    pub(crate) fn ending(self, ending: Ending) -> Self {
        Self { ending, ..self }
    }

    /// Returns the exit code.
    pub(crate) fn exit_code(&self) -> u8 {
        match &self.ending {
            Ending::Done => exit::OK,
            Ending::Attention(code) => *code,
            Ending::Failed(problem) => problem.exit_code(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B15: breaks when an answer in text ends in the middle of a line.
    #[test]
    fn a_text_ends_with_its_line() {
        for (text, lines) in [("", ""), ("one", "one\n"), ("one\n", "one\n")] {
            assert_eq!(Report::new((), text).lines(), lines);
        }
    }
}
