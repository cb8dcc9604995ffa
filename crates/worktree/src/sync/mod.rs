//! Syncs a branch with its remote branch: read the state, decide (in `domain`), perform the step, verify.

mod fetch;
mod folder;
mod footing;
mod join;
mod look;
mod order;
mod recovery;
mod replay;
mod reset;
mod shift;
mod step;
mod walk;

pub(crate) use fetch::{Fetched, fetch_at_once};
pub(crate) use folder::staged_only;
pub use order::SyncRequest;
pub(crate) use order::{RemoteBranch, tracking_name};
pub(crate) use walk::{WalkedCommit, commits};
