//! The usage of the run under a held lock. Each commit under that lock also records it (`transition`), so
//! that the end of a run and its usage are stored in one commit.

use std::sync::{Mutex, MutexGuard, PoisonError};

use drydock_domain::{ResourceUsage, RunId};
use tokio::time::Instant;

/// Counts the usage of one run.
#[derive(Debug, Default)]
pub(crate) struct UsageCounter {
    tallied: Mutex<Option<Tallied>>,
}

#[derive(Debug)]
struct Tallied {
    run: RunId,
    used: ResourceUsage,
    /// When the run started; `None` for a run of a process that is gone.
    since: Option<Instant>,
}

impl UsageCounter {
    /// Starts counting for a run, including its time.
    pub(crate) fn begin(&self, run: RunId) {
        *self.lock() = Some(Tallied { run, used: ResourceUsage::default(), since: Some(Instant::now()) });
    }

    pub(crate) fn end(&self) {
        *self.lock() = None;
    }

    /// Sets the usage that another process reported for a run before it exited.
    pub(crate) fn recover(&self, run: RunId, used: ResourceUsage) {
        *self.lock() = Some(Tallied { run, used, since: None });
    }

    pub(crate) fn add(&self, more: ResourceUsage) {
        if let Some(tallied) = self.lock().as_mut() {
            tallied.used = tallied.used.plus(more);
        }
    }

    /// Returns the run and its usage so far.
    pub(crate) fn read(&self) -> Option<(RunId, ResourceUsage)> {
        let tallied = self.lock();
        let Tallied { run, used, since } = tallied.as_ref()?;
        let passed = since.map_or(0, |since| u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX));
        Some((run.clone(), used.plus(ResourceUsage { wall_ms: passed, ..ResourceUsage::default() })))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Tallied>> {
        self.tallied.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
