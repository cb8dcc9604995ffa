//! Keeping a branch and that of its remote together: look, decide (in `domain`), step, verify.

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
pub use order::SyncOrder;
pub(crate) use order::{RemoteBranch, tracking_name};
pub(crate) use walk::{Walked, commits};
