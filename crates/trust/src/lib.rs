//! Whom this program trusts when it connects over TLS. The client of the interface, hooks and the database connect with
//! what is made here, so that none of them trusts anybody whom the others do not.

mod client;

pub use client::{by_file, by_system};
