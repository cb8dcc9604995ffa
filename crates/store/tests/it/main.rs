//! The contract of a store, tested on both databases, and tests specific to one of them.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test fails by panicking, and a child tells its parent by printing"
)]

#[macro_use]
mod world;

mod answers;
mod catalog;
mod changesets;
mod child;
mod commits;
mod connections;
mod crashes;
mod damage;
mod deliveries;
mod diverging;
mod feed;
mod gone;
mod leases;
mod opening;
mod outbox;
mod postgres_sessions;
mod reads;
mod sqlite_writer;
mod tls;
mod tokens;
