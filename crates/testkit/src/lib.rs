//! Test fixtures: temporary PostgreSQL databases and git repositories, processes, a language model for real agents,
//! and waiting for a condition.
//!
//! Everything here is real, created for the test and removed afterwards; this crate has no twins of our own code.
//! Only the model replaces an external service, behind the agents' own connections. The crate is a dev-dependency
//! only. A failure panics with a message, because the callers are tests.

pub mod golden;
pub mod http_git;
pub mod model;
pub mod postgres;
pub mod proc;
pub mod program;
pub mod proxy;
pub mod repo;
#[cfg(feature = "sqlite")]
pub mod sqlite;
pub mod wait;
