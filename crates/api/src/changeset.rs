//! Changesets: the files that one writer changed in one run.

use serde::{Deserialize, Serialize};

use crate::word::words;

words! {
    /// Whether a changeset accepts more entries.
    ChangesetState {
        /// Accepts entries.
        Open = "open",
        /// Final.
        Sealed = "sealed",
    }
}

words! {
    /// How a path changed.
    ChangeOp {
        /// The path was created.
        Create = "create",
        /// Its content or mode changed.
        Modify = "modify",
        /// The path was deleted.
        Delete = "delete",
        /// The path was renamed.
        Rename = "rename",
    }
}

/// The changes of one writer in one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Changeset {
    /// The changeset's id.
    pub id: String,
    /// The plan it belongs to.
    pub plan: String,
    /// The run it belongs to.
    pub run: String,
    /// The agent that made the changes.
    pub writer: String,
    /// Whether it accepts more entries.
    pub state: ChangesetState,
    /// The recorded changes, in order.
    pub entries: Vec<Entry>,
    /// When it was opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened_at: Option<String>,
}

/// A recorded change of one path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Entry {
    /// The position in the changeset, from 1.
    pub seq: i64,
    /// The path, relative to the repository's root.
    pub path: String,
    /// How the path changed.
    pub op: ChangeOp,
    /// The old path of a rename.
    pub from: Option<String>,
    /// The git object id of the content before.
    pub before: Option<String>,
    /// The git object id of the content after.
    pub after: Option<String>,
    /// When it was recorded.
    pub at: String,
}

/// Filters the list of changesets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangesetQuery {
    /// Only changesets of this plan.
    pub plan: Option<String>,
}

/// A page of changesets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Changesets {
    /// The changesets.
    pub changesets: Vec<Changeset>,
    /// The cursor of the next page; null on the last page.
    #[serde(default)]
    pub next: Option<String>,
}

/// One changeset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OneChangeset {
    /// The changeset.
    pub changeset: Changeset,
}
