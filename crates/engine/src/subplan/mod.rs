//! Subplans: drafts become pieces, pieces become plans, plans are called when their turn comes, and their results join
//! their parent's branch. What to do is decided by `domain`; here it is looked at and done, under the parent's lock.
//!
//! A child's lock is taken under its parent's and never the other way round: `Hold::child` is the only way to it from
//! here, and nothing that holds a child's lock knows how to take its parent's.

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
pub(crate) use family::Families;
pub(crate) use join::forget_joins;
pub use sight::{Branch, PlanTree};
pub(crate) use tend::{Tended, is_tended};
