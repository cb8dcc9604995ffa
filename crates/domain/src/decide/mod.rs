//! The state machine: borrow the stored plan, return a transition or a refusal, mutate nothing.

mod begin;
mod diverge;
mod finish;
mod land;
mod route;
mod steer;
#[cfg(test)]
mod tests;

pub use begin::create;
pub use route::decide;
pub use steer::REVERSIONS_MAX;
