//! Agents, and the result of a check that starts one.

use serde::{Deserialize, Serialize};

use crate::CheckStatus;

/// A configured or built-in agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AgentEntry {
    /// The agent's name.
    pub name: String,
    /// The protocol by which drydock talks to it.
    pub protocol: String,
    /// The command line, or the path of the script.
    pub summary: String,
    /// The timeout of one run, in seconds.
    pub timeout_s: u64,
    /// The origin: `configured` or `built_in`.
    #[serde(default)]
    pub source: String,
    /// Whether its program is installed.
    #[serde(default)]
    pub found: bool,
    /// Whether it is the default agent of plans.
    #[serde(default)]
    pub default: bool,
}

/// The result of starting an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AgentCheck {
    /// The agent's name.
    pub agent: String,
    /// The status of the check.
    pub status: CheckStatus,
    /// The observation.
    pub text: String,
    /// The next step, if one is needed.
    #[serde(default)]
    pub hint: Option<String>,
    /// The duration in milliseconds.
    pub duration_ms: u64,
}

/// All configured and built-in agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Agents {
    /// The agents, by name.
    pub agents: Vec<AgentEntry>,
    /// The cursor of the next page; null on the last page.
    #[serde(default)]
    pub next: Option<String>,
}

/// The check of one agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OneAgentCheck {
    /// The check.
    pub check: AgentCheck,
}
