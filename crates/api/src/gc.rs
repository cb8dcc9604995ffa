//! Collecting what nobody needs any more.

use serde::{Deserialize, Serialize};

/// Asks for a collection.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GcRequest {
    /// Say what would be removed, remove nothing.
    #[serde(default)]
    pub dry_run: bool,
}

/// What a collection did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Gc {
    /// What was removed, or would be.
    pub removed: Vec<Removed>,
    /// What could not be proved safe to remove.
    pub kept: Vec<Kept>,
    /// Whether nothing was really removed.
    pub dry_run: bool,
}

/// Something that was removed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Removed {
    /// What.
    pub what: String,
    /// Why that loses nothing.
    pub proof: String,
}

/// Something that was kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Kept {
    /// What.
    pub what: String,
    /// Why it may still be needed.
    pub reason: String,
}

/// One collection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OneGc {
    /// What it did.
    pub gc: Gc,
}
