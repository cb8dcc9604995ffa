//! Agents that speak the Agent Client Protocol over their standard streams. Everything that knows the protocol's crate
//! is in here; what comes out are signals and an ending, as from any other agent.

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

pub(crate) use converse::{Conversed, Converser, Goal, converse};
pub use files::read_below;
pub(crate) use permission::Permissions;
pub(crate) use prompt::words;
