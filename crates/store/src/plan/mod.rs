//! Plans: writing them, which needs a lease, and reading them, which does not.

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
