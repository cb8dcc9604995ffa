//! The configuration of the engine. The binary reads files and flags.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use drydock_agent::{AgentSpec, Sandbox};
use drydock_domain::{Fanout, Profile};
use drydock_store::PhaseLimits;
use drydock_worktree::CaptureBounds;

use crate::hook::Hooks;

/// Limits on the number and depth of subplans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubplanLimits {
    /// How many levels of subplans a plan may have.
    pub depth_max: u32,
    /// How many subplans a strategy may have.
    pub width_max: usize,
    /// How many subplans run at the same time, if the strategy sets no number.
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
    /// The built-in agents among them, with the hint for a missing program.
    pub presets: BTreeMap<String, String>,
    /// The built-in and the configured profiles.
    pub profiles: Vec<Profile>,
    /// The sandbox of agents, validations and command invariants.
    pub sandbox: Sandbox,
    /// The profiles whose plans run nothing outside a full sandbox.
    pub sandboxed_profiles: BTreeSet<String>,
    /// The agent of a plan whose action names none.
    pub default_agent: Option<String>,
    /// The profile of a plan that names none.
    pub default_profile: String,
    /// How long a lock is valid without renewal.
    pub lock_ttl: Duration,
    /// The hooks to which events are delivered.
    pub hooks: Hooks,
    /// Limits on the number and depth of subplans.
    pub subplans: SubplanLimits,
    /// How many phases may run at the same time, across all processes.
    pub limits: PhaseLimits,
    /// Limits on the capture of an agent's work.
    pub capture: CaptureBounds,
    /// The configured address at which agents can query their plan.
    pub server: Option<String>,
    /// The directory of the worktrees.
    pub worktrees: PathBuf,
    /// The directory of the run logs.
    pub logs: PathBuf,
    /// How many days the logs of a plan are kept after it has ended.
    pub logs_keep_days: u32,
    /// The command line that starts this program as the keeper of a child process.
    pub launcher: Vec<OsString>,
}

impl Settings {
    /// The default for [`Settings::logs_keep_days`].
    pub const LOGS_KEEP_DAYS: u32 = 30;
}
