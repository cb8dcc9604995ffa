//! The identity of this process: the owner strings of its locks, and a count of the locks that it holds.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use drydock_domain::{Holder, ProcessIdentity};

use crate::clock;

/// One process. The owners of its locks are numbered, so that no two acquisitions share an owner.
#[derive(Debug)]
pub(crate) struct Identity {
    process: ProcessIdentity,
    prefix: String,
    next: AtomicU64,
    held: AtomicI64,
    works: AtomicBool,
    /// The owners of locks that could not be released, though no work runs under them.
    abandoned: Mutex<HashSet<String>>,
}

impl Identity {
    pub(crate) fn of_this_process() -> Self {
        let process = drydock_worktree::this_process();
        let (host, pid) = (&process.host, process.pid);
        // The random part distinguishes this process from an earlier one with the same pid.
        let prefix = format!("{host}/{pid}/{:08x}/", clock::random() as u32);
        let (next, held, works) = (AtomicU64::new(1), AtomicI64::new(0), AtomicBool::new(false));
        Self { process, prefix, next, held, works, abandoned: Mutex::default() }
    }

    /// Returns a holder that no other acquisition shares.
    pub(crate) fn holder(&self, purpose: &str) -> Holder {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let holder = Holder {
            // The final dot ensures that no owner is a prefix of another.
            owner: format!("{}{number}.", self.prefix),
            process: self.process.clone(),
            purpose: purpose.to_owned(),
        };
        if self.works.load(Ordering::Relaxed) { holder.as_worker() } else { holder }
    }

    pub(crate) fn process(&self) -> &ProcessIdentity {
        &self.process
    }

    /// Records that this process is a worker. Must be called before it acquires its first lock as one.
    pub(crate) fn works(&self) {
        self.works.store(true, Ordering::Relaxed);
    }

    /// Returns true if this lock belongs to this process and no work runs under it any more.
    pub(crate) fn abandoned(&self, owner: &str) -> bool {
        lock(&self.abandoned).contains(owner)
    }

    /// Records that an abandoned lock was released after all.
    pub(crate) fn released(&self, owner: &str) {
        lock(&self.abandoned).remove(owner);
    }

    /// Returns true if work runs under a lock of this process.
    pub(crate) fn works_under_lock(&self) -> bool {
        self.held.load(Ordering::SeqCst) > 0
    }

    /// Returns true if this process holds a lock that it has not released.
    pub(crate) fn holds_any(&self) -> bool {
        self.works_under_lock() || !lock(&self.abandoned).is_empty()
    }

    /// Returns the common prefix of all owner strings of this process.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }
}

/// Ignores poisoning: a panic under this lock cannot leave the set half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One lock, counted from before it is requested until it is released.
#[derive(Debug)]
pub(crate) struct CountedLock {
    identity: Arc<Identity>,
}

impl CountedLock {
    pub(crate) fn new(identity: Arc<Identity>) -> Self {
        identity.held.fetch_add(1, Ordering::SeqCst);
        Self { identity }
    }

    /// Records that the release failed and that no work runs under the lock: a shutdown does not wait for it.
    pub(crate) fn still_held(self, owner: String) {
        lock(&self.identity.abandoned).insert(owner);
    }
}

impl Drop for CountedLock {
    fn drop(&mut self) {
        self.identity.held.fetch_sub(1, Ordering::SeqCst);
    }
}
