//! Checkpoints: states of a plan's worktree that were kept on the way.

use serde::{Deserialize, Serialize};

/// A kept state of a plan's worktree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Checkpoint {
    /// The git ref that keeps it.
    #[serde(rename = "ref")]
    pub reference: String,
    /// The commit it points to.
    pub commit: String,
    /// The plan it belongs to.
    pub plan: String,
    /// The run it was made in.
    pub run: Option<String>,
    /// What the agent called it.
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
    /// Where the next page begins.
    #[serde(default)]
    pub next: Option<String>,
}
