//! Which agents a plan uses. Starting them is not this crate's business.

use serde::{Deserialize, Serialize};

use crate::Reviewer;

/// The agents of a plan, by role. A name points into the configuration of whoever runs the phase.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentRoles {
    /// Thinks the task through; without one the strategy is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategize: Option<String>,
    /// Does the task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execute: Option<String>,
    /// Judge the result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reviewers: Vec<Reviewer>,
}
