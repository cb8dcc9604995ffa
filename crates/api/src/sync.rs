//! The outcome of syncing a plan's branch with its remote.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Decision, Plan};

/// The outcome of a sync.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Sync {
    /// The name of the outcome, e.g. `rebased`.
    pub outcome: String,
    /// The effect on the plan: `settled`, `unsettled` or `diverged`.
    pub standing: String,
    /// The outcome in one sentence.
    pub text: String,
    /// The next step, if one is needed.
    #[serde(default)]
    pub hint: Option<String>,
    /// Fields that depend on the outcome.
    #[serde(flatten)]
    pub details: serde_json::Map<String, Value>,
}

/// A sync, the plan after it, and the decision that it opened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Synced {
    /// The outcome.
    pub sync: Sync,
    /// The plan.
    pub plan: Plan,
    /// The decision, if the branches diverged.
    #[serde(default)]
    pub decision: Option<Decision>,
}
