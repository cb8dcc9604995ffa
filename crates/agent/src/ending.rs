//! How a run of an agent or a command ended.

use std::time::Duration;

use crate::failure::ModelFailure;
use crate::limit::Resets;
use crate::sandbox::Resource;

/// The end of a run. By the time this value exists nothing that the run started is alive.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "an ending says whether the work was done"]
pub enum Ending {
    /// It exited with code 0.
    Finished,
    /// It exited with another code.
    Failed {
        /// The exit code.
        code: i32,
        /// The last lines it wrote.
        tail: String,
    },
    /// A signal that drydock did not send ended it.
    Killed {
        /// The signal's number.
        signal: i32,
        /// The last lines it wrote.
        tail: String,
    },
    /// It ran longer than its limit and was stopped.
    TimedOut {
        /// The limit.
        after: Duration,
        /// The last lines it wrote.
        tail: String,
    },
    /// It was stopped because the caller asked for it.
    Stopped,
    /// It wrote more than its limit and was killed.
    OutputExceeded {
        /// The limit in bytes.
        limit: u64,
    },
    /// It did not do its work, and its protocol shows why: it gave up, or broke off, or said what cannot be read.
    Unfinished {
        /// What happened, to go on after its name.
        reason: String,
        /// The last lines it wrote.
        tail: String,
    },
    /// It ended by its own rules, and its words or its protocol show that its model did not do the work.
    ModelFailed {
        /// What failed.
        cause: ModelFailure,
        /// The reason; it follows the agent's name in a sentence.
        reason: String,
        /// The last lines it wrote.
        tail: String,
    },
    /// It showed no sign of life, and its rule had it stopped.
    Stalled {
        /// For how long.
        quiet: Duration,
        /// The last lines it wrote.
        tail: String,
    },
    /// The service behind it lets it do no more for now.
    RateLimited {
        /// When that is over.
        resets: Resets,
    },
    /// It used more than its limit and was killed.
    LimitExceeded {
        /// What it used too much of.
        what: Resource,
        /// The limit.
        max: u64,
        /// The last lines it wrote.
        tail: String,
    },
}

/// The end of a shell command and what it wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellResult {
    /// How it ended.
    pub ending: Ending,
    /// Standard output and standard error in the order written: the last 64 KiB, after a line that says how much was cut.
    pub output: String,
}
