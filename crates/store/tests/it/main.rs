//! The contract of a store, held against both databases; and what only one of them can get wrong.

#[macro_use]
mod world;

mod catalog;
mod changesets;
mod child;
mod commits;
mod crashes;
mod damage;
mod feed;
mod leases;
mod opening;
mod outbox;
mod reads;
mod sqlite_writer;
