//! Detailed merges in the object database: conflicts are described, or resolved in favour of one side.

mod favour;
mod group;
mod lines;
mod marker;
mod order;

pub use order::{ConflictFile, ConflictKind, DetailedMerge, Hunk, MergeRequest, Prefer};
