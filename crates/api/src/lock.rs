//! Locks and their holders.

use serde::{Deserialize, Serialize};

use crate::word::words;

words! {
    /// The kind of object that a lock protects.
    LockScope {
        /// A plan; the key is its id.
        Plan = "plan",
        /// A project; the key is its name.
        Project = "project",
    }
}

/// A lock with its holder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Lock {
    /// The lock's id.
    pub id: String,
    /// Whether it protects a plan or a project.
    pub scope: LockScope,
    /// The id of the plan or the name of the project.
    pub key: String,
    /// The invocation that holds it.
    pub owner: String,
    /// The machine of the holder.
    pub host: String,
    /// The process id of the holder.
    pub pid: u32,
    /// The holder's activity.
    pub purpose: String,
    /// A number that grows with every acquisition.
    pub fence: i64,
    /// When it was acquired.
    pub acquired_at: String,
    /// When it expires unless renewed.
    pub expires_at: String,
    /// Whether it has expired and was not taken over yet.
    pub stale: bool,
}

/// Breaks a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BreakLock {
    /// The reason, which is recorded.
    pub reason: String,
}

/// All held locks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Locks {
    /// The locks.
    pub locks: Vec<Lock>,
    /// The cursor of the next page; null on the last page.
    #[serde(default)]
    pub next: Option<String>,
}

/// One lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OneLock {
    /// The lock.
    pub lock: Lock,
}
