//! Changesets: the changes of one writer in one run. A change is recorded through the handle its writer
//! opened, so there is no "current changeset" to get wrong (S3).

use serde::{Deserialize, Serialize};

use crate::{ChangesetId, PlanId, RunId, Timestamp};

/// The changes of one writer in one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changeset {
    /// Its id.
    pub id: ChangesetId,
    /// The plan it belongs to.
    pub plan: PlanId,
    /// The run it belongs to.
    pub run: RunId,
    /// Who writes.
    pub writer: String,
    /// Whether more can be recorded.
    pub state: ChangesetState,
    /// When it was opened.
    pub opened_at: Timestamp,
    /// What was recorded, in order.
    pub entries: Vec<Entry>,
}

/// Whether a changeset takes more entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangesetState {
    /// It does.
    Open,
    /// It is final.
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

/// What happened to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeOp {
    /// It is new.
    Create,
    /// Its content or mode changed.
    Modify,
    /// It is gone.
    Delete,
    /// It has a new name.
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

/// A change to be recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewEntry {
    /// The path, relative to the repository's root.
    pub path: String,
    /// What happened to it.
    pub op: ChangeOp,
    /// The old path of a rename.
    pub from: Option<String>,
    /// The content before, as the id of a git object.
    pub before: Option<String>,
    /// The content after, as the id of a git object.
    pub after: Option<String>,
}

/// A recorded change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Its place in its changeset, from 1.
    pub seq: i64,
    /// What was recorded.
    #[serde(flatten)]
    pub change: NewEntry,
    /// When.
    pub at: Timestamp,
}
