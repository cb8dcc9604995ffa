//! Hooks: the programs and web addresses that get events, and the deliveries to them.

mod address;
mod checkup;
mod command;
mod deliver;
mod spec;
mod webhook;

pub use address::{WebAddress, WebAddressError};
pub use spec::{Hook, Hooks, Means, Pattern, PatternError, Priority, Wants};
