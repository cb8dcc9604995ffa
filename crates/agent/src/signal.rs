//! Signals that a running agent emits.

use std::time::Duration;

use serde::Serialize;

use crate::message::Message;
use crate::reply::Reply;
use crate::task::SessionUsage;

/// A signal of an agent. Signals from one stream keep their order.
#[derive(Debug, Clone, PartialEq)]
pub enum Signal {
    /// A line that is not a message.
    Log {
        /// The stream on which it was written.
        stream: OutputStream,
        /// The line without its line ending, at most 64 KiB; a longer line is truncated and shows the number
        /// of bytes cut.
        line: String,
    },
    /// A line that is a message to drydock.
    Message(Message),
    /// The agent needs a person's permission for a tool. Only drydock creates this signal: no line of an
    /// agent is parsed as one.
    Permission(PermissionAsked),
    /// A message whose sender waits until it was handled.
    Called(Message, Reply),
    /// The worktree should be checkpointed, because a tool is about to write or has written.
    Keep {
        /// Label of the checkpoint.
        label: String,
        /// Resolved once the checkpoint is stored.
        reply: Reply,
    },
    /// The agent's session, which a later run may resume.
    Session {
        /// The agent's id of the session.
        id: String,
        /// Set for a new session: why the earlier one was not resumed, or an empty text if there was none.
        begun: Option<String>,
        /// Usage of the session reported before.
        told: SessionUsage,
    },
    /// Usage of the session, as reported by the protocol.
    Used {
        /// Usage since the previous report.
        more: SessionUsage,
        /// Usage of the whole session, including earlier conversations.
        session: SessionUsage,
    },
    /// An activity of the agent, as reported by the protocol.
    Activity(Activity),
    /// The agent has shown no signs of life for `stall_after`. Emitted once per run.
    Stalled {
        /// Duration without signs of life.
        quiet: Duration,
    },
    /// A line that was meant as a message but is malformed.
    Garbled {
        /// The original line.
        line: String,
        /// Why it is malformed.
        reason: String,
    },
}

/// A tool for which a person's permission is needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionAsked {
    /// Kind of the tool.
    pub tool: String,
    /// The complete request.
    pub matches: String,
    /// The question to the person.
    pub question: String,
}

/// An activity of an agent, as reported by its protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Activity {
    /// The agent created or changed its plan.
    Plan {
        /// The first few steps.
        steps: Vec<TodoItem>,
    },
    /// The agent uses a tool, or the use ended.
    Tool {
        /// The agent's id of this tool call.
        id: String,
        /// The agent's description.
        title: String,
        /// Kind of the tool: `read`, `edit`, `delete`, `move`, `search`, `execute`, `think`, `fetch`,
        /// `other`.
        kind: &'static str,
        /// `pending`, `in_progress`, `completed` or `failed`.
        status: &'static str,
        /// The first few files it touches.
        paths: Vec<String>,
        /// The first few reported file changes.
        diffs: Vec<Changed>,
    },
    /// The agent requested permission for a tool.
    Permission {
        /// The agent's description.
        title: String,
        /// Kind of the tool.
        kind: &'static str,
        /// `allowed`, `rejected` or `asked`.
        answer: &'static str,
    },
}

impl Activity {
    /// Returns the name used in events.
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
pub struct TodoItem {
    /// Description of the step.
    pub text: String,
    /// `pending`, `in_progress` or `completed`.
    pub status: &'static str,
}

/// A file change reported by an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Changed {
    /// Path of the file.
    pub path: String,
    /// Number of lines before.
    pub lines_before: usize,
    /// Number of lines after.
    pub lines_after: usize,
}

/// The stream of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputStream {
    /// Standard output, which also carries messages.
    Stdout,
    /// Standard error, which only carries log lines.
    Stderr,
}
