//! A store in a PostgreSQL database that many machines share. Lock expiry uses the server's clock,
//! transitions use row locks, and the feed is numbered after the commits.

mod address;
mod connections;
mod engine;
mod fault;
mod limits;
mod listener;
mod schema;
mod sequencer;
mod session;

pub(crate) use connections::Want;
pub(crate) use engine::Postgres;
pub(crate) use schema::known as schema_known;
