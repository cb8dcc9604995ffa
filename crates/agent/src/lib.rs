//! Runs processes other than git: agents (programs, programs with the Agent Client Protocol, scripts) and
//! shell commands. No other crate starts such processes.
//!
//! Every process started here runs under a *keeper*, a copy of our own binary that outlives neither drydock
//! nor the run and kills every descendant of the run (`keeper`). This crate has no access to the store and
//! does not call git: a plan is only a name and a worktree only a directory. It does not decide what follows
//! from the end of a run.

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
pub use failure::{EndingKind, ModelFailure, TransientCause};
pub use keeper::{adopt_orphans, reap_orphans, run_keeper};
pub use limit::Resets;
pub use mcp::{McpError, serve_mcp};
pub use message::{AskOption, Message, VerdictKind, means_to_ask};
pub use preset::{Preset, presets};
pub use reply::Reply;
pub use runner::{RunFuture, Runner};
pub use sandbox::{Landlock, Reads, Resource, Sandbox, SandboxMode, Size, landlock};
pub use signal::{Activity, Changed, OutputStream, PermissionAsked, Signal, TodoItem};
pub use spec::{AgentSpec, SpecError};
pub use supervise::STOP_GRACE;
pub use task::{AgentTask, EarlierSession, Permits, Permitted, Proposal, RunDirs, SessionUsage};
pub use verdict::verdict_in;
