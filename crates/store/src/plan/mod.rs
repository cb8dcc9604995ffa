//! Plans: writing them, which needs a lease, and reading them, which does not.

mod claim;
mod commit;
#[cfg(test)]
mod cost_tests;
mod read;
pub(crate) mod row;
mod sight;
mod write;

pub(crate) use claim::{LeasedPlan, check_lease, shared};
pub use commit::{Committed, Decide, PlanChange};
pub use read::{Parent, PlanFilter};
pub use sight::{PlanRows, Sighted};
