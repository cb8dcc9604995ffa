//! Locks as other processes see them. The lease, which is the right to act, can only be created by the store.

use serde::{Deserialize, Serialize};

use crate::{LockId, ProcessIdentity, Timestamp};

/// A number that grows with every acquisition of a lock. A commit with an older fence is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Fence(pub i64);

/// The kind of object that a lock protects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LockScope {
    /// One plan; the key is its id.
    Plan,
    /// One project; the key is its name.
    Project,
}

impl LockScope {
    /// Returns the name used in JSON and in the store.
    pub fn name(self) -> &'static str {
        match self {
            LockScope::Plan => "plan",
            LockScope::Project => "project",
        }
    }
}

/// The holder of a lock: one invocation of one process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Unique name of the invocation.
    pub owner: String,
    /// The process.
    #[serde(flatten)]
    pub process: ProcessIdentity,
    /// The purpose of the lock, as text for people.
    pub purpose: String,
}

/// Suffix of the purpose of a lock that a worker holds.
const AS_A_WORKER: &str = ", as a worker";

impl Holder {
    /// Marks the holder as a worker: it performs any due effect, and no user waits for its result.
    #[must_use]
    pub fn as_worker(mut self) -> Self {
        self.purpose.push_str(AS_A_WORKER);
        self
    }

    /// Returns true if the holder is a worker.
    pub fn is_worker(&self) -> bool {
        self.purpose.ends_with(AS_A_WORKER)
    }
}

/// A held lock as other processes see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lock {
    /// Unique id.
    pub id: LockId,
    /// The kind of object that it protects.
    pub scope: LockScope,
    /// The id or name of that object.
    pub key: String,
    /// The holder.
    pub holder: Holder,
    /// The fence of this acquisition.
    pub fence: Fence,
    /// When the lock was acquired.
    pub acquired_at: Timestamp,
    /// When the lock expires unless it is renewed.
    pub expires_at: Timestamp,
    /// Whether the lock has expired, by the clock of the store, and no other process has acquired it yet.
    pub stale: bool,
}
