//! Syncing a plan's branch with its remote: the observed state, the least destructive step, and the outcome.
//! The `worktree` crate observes and performs steps. The text that people read is built here from the outcome
//! (S4.11).

mod outcome;
mod sight;
mod words;

pub use outcome::{Clash, ClashCause, CommitLine, PinLine, Publishing, Standing, SyncOutcome, Uncommitted};
pub use sight::{ClashStep, Footing, Publish, Relation, RemoteSight, Sight, Step, Unsent};
pub use words::Divergence;
