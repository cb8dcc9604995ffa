//! Changesets: the changes of one writer in one run. Each writer records changes through the handle that it
//! opened. No shared "current changeset" exists that could be the wrong one (S3).

use serde::{Deserialize, Serialize};

use crate::{ChangesetId, PlanId, RunId, Timestamp};

/// The changes of one writer in one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changeset {
    /// Unique id.
    pub id: ChangesetId,
    /// The plan that the changeset belongs to.
    pub plan: PlanId,
    /// The run that the changeset belongs to.
    pub run: RunId,
    /// The name of the writer, e.g. an agent.
    pub writer: String,
    /// Whether more entries can be recorded.
    pub state: ChangesetState,
    /// When the changeset was opened.
    pub opened_at: Timestamp,
    /// The recorded changes, in order.
    pub entries: Vec<ChangesetEntry>,
}

/// Whether a changeset accepts more entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangesetState {
    /// Accepts entries.
    Open,
    /// Final; rejects entries.
    Sealed,
}

impl ChangesetState {
    /// Returns the name used in JSON and in the store.
    pub fn name(self) -> &'static str {
        match self {
            ChangesetState::Open => "open",
            ChangesetState::Sealed => "sealed",
        }
    }
}

/// The kind of change to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeOp {
    /// The path is new.
    Create,
    /// The content or mode changed.
    Modify,
    /// The path was deleted.
    Delete,
    /// The path was renamed.
    Rename,
}

impl ChangeOp {
    /// Returns the name used in JSON and in the store.
    pub fn name(self) -> &'static str {
        match self {
            ChangeOp::Create => "create",
            ChangeOp::Modify => "modify",
            ChangeOp::Delete => "delete",
            ChangeOp::Rename => "rename",
        }
    }
}

/// A change to record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathChange {
    /// The path, relative to the root of the repository.
    pub path: String,
    /// The kind of change.
    pub op: ChangeOp,
    /// The old path of a rename.
    pub from: Option<String>,
    /// The content before the change, as a git object id.
    pub before: Option<String>,
    /// The content after the change, as a git object id.
    pub after: Option<String>,
}

/// A recorded change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangesetEntry {
    /// Position in the changeset, starting at 1.
    pub seq: i64,
    /// The change.
    #[serde(flatten)]
    pub change: PathChange,
    /// When the change was recorded.
    pub at: Timestamp,
}
