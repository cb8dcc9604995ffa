//! How a run of an agent or a command ended.

use std::time::Duration;

use crate::failure::ModelFailure;
use crate::limit::Resets;
use crate::sandbox::Resource;

/// The end of a run. When this value exists, no process of the run is alive.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "an ending says whether the work was done"]
pub enum Ending {
    /// The program exited with code 0.
    Finished,
    /// The program exited with another code.
    Failed {
        /// The exit code.
        code: i32,
        /// The last lines of output.
        tail: String,
    },
    /// A signal that drydock did not send ended the program.
    Killed {
        /// Number of the signal.
        signal: i32,
        /// The last lines of output.
        tail: String,
    },
    /// The run exceeded its time limit and was stopped.
    TimedOut {
        /// The time limit.
        after: Duration,
        /// The last lines of output.
        tail: String,
    },
    /// The run was stopped at the caller's request.
    Stopped,
    /// The run exceeded its output limit and was killed.
    OutputExceeded {
        /// The limit in bytes.
        limit: u64,
    },
    /// The agent did not do its work, and its protocol shows why: it gave up, disconnected, or sent invalid
    /// data.
    Unfinished {
        /// The reason; it follows the agent's name in a sentence.
        reason: String,
        /// The last lines of output.
        tail: String,
    },
    /// The agent exited normally, but its output or its protocol shows that its model did not do the work.
    ModelFailed {
        /// The kind of failure.
        cause: ModelFailure,
        /// The reason; it follows the agent's name in a sentence.
        reason: String,
        /// The last lines of output.
        tail: String,
    },
    /// The run showed no signs of life and was stopped, as configured.
    Stalled {
        /// Duration without signs of life.
        quiet: Duration,
        /// The last lines of output.
        tail: String,
    },
    /// The agent's service rejects further requests for now.
    RateLimited {
        /// When the limit resets.
        resets: Resets,
    },
    /// The run exceeded a resource limit and was killed.
    LimitExceeded {
        /// The resource.
        what: Resource,
        /// The limit of the resource.
        max: u64,
        /// The last lines of output.
        tail: String,
    },
}

/// The end of a shell command, and its output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellResult {
    /// How the command ended.
    pub ending: Ending,
    /// Standard output and standard error in the order written: the last 64 KiB, after a line with the number
    /// of bytes cut.
    pub output: String,
}
