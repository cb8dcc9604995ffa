//! Agents that use the Agent Client Protocol over their standard streams. Only this module uses the
//! protocol's crate; it returns signals and an ending, like any other agent.

mod account;
mod ask;
mod converse;
mod files;
mod handle;
mod lines;
mod permission;
mod prompt;
mod session;
mod update;

pub(crate) use converse::{AcpResult, AcpRun, Goal, converse};
pub use files::read_below;
pub(crate) use permission::Permissions;
pub(crate) use prompt::prompt_text;
