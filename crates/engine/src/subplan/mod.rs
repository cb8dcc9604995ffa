//! Subplans: a strategy draft becomes subplans, each subplan becomes a child plan, children run when it is
//! their turn, and their results join their parent's branch. `domain` decides the next steps; this module
//! reads the state and performs the steps, under the parent's lock.
//!
//! A child's lock is taken while the parent's lock is held, never the other way round: `PlanLockGuard::child` is the
//! only way to get it from here, and no code that holds a child's lock takes its parent's lock.

mod birth;
mod discard;
mod draft;
mod family;
mod hands;
mod join;
mod landing;
mod sight;
mod stop;
mod tend;
mod winding;

pub(crate) use draft::fanout_of;
pub(crate) use family::ChildrenCache;
pub(crate) use join::forget_joins;
pub use sight::{PlanTree, SubplanNode};
pub(crate) use tend::{ScheduleOutcome, is_tended};
