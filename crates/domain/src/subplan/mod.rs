//! Subplans: the parts that a strategy splits a task into, the order in which they run and join, and the
//! effect of their results on the parent. Everything here is a function of stored values; the engine reads
//! and acts.

mod birth;
mod fanout;
mod graph;
mod outlook;
mod question;
mod rules;
mod schedule;
#[cfg(test)]
mod tests;

pub use birth::{Inherited, NewChild, SpawnChild};
pub(crate) use birth::{handed_on, new_child};
pub use fanout::{
    ConflictSide, FailureRecord, Fanout, LandsOn, MergeStrategy, OnFailure, ParentLink, ResolvesConflict,
    Subplan, SubplanStatus, SubplanTask, Turn,
};
pub use graph::{FanoutError, arrange};
pub use outlook::{Transience, outlook};
pub use question::{ConflictMarkers, ConflictReport, ConflictSummary};
pub use rules::{EffectiveInvariants, InheritedInvariants};
pub use schedule::{ChildState, SubplanSteps, SubplanUpdate};
