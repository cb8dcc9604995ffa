//! Temporary PostgreSQL databases. `database()` creates an empty one on the server of `DRYDOCK_TEST_POSTGRES` or, if
//! that is not set, on a private cluster that stops with the test process.

mod cluster;
mod database;
mod programs;

pub use database::{Database, PostgresServer, SERVER_VARIABLE, database, server};
pub use programs::{Missing, Programs};
