//! The agents that a plan uses, by role. Other crates start them.

use serde::{Deserialize, Serialize};

use crate::ReviewerSpec;

/// The agents of a plan, by role. Each name refers to the configuration of the process that runs the phase.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanAgents {
    /// Writes the strategy. Without one the strategy is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategize: Option<String>,
    /// Does the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execute: Option<String>,
    /// Review the result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reviewers: Vec<ReviewerSpec>,
}
