//! Checkpoints: saved states of a plan's worktree.

use serde::{Deserialize, Serialize};

/// A saved state of a plan's worktree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Checkpoint {
    /// The git ref that keeps it.
    #[serde(rename = "ref")]
    pub reference: String,
    /// The commit it points to.
    pub commit: String,
    /// The plan it belongs to.
    pub plan: String,
    /// The run that made it.
    pub run: Option<String>,
    /// The label that the agent gave it.
    #[serde(default)]
    pub label: Option<String>,
    /// When it was made.
    pub created_at: String,
}

/// The checkpoints of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Checkpoints {
    /// The checkpoints, oldest first.
    pub checkpoints: Vec<Checkpoint>,
    /// The cursor of the next page; null on the last page.
    #[serde(default)]
    pub next: Option<String>,
}
