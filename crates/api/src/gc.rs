//! Garbage collection of worktrees and refs.

use serde::{Deserialize, Serialize};

/// Requests a garbage collection.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GcRequest {
    /// Report what would be removed, and remove nothing.
    #[serde(default)]
    pub dry_run: bool,
}

/// The report of a garbage collection.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Gc {
    /// The removed objects, or those that would be removed.
    pub removed: Vec<Removed>,
    /// The objects that could not be proved safe to delete.
    pub kept: Vec<Kept>,
    /// Whether this was a dry run.
    pub dry_run: bool,
}

/// A removed object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Removed {
    /// The object.
    pub what: String,
    /// Why its removal loses nothing.
    pub proof: String,
}

/// A kept object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Kept {
    /// The object.
    pub what: String,
    /// Why it may still be needed.
    pub reason: String,
}

/// One garbage collection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OneGc {
    /// The report.
    pub gc: Gc,
}
