//! Keeping a plan's branch and its remote together, at the start of a phase, after a phase, and when a person asks or
//! adopts a draft: one function, one transition, the same answers (S4.6).

mod answer;
mod ask;
mod backup;
mod own;
mod together;

pub use ask::Synced;
pub use backup::{Backup, Backups, Named, Restored};
pub(crate) use together::{Begin, Joined, Together};
