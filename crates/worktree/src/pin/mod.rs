//! Backups: refs that keep commits and uncommitted work before an operation that could drop them.

mod about;
mod alone;
mod list;
mod write;

pub use list::{Pin, PinDropped, Restored};
pub use write::PinOrder;
pub(crate) use write::{Content, Held, MarkerWrite};
