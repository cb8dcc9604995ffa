//! What the run under a held lock has used so far. Whatever is committed under that lock records it (`transition`), so
//! that the end of a run and what it used are one commit.

use std::sync::{Mutex, MutexGuard, PoisonError};

use drydock_domain::{RunId, Spent};
use tokio::time::Instant;

/// Counts what one run uses.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    tallied: Mutex<Option<Tallied>>,
}

#[derive(Debug)]
struct Tallied {
    run: RunId,
    used: Spent,
    /// Since when its time counts; none for a run of a process that is gone.
    since: Option<Instant>,
}

impl Tally {
    /// Begins to count for a run, its time included.
    pub(crate) fn begin(&self, run: RunId) {
        *self.lock() = Some(Tallied { run, used: Spent::default(), since: Some(Instant::now()) });
    }

    /// Ends counting for a run that is over.
    pub(crate) fn end(&self) {
        *self.lock() = None;
    }

    /// Takes what another process told of a run that it left.
    pub(crate) fn recover(&self, run: RunId, used: Spent) {
        *self.lock() = Some(Tallied { run, used, since: None });
    }

    /// Adds to what was used.
    pub(crate) fn add(&self, more: Spent) {
        if let Some(tallied) = self.lock().as_mut() {
            tallied.used = tallied.used.plus(more);
        }
    }

    /// Returns whose use it is, and what was used so far.
    pub(crate) fn read(&self) -> Option<(RunId, Spent)> {
        let tallied = self.lock();
        let Tallied { run, used, since } = tallied.as_ref()?;
        let passed = since.map_or(0, |since| u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX));
        Some((run.clone(), used.plus(Spent { wall_ms: passed, ..Spent::default() })))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Tallied>> {
        self.tallied.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
