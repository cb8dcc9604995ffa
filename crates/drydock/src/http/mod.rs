//! The HTTP side: one router, served over TCP by `serve` and called in this process by the command line.

mod auth;
mod backups;
mod decisions;
mod events;
mod extract;
mod guard;
mod keyed;
mod local;
mod patient;
mod plans;
mod problem;
mod registry;
mod rights;
mod router;
mod stream;
mod tokens;
mod upkeep;
mod view;

pub(crate) use auth::authenticated;
pub(crate) use guard::{Hosts, guarded};
pub(crate) use local::Local;
pub(crate) use patient::Patient;
pub(crate) use problem::problem;
pub(crate) use router::router;
pub(crate) use view::event_shape;
