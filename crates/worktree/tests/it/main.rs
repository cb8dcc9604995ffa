//! Tests of the worktree crate on real repositories.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]
#![allow(clippy::print_stdout, reason = "a test in another process tells its parent by what it prints")]

mod addresses;
mod capture;
mod checkout;
mod child;
mod crowd;
mod diff;
mod fixture;
mod guard;
mod hostile;
mod join;
mod join_favour;
mod join_random;
mod joiner;
mod land;
mod ledger;
mod lock;
mod merge;
mod older;
mod open;
mod pins;
mod push;
mod refs;
mod remembering;
mod remote_land;
mod scene;
mod sign;
mod signals;
mod staging;
mod sync;
mod sync_crash;
mod sync_edges;
mod sync_joining;
mod sync_matrix;
