//! Locks as anybody can see them.

use serde::{Deserialize, Serialize};

use crate::word::words;

words! {
    /// What a lock protects.
    LockScope {
        /// One plan; the key is its id.
        Plan = "plan",
        /// One project; the key is its name.
        Project = "project",
    }
}

/// A held lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Lock {
    /// Its id.
    pub id: String,
    /// What kind of thing it protects.
    pub scope: LockScope,
    /// Which one.
    pub key: String,
    /// The invocation that holds it.
    pub owner: String,
    /// The machine it runs on.
    pub host: String,
    /// Its process.
    pub pid: u32,
    /// What it does.
    pub purpose: String,
    /// Grows with every acquisition.
    pub fence: i64,
    /// When it was taken.
    pub acquired_at: String,
    /// When it ends unless renewed.
    pub expires_at: String,
    /// Its time is over and nobody took it over yet.
    pub stale: bool,
}

/// Breaks a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BreakLock {
    /// Why; it is recorded.
    pub reason: String,
}

/// All held locks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Locks {
    /// The locks.
    pub locks: Vec<Lock>,
    /// Where the next page begins.
    #[serde(default)]
    pub next: Option<String>,
}

/// One lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OneLock {
    /// The lock.
    pub lock: Lock,
}
