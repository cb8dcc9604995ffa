//! Backups: refs that keep commits and uncommitted work before an operation that could drop them.

mod about;
mod alone;
mod list;
mod write;

pub use list::{BackupDetails, PinDropped, RestoreOutcome};
pub use write::BackupRequest;
pub(crate) use write::{BackupContent, MarkerWrite, UncommittedWork};
