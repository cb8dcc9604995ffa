//! The state machine: borrow the stored plan, return a transition or a refusal, mutate nothing.

mod begin;
mod diverge;
mod fan;
mod finish;
mod kept;
mod land;
mod postpone;
mod route;
mod steer;
#[cfg(test)]
mod tests;

pub(crate) use begin::new_plan;
pub use begin::{create, create_alerting};
pub(crate) use diverge::ask_about;
pub use route::{admit, decide};
pub use steer::REVERSIONS_MAX;
