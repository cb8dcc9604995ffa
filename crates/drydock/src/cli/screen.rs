//! The two output streams: stdout is data, stderr is everything else. A reader that closes the pipe is not an error.

use std::io::{self, ErrorKind, IsTerminal, Write};

use drydock_api::{Code, Problem};

use super::args::{Format, Global};

/// Where output goes, and in which form.
#[derive(Debug, Clone)]
pub(crate) struct Screen {
    format: Format,
    quiet: bool,
    ends: TerminalStreams,
}

/// Which streams are terminals.
#[derive(Debug, Clone, Copy, Default)]
struct TerminalStreams {
    input: bool,
    output: bool,
    remarks: bool,
}

/// Whether stdout is still being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StdoutState {
    Listening,
    Gone,
}

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remarks {
    /// As a spinner on a terminal.
    Live,
    /// Line by line.
    Plain,
    /// Not at all.
    Silent,
}

impl Screen {
    /// Returns the screen for these options and the process's streams.
    pub(crate) fn new(global: &Global) -> Self {
        let format = if global.json { Format::Json } else { global.format };
        let ends = TerminalStreams {
            input: io::stdin().is_terminal(),
            output: io::stdout().is_terminal(),
            remarks: io::stderr().is_terminal(),
        };
        Self { format, quiet: global.quiet, ends }
    }

    pub(crate) fn is_json(&self) -> bool {
        match self.format {
            Format::Json => true,
            Format::Auto | Format::Text => false,
        }
    }

    /// Returns true if there is a terminal to ask a person at.
    pub(crate) fn can_ask(&self) -> bool {
        self.ends.input && self.ends.remarks && !self.is_json()
    }

    /// Returns true if stdout is a terminal.
    pub(crate) fn is_watched(&self) -> bool {
        self.ends.output && !self.is_json()
    }

    /// Returns how progress is shown.
    pub(crate) fn remarks(&self) -> Remarks {
        match (self.quiet, self.ends.remarks) {
            (true, _) => Remarks::Silent,
            (false, true) => Remarks::Live,
            (false, false) => Remarks::Plain,
        }
    }

    /// Writes data to stdout, with colour only on a terminal that supports it.
    pub(crate) fn print(&self, text: &str) -> Result<StdoutState, Box<Problem>> {
        written(anstream::stdout().lock(), text)
    }

    /// Writes data to stdout exactly as it is.
    pub(crate) fn print_exact(&self, text: &str) -> Result<StdoutState, Box<Problem>> {
        written(io::stdout().lock(), text)
    }

    /// Writes a message to stderr, unless `--quiet` is set.
    pub(crate) fn info(&self, text: &str) {
        if !self.quiet {
            self.error(&format!("{text}\n"));
        }
    }

    /// Writes to stderr even with `--quiet`.
    pub(crate) fn error(&self, text: &str) {
        // If stderr is closed too, only the exit code can report the result.
        drop(anstream::stderr().lock().write_all(text.as_bytes()));
    }
}

fn written(mut stdout: impl Write, text: &str) -> Result<StdoutState, Box<Problem>> {
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(StdoutState::Listening),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(StdoutState::Gone),
        Err(error) => {
            let text = format!("could not write to stdout: {error}");
            Err(Box::new(Problem::new(Code::Internal, text)))
        }
    }
}
