//! Logs of runs: the output of agents, validations and reviewers.

use serde::{Deserialize, Serialize};

/// The log of a run, without its lines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Log {
    /// The run.
    pub run: String,
    /// When its first line was written.
    pub began_at: String,
    /// The number of bytes written, including dropped ones.
    pub size: u64,
}

/// The logs of a plan on the machine that answers, oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Logs {
    /// The logs.
    pub logs: Vec<Log>,
    /// Always null: all logs are on one page.
    #[serde(default)]
    pub next: Option<String>,
}

/// Selects a part of a plan's logs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LogQuery {
    /// The run id or a unique prefix; default: the newest run with a log.
    pub run: Option<String>,
    /// The offset of the first byte in the whole log, including dropped bytes; a negative number counts from the end.
    pub offset: Option<i64>,
    /// How long to wait for a line, in milliseconds.
    pub wait_ms: Option<u64>,
}

/// A line of a log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LogLine {
    /// When it was printed.
    pub at: String,
    /// The source: `stdout`, `stderr`, `message`, `validation:NAME`, `reviewer:AGENT`, or `drydock` for lines that
    /// drydock adds.
    pub stream: String,
    /// The line without its line end.
    pub text: String,
    /// The number of bytes of the log that are missing here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<u64>,
}

impl LogLine {
    /// The stream of lines that drydock adds.
    pub const NOTICE: &'static str = "drydock";
    /// The stream of lines that are messages to drydock.
    pub const MESSAGE: &'static str = "message";

    /// Parses a line. One that cannot be parsed is shown as it is.
    pub(crate) fn read(line: &str) -> Self {
        serde_json::from_str(line).unwrap_or_else(|_| Self {
            at: String::new(),
            stream: Self::NOTICE.to_owned(),
            text: format!("[invalid line in the log: {line}]"),
            dropped: None,
        })
    }
}

/// A part of a log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogPage {
    /// The run; none if no run of the plan has a log yet.
    pub run: Option<String>,
    /// The lines.
    pub lines: Vec<LogLine>,
    /// The offset to continue from.
    pub next: u64,
    /// Whether the run has ended and its log was read to the end.
    pub over: bool,
}

impl LogPage {
    /// The media type of a log.
    pub const MEDIA_TYPE: &'static str = "application/x-ndjson";
    /// The header with the offset to continue from.
    pub const NEXT_OFFSET: &'static str = "x-next-offset";
    /// The header with the run.
    pub const RUN: &'static str = "x-run";
    /// The header that is `true` if the run has ended and its log was read to the end, else `false`.
    pub const RUN_OVER: &'static str = "x-run-over";
}
