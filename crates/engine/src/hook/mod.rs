//! Hooks: the programs and web addresses that people want told of events, and the telling.

mod address;
mod checkup;
mod command;
mod deliver;
mod spec;
mod webhook;

pub use address::{WebAddress, WebAddressError};
pub use spec::{Hook, Hooks, Means, Pattern, PatternError, Priority, Wants};
