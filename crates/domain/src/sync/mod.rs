//! Keeping a plan's branch and its remote together: what was seen, the least destructive step, and what it came to.
//! Looking and stepping are `worktree`'s; the words that a person reads are made here, from the outcome (S4.11).

mod outcome;
mod sight;
mod words;

pub use outcome::{Clash, ClashCause, CommitLine, PinLine, Publishing, Standing, SyncOutcome, Uncommitted};
pub use sight::{ClashStep, Footing, Publish, Relation, RemoteSight, Sight, Step, Unsent};
pub use words::Divergence;
