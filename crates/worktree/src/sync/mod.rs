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

pub use order::SyncOrder;
pub(crate) use walk::commit_lines;
