//! Output of xtask: results on stdout, everything else on stderr, failures with an exit code.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum CommandError {
    /// The command line is not valid.
    Usage(String),
    /// The command ran and a check failed.
    Failed(String),
}

impl CommandError {
    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self::Usage(text.into())
    }

    pub(crate) fn failed(text: impl Into<String>) -> Self {
        Self::Failed(text.into())
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Usage(_) => ExitCode::from(2),
            Self::Failed(_) => ExitCode::from(1),
        }
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(text) => write!(out, "xtask: {text}; see `cargo xtask help`"),
            Self::Failed(text) => write!(out, "xtask: {text}"),
        }
    }
}

/// Prints a result.
pub(crate) fn answer(text: &str) {
    // A reader that closes the pipe, as `head` does, is not a failure. The same holds for `note`.
    writeln!(io::stdout(), "{text}").ok();
}

/// Prints additional information for a person at the terminal.
pub(crate) fn note(text: &str) {
    writeln!(io::stderr(), "{text}").ok();
}
