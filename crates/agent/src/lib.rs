//! The only starter of processes other than git: agents that are programs, that speak the Agent Client Protocol or that
//! are scripts, and shell commands.
//!
//! Every process started here lives under a *keeper*, a copy of our own binary that outlives neither drydock nor the
//! run and takes every descendant with it (`keeper`). A plan is a name here, and a worktree a directory: nothing
//! knows a store or calls git, and nothing decides what an ending means.

mod acp;
mod command;
mod credential;
mod duration;
mod ending;
mod environment;
mod error;
mod failure;
mod failure_report;
mod home;
mod keeper;
mod limit;
mod liveness;
mod mcp;
mod message;
mod output;
mod preset;
mod reply;
mod restart;
mod runner;
mod sandbox;
mod script;
mod scripted;
mod secret;
mod signal;
mod spec;
mod supervise;
mod task;
mod verdict;

pub use acp::read_below;
pub use ending::{Ending, ShellResult};
pub use environment::KEEPER;
pub use error::StartError;
pub use failure::{ModelFailure, Nature, Passing};
pub use keeper::{adopt_orphans, keep, reap_orphans};
pub use limit::Resets;
pub use mcp::{McpError, serve_mcp};
pub use message::{AskOption, Message, Opinion, means_to_ask};
pub use preset::{Preset, presets};
pub use reply::Reply;
pub use runner::{Runner, Running};
pub use sandbox::{Landlock, Reads, Resource, Sandbox, SandboxMode, Size, landlock};
pub use signal::{Activity, Changed, PermissionAsked, Signal, Step, Stream};
pub use spec::{AgentSpec, SpecError};
pub use supervise::STOP_GRACE;
pub use task::{EarlierSession, Permits, Permitted, Proposal, RunDirs, SessionUse, Task};
pub use verdict::verdict_in;
