//! Joining the work of two writers on objects alone: what fits is merged, what does not is told or taken from one side.

mod favour;
mod group;
mod lines;
mod marker;
mod order;

pub use order::{ConflictFile, ConflictKind, Favour, Hunk, Join, JoinOrder};
