//! A store in one file: readers that never wait, and one writer thread that commits all waiting jobs
//! together.

mod connection;
mod engine;
mod gate;
mod holder;
mod lookout;
mod room;
mod schema;
mod writer;

pub(crate) use engine::Sqlite;
pub(crate) use schema::known as schema_known;

pub(crate) use rusqlite::version as engine_version;
