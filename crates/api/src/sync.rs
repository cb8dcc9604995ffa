//! Syncs: what bringing a plan's branch and its remote together came to.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Decision, Plan};

/// What a sync came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Sync {
    /// Its name, e.g. `rebased`.
    pub outcome: String,
    /// What it means for the plan: `settled`, `unsettled` or `diverged`.
    pub standing: String,
    /// What happened, in one sentence.
    pub text: String,
    /// What a person can do about it.
    #[serde(default)]
    pub hint: Option<String>,
    /// What the outcome carries.
    #[serde(flatten)]
    pub details: serde_json::Map<String, Value>,
}

/// A sync, the plan after it, and what a person must answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Synced {
    /// What it came to.
    pub sync: Sync,
    /// The plan.
    pub plan: Plan,
    /// The decision, when it diverged.
    #[serde(default)]
    pub decision: Option<Decision>,
}
