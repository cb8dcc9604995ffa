//! Syncing a plan's branch with its remote: the observed state, the least destructive step, and the outcome.
//! The `worktree` crate observes and performs steps. The text that people read is built here from the outcome
//! (S4.11).

mod outcome;
mod sight;
mod words;

pub use outcome::{
    BackupRef, ClashCause, CommitLine, PublishResult, ReplayConflict, SyncOutcome, SyncStatus, Uncommitted,
};
pub use sight::{OnConflict, Publish, Relation, RemoteState, SyncInput, SyncStep, Unsent, WorktreeState};
pub use words::Divergence;
