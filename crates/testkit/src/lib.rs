//! What tests share: throw-away PostgreSQL databases, git repositories, processes, a model for real agents, and waiting
//! for a condition.
//!
//! Everything here is the real thing, made fresh and removed afterwards; there are no twins of anything of ours in this
//! crate. The model stands in for somebody else's, behind the agents' own connections.
//! It is a dev-dependency only. A failure panics with a sentence, because its only caller is a test.

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
