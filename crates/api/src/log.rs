//! Logs of runs: what agents, validations and reviewers printed.

use serde::{Deserialize, Serialize};

/// The log of a run, without its lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Log {
    /// The run.
    pub run: String,
    /// When its first line was written.
    pub began_at: String,
    /// How many bytes it has had, those that were dropped included.
    pub size: u64,
}

/// The logs of a plan on the machine that answers, the oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Logs {
    /// The logs.
    pub logs: Vec<Log>,
    /// Always none: there are few.
    #[serde(default)]
    pub next: Option<String>,
}

/// What to read of a plan's logs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogQuery {
    /// The run, or the beginning of its id; the newest that has a log when none is named.
    pub run: Option<String>,
    /// From which byte of the whole log, dropped ones counted; a negative number counts from the end.
    pub offset: Option<i64>,
    /// How long to wait for a line when there is none, in milliseconds.
    pub wait_ms: Option<u64>,
}

/// A line of a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LogLine {
    /// When it was printed.
    pub at: String,
    /// Where: `stdout`, `stderr`, `message`, `validation:NAME`, `reviewer:AGENT`, or `drydock` for what drydock adds.
    pub stream: String,
    /// The line without its end.
    pub text: String,
    /// How many bytes of the log are missing here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<u64>,
}

impl LogLine {
    /// The stream of lines that drydock adds.
    pub const NOTICE: &'static str = "drydock";
    /// The stream of lines that are messages to drydock.
    pub const MESSAGE: &'static str = "message";

    /// Reads a line; one that cannot be read is shown as it is.
    pub(crate) fn read(line: &str) -> Self {
        serde_json::from_str(line).unwrap_or_else(|_| Self {
            at: String::new(),
            stream: Self::NOTICE.to_owned(),
            text: format!("[this line of the log cannot be read: {line}]"),
            dropped: None,
        })
    }
}

/// A part of a log as a client has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogPage {
    /// The run; none when no run of the plan has a log yet.
    pub run: Option<String>,
    /// The lines.
    pub lines: Vec<LogLine>,
    /// The offset to read on from.
    pub next: u64,
    /// Whether the run has ended and all of its log was read.
    pub over: bool,
}

impl LogPage {
    /// The media type of a log.
    pub const MEDIA_TYPE: &'static str = "application/x-ndjson";
    /// The header with the offset to read on from.
    pub const NEXT_OFFSET: &'static str = "x-next-offset";
    /// The header with the run.
    pub const RUN: &'static str = "x-run";
    /// The header that says whether the run has ended and all was read: `true` or `false`.
    pub const RUN_OVER: &'static str = "x-run-over";
}
