//! What a lock looks like to those who do not hold it. The right to act, the lease, is minted by the store.

use serde::{Deserialize, Serialize};

use crate::{LockId, ProcessIdentity, Timestamp};

/// A number that grows with every acquisition of one lock; a commit with an older one is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Fence(pub i64);

/// What a lock protects.
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

/// Who holds a lock: one invocation of one process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Names the invocation; no two are the same.
    pub owner: String,
    /// The process.
    #[serde(flatten)]
    pub process: ProcessIdentity,
    /// What it does, for a person to read.
    pub purpose: String,
}

/// What the purpose of a worker's lock ends with.
const AS_A_WORKER: &str = ", as a worker";

impl Holder {
    /// Says that the holder is a worker: it drives whatever is due, and nobody waits at it.
    #[must_use]
    pub fn as_worker(mut self) -> Self {
        self.purpose.push_str(AS_A_WORKER);
        self
    }

    /// Says whether the holder is a worker.
    pub fn is_worker(&self) -> bool {
        self.purpose.ends_with(AS_A_WORKER)
    }
}

/// A held lock as anybody can see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lock {
    /// Its id.
    pub id: LockId,
    /// What kind of thing it protects.
    pub scope: LockScope,
    /// Which one.
    pub key: String,
    /// Who holds it.
    pub holder: Holder,
    /// The fence of this acquisition.
    pub fence: Fence,
    /// When it was taken.
    pub acquired_at: Timestamp,
    /// When it ends unless renewed.
    pub expires_at: Timestamp,
    /// Its time is over and nobody took it over yet, by the clock of the store.
    pub stale: bool,
}
