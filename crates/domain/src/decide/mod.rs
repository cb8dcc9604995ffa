//! The state machine: borrow the stored plan, return a transition or a refusal, mutate nothing.

mod begin;
mod diverge;
mod fan;
mod finish;
mod land;
mod postpone;
mod route;
mod steer;
#[cfg(test)]
mod tests;

pub use begin::create;
pub(crate) use begin::fresh;
pub use route::decide;
pub use steer::REVERSIONS_MAX;
