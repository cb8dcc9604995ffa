//! Claims about the worktree crate, shown on real repositories.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod capture;
mod checkout;
mod diff;
mod fixture;
mod guard;
mod land;
mod merge;
mod open;
mod push;
mod refs;
mod scene;
mod sync;
