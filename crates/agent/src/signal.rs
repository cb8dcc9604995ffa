//! What a running agent says while it runs.

use std::time::Duration;

use serde::Serialize;

use crate::message::Message;
use crate::reply::Reply;
use crate::task::SessionUse;

/// One thing an agent said, in the order in which its stream said it.
#[derive(Debug, Clone, PartialEq)]
pub enum Signal {
    /// A line that is not a message.
    Log {
        /// Where it was written.
        stream: Stream,
        /// The line without its end, at most 64 KiB; a longer one is cut and says by how much.
        line: String,
    },
    /// A line that is a message to drydock.
    Message(Message),
    /// It may use a tool only if a person says so. Made by drydock alone: no line of an agent is read as this.
    Permission(PermissionAsked),
    /// A message whose sender waits until it was dealt with.
    Called(Message, Reply),
    /// The state of the worktree is worth keeping, because a tool is about to write or has written.
    Keep {
        /// What to call it.
        label: String,
        /// Answered when it is kept.
        reply: Reply,
    },
    /// The session that it works in, which a later run may go on with.
    Session {
        /// Its own name for it.
        id: String,
        /// Set when it is a new one: why not the earlier one, or nothing where there was none.
        begun: Option<String>,
        /// What was told of its use before.
        told: SessionUse,
    },
    /// What its session used, as its protocol tells.
    Used {
        /// Since it last said so.
        more: SessionUse,
        /// The whole session, earlier conversations included.
        session: SessionUse,
    },
    /// Something it does, as its protocol tells.
    Activity(Activity),
    /// It has shown no sign of life for as long as its `stall_after`; told once a run.
    Stalled {
        /// For how long.
        quiet: Duration,
    },
    /// A line that was meant as a message but cannot be read as one.
    Garbled {
        /// The line as it came.
        line: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// A tool that a person is asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionAsked {
    /// The kind of tool.
    pub tool: String,
    /// The complete request.
    pub matches: String,
    /// The question.
    pub question: String,
}

/// What an agent does, where its protocol says so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Activity {
    /// It made or changed its plan.
    Plan {
        /// The steps, the first few of them.
        steps: Vec<Step>,
    },
    /// It uses a tool, or that use came to something.
    Tool {
        /// Its own name for this use.
        id: String,
        /// What it does, in its own words.
        title: String,
        /// The kind of tool: `read`, `edit`, `delete`, `move`, `search`, `execute`, `think`, `fetch`, `other`.
        kind: &'static str,
        /// `pending`, `in_progress`, `completed` or `failed`.
        status: &'static str,
        /// The files it touches, the first few of them.
        paths: Vec<String>,
        /// What it says it changed, the first few files.
        diffs: Vec<Changed>,
    },
    /// It asked whether it may.
    Permission {
        /// What it wants to do.
        title: String,
        /// The kind of tool.
        kind: &'static str,
        /// `allowed`, `rejected` or `asked`.
        answer: &'static str,
    },
}

impl Activity {
    /// Returns what it is called in events.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Plan { .. } => "plan",
            Self::Tool { .. } => "tool",
            Self::Permission { .. } => "permission",
        }
    }
}

/// One step of an agent's plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// What is to be done.
    pub text: String,
    /// `pending`, `in_progress` or `completed`.
    pub status: &'static str,
}

/// A file that a tool changed, as the agent says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Changed {
    /// Which file.
    pub path: String,
    /// How many lines it had.
    pub lines_before: usize,
    /// How many it has.
    pub lines_after: usize,
}

/// The stream a line came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output, which also carries messages.
    Stdout,
    /// Standard error, which is only ever log.
    Stderr,
}
