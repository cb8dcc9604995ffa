//! Running the phases: one file each for Strategize, Execute and Apply, and what they share.

mod agents;
mod apply;
mod drive;
mod execute;
mod leftovers;
mod scope;
mod strategize;
mod validate;

pub(crate) use agents::wording;
pub(crate) use apply::landed;
pub(crate) use leftovers::{Alive, Work, leftovers, occupy, remove_empty, remove_leftover};
