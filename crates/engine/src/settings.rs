//! What the engine is configured with. Reading files and flags is the binary's business.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use drydock_agent::{AgentSpec, Sandbox};
use drydock_domain::{Fanout, Profile};
use drydock_store::Limits;
use drydock_worktree::CaptureBounds;

use crate::hook::Hooks;

/// How wide and deep subplans may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubplanLimits {
    /// How many levels there may be below a plan.
    pub depth_max: u32,
    /// How many pieces a strategy may have.
    pub width_max: usize,
    /// How many pieces are at work at the same time, unless the strategy says otherwise.
    pub parallel: u32,
}

impl Default for SubplanLimits {
    fn default() -> Self {
        Self { depth_max: 3, width_max: 1_000, parallel: Fanout::PARALLEL }
    }
}

/// The configuration of one engine.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The agents by name.
    pub agents: BTreeMap<String, AgentSpec>,
    /// Those of the agents that nobody configured, and what to do when one is missing.
    pub presets: BTreeMap<String, String>,
    /// The profiles: the built-in ones and the configured ones.
    pub profiles: Vec<Profile>,
    /// What agents, validations and command invariants are confined by.
    pub sandbox: Sandbox,
    /// The profiles whose plans run nothing outside a full sandbox.
    pub sandboxed_profiles: BTreeSet<String>,
    /// The agent of a plan whose action names none.
    pub default_agent: Option<String>,
    /// The profile of a plan that names none.
    pub default_profile: String,
    /// How long a lock lives without renewal.
    pub lock_ttl: Duration,
    /// Who is told of events.
    pub hooks: Hooks,
    /// How wide and deep subplans may go.
    pub subplans: SubplanLimits,
    /// How many phases may run at the same time, whoever runs them.
    pub limits: Limits,
    /// Limits on the capture of an agent's work.
    pub capture: CaptureBounds,
    /// Where agents can ask about their plan, when somebody said so.
    pub server: Option<String>,
    /// Where worktrees are made.
    pub worktrees: PathBuf,
    /// Where the logs of runs are kept.
    pub logs: PathBuf,
    /// How many days the logs of a plan are kept after it has ended.
    pub logs_keep_days: u32,
    /// The words that start this program as the keeper of a child.
    pub launcher: Vec<OsString>,
}

impl Settings {
    /// How many days the logs of a plan that has ended are kept by default.
    pub const LOGS_KEEP_DAYS: u32 = 30;
}
