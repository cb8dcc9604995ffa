//! Hooks: the programs and web addresses that get events, and the deliveries to them.

mod address;
mod checkup;
mod command;
mod deliver;
mod spec;
mod webhook;

pub use address::{WebAddressError, WebhookUrl};
pub use spec::{Hook, HookFilter, HookKind, Hooks, Pattern, PatternError, Priority};
