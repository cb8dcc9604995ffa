//! Pins: refs that keep commits and uncommitted work before anything that could drop them.

mod about;
mod alone;
mod list;
mod write;

pub use list::{Pin, PinDropped, Restored};
pub use write::PinOrder;
pub(crate) use write::{Content, Held, MarkerWrite};
