//! Plans: how they are written, which takes a lease, and how they are read, which takes none.

mod claim;
mod commit;
#[cfg(test)]
mod cost_tests;
mod read;
pub(crate) mod row;
mod sight;
mod write;

pub(crate) use claim::{Claimed, claim, shared};
pub use commit::{Change, Committed, Decide};
pub use read::{Parent, PlanFilter};
pub use sight::{PlanRows, Sighted};
