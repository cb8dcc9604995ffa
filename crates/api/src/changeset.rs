//! Changesets: the changes of one writer in one run.

use serde::{Deserialize, Serialize};

use crate::word::words;

words! {
    /// Whether a changeset takes more entries.
    ChangesetState {
        /// It does.
        Open = "open",
        /// It is final.
        Sealed = "sealed",
    }
}

words! {
    /// What happened to a path.
    ChangeOp {
        /// It is new.
        Create = "create",
        /// Its content or mode changed.
        Modify = "modify",
        /// It is gone.
        Delete = "delete",
        /// It has a new name.
        Rename = "rename",
    }
}

/// The changes of one writer in one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Changeset {
    /// Its id.
    pub id: String,
    /// The plan it belongs to.
    pub plan: String,
    /// The run it belongs to.
    pub run: String,
    /// Who writes.
    pub writer: String,
    /// Whether more can be recorded.
    pub state: ChangesetState,
    /// What was recorded, in order.
    pub entries: Vec<Entry>,
    /// When it was opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened_at: Option<String>,
}

/// A recorded change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Entry {
    /// Its place in its changeset, from 1.
    pub seq: i64,
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
    /// When it was recorded.
    pub at: String,
}

/// Which changesets to list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangesetQuery {
    /// Only those of this plan.
    pub plan: Option<String>,
}

/// A page of changesets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Changesets {
    /// The changesets.
    pub changesets: Vec<Changeset>,
    /// Where the next page begins.
    #[serde(default)]
    pub next: Option<String>,
}

/// One changeset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OneChangeset {
    /// The changeset.
    pub changeset: Changeset,
}
