//! Loads the root certificates for TLS. The API client, hooks and the database connection all use this crate, so that
//! they trust the same certificates.

mod client;

pub use client::{by_file, by_system};
