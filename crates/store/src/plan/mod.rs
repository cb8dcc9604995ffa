//! Plans: how they are written, which takes a lease, and how they are read, which takes none.

mod claim;
mod commit;
mod read;
pub(crate) mod row;
mod write;

pub(crate) use claim::{Claimed, Sharing, claim};
pub use commit::{Change, Committed, Decide};
pub use read::PlanFilter;
