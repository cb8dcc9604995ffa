//! Configured agents, and what starting one for real showed.

use serde::{Deserialize, Serialize};

use crate::CheckStatus;

/// A configured agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AgentEntry {
    /// Its name.
    pub name: String,
    /// How drydock talks to it.
    pub protocol: String,
    /// What is run.
    pub summary: String,
    /// How many seconds one run may take.
    pub timeout_s: u64,
    /// Where it comes from: `configured` or `built_in`.
    #[serde(default)]
    pub source: String,
    /// Whether its program is there.
    #[serde(default)]
    pub found: bool,
    /// Whether plans that name no agent use it.
    #[serde(default)]
    pub default: bool,
}

/// What starting an agent showed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct AgentCheck {
    /// The agent's name.
    pub agent: String,
    /// How it came out.
    pub status: CheckStatus,
    /// What was seen.
    pub text: String,
    /// What to do about it.
    #[serde(default)]
    pub hint: Option<String>,
    /// How long it took.
    pub duration_ms: u64,
}

/// All configured agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Agents {
    /// The agents, by name.
    pub agents: Vec<AgentEntry>,
    /// Where the next page begins.
    #[serde(default)]
    pub next: Option<String>,
}

/// The check of one agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OneAgentCheck {
    /// The check.
    pub check: AgentCheck,
}
