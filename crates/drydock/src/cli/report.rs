//! The result of a command: data for programs, text for people, and how it ended.

use std::borrow::Cow;
use std::fmt::Display;

use drydock_api::{Problem, exit};
use serde::Serialize;
use serde_json::Value;

use crate::render::next::go_on;

/// A report, or a problem without data.
pub(crate) type CliResult = Result<Report, Box<Problem>>;

/// The result of a command that has data.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Report {
    pub(crate) data: Value,
    /// The text for stdout.
    pub(crate) text: String,
    pub(crate) print: Print,
    pub(crate) notes: Vec<ReportMessage>,
    pub(crate) ending: ReportStatus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Print {
    /// Without colour if colour is off.
    Styled,
    /// Byte for byte.
    Exact,
}

/// A message beside the data: on stderr in text, in `messages` in JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct ReportMessage {
    pub(crate) level: Level,
    pub(crate) text: String,
}

/// Severity of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Level {
    Info,
    Warn,
}

/// How a command with data ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ReportStatus {
    /// Successful.
    Done,
    /// A person should look; the command exits with this code.
    Attention(u8),
    /// Failed, for this reason.
    Failed(Box<Problem>),
}

impl Report {
    /// Returns a report of success.
    pub(crate) fn new(data: impl Serialize, text: impl Into<String>) -> Self {
        let data = serde_json::to_value(data).expect("wire values are maps, lists, text and numbers");
        Self { data, text: text.into(), print: Print::Styled, notes: Vec::new(), ending: ReportStatus::Done }
    }

    /// Returns the text with a final line break.
    pub(crate) fn lines(&self) -> Cow<'_, str> {
        match self.text.as_str() {
            text if text.is_empty() || text.ends_with('\n') => Cow::Borrowed(text),
            text => Cow::Owned(format!("{text}\n")),
        }
    }

    /// Adds a message.
    #[must_use]
    pub(crate) fn note(mut self, level: Level, text: impl Into<String>) -> Self {
        self.notes.push(ReportMessage { level, text: text.into() });
        self
    }

    /// Adds the next command, if there is one.
    #[must_use]
    pub(crate) fn go_on(self, level: Level, command: Option<String>) -> Self {
        match command {
            Some(command) => self.note(level, go_on(&command)),
            None => self,
        }
    }

    /// Adds how to read the next page, if there is one.
    #[must_use]
    pub(crate) fn or_more(self, next: Option<impl Display>) -> Self {
        match next {
            Some(next) => self.note(Level::Info, format!("more results: --after {next}")),
            None => self,
        }
    }

    /// Adds a message if the list is empty, so that the output is not just silence.
    #[must_use]
    pub(crate) fn or_say(self, nothing: &str) -> Self {
        if self.text.is_empty() { self.note(Level::Info, nothing) } else { self }
    }

    /// Makes the text print byte for byte.
    #[must_use]
    pub(crate) fn exact(self) -> Self {
        Self { print: Print::Exact, ..self }
    }

    #[must_use]
    pub(crate) fn ending(self, ending: ReportStatus) -> Self {
        Self { ending, ..self }
    }

    pub(crate) fn exit_code(&self) -> u8 {
        match &self.ending {
            ReportStatus::Done => exit::OK,
            ReportStatus::Attention(code) => *code,
            ReportStatus::Failed(problem) => problem.exit_code(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B15: breaks if the text output does not end with a line break.
    #[test]
    fn a_text_ends_with_its_line() {
        for (text, lines) in [("", ""), ("one", "one\n"), ("one\n", "one\n")] {
            assert_eq!(Report::new((), text).lines(), lines);
        }
    }
}
