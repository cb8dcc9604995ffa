//! How xtask speaks: answers on standard output, everything else on standard error, failures with an exit code.

use std::fmt;
use std::io::{self, Write};
use std::process::ExitCode;

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command was not understood.
    Usage(String),
    /// The command ran, and something does not hold.
    Failed(String),
}

impl Failure {
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

impl fmt::Display for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(text) => write!(out, "xtask: {text}; see `cargo xtask help`"),
            Self::Failed(text) => write!(out, "xtask: {text}"),
        }
    }
}

/// Prints what was asked for.
pub(crate) fn answer(text: &str) {
    // A reader that went away, as `head` does, is no failure of ours; so it is with `note`.
    writeln!(io::stdout(), "{text}").ok();
}

/// Prints what a person at the terminal wants to know besides.
pub(crate) fn note(text: &str) {
    writeln!(io::stderr(), "{text}").ok();
}
