//! What tests share: throw-away PostgreSQL databases, git repositories, processes, and waiting for a condition.
//!
//! Everything here is the real thing, made fresh and removed afterwards; there are no twins in this crate.
//! It is a dev-dependency only. A failure panics with a sentence, because its only caller is a test.

pub mod postgres;
pub mod proc;
pub mod program;
pub mod repo;
pub mod wait;
