//! Detects commits of other processes with `PRAGMA data_version` on a separate connection. Its value also
//! changes for our own writes. So the writer holds the lookout during a batch and marks its commit as seen
//! afterwards; otherwise every silent commit would wake the watchers.

use std::sync::{Mutex, MutexGuard, TryLockError};

use drydock_domain::error_chain;
use rusqlite::Connection;

use super::connection::SqliteLocation;
use super::engine::lock;
use crate::StoreError;
use crate::wake::Notifier;

#[derive(Debug)]
pub(crate) struct ChangeDetector {
    place: SqliteLocation,
    bell: Notifier,
    watcher: Mutex<Option<Watcher>>,
}

#[derive(Debug)]
struct Watcher {
    connection: Connection,
    seen: i64,
}

/// The lookout, held while our own writer commits.
pub(crate) struct PausedDetector<'l> {
    lookout: &'l ChangeDetector,
    /// `None` if no watcher has been opened.
    watcher: Option<MutexGuard<'l, Option<Watcher>>>,
}

impl ChangeDetector {
    pub(crate) fn new(place: SqliteLocation, bell: Notifier) -> Self {
        Self { place, bell, watcher: Mutex::new(None) }
    }

    /// Wakes the watchers if another process has committed since the last call.
    pub(crate) fn notice(&self) -> Result<(), StoreError> {
        let mut watcher = match self.watcher.try_lock() {
            Ok(watcher) => watcher,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // Our writer is committing, or another thread is polling. The caller polls again soon.
            Err(TryLockError::WouldBlock) => return Ok(()),
        };
        match watcher.as_mut() {
            Some(watcher) => self.look(watcher),
            None => {
                let connection = self.place.connect()?;
                let seen = self.version(&connection)?;
                *watcher = Some(Watcher { connection, seen });
                Ok(())
            }
        }
    }

    /// Prevents polling until our batch is committed. While the caller holds the gate, every change in the
    /// meantime is its own. Without the gate, the caller wakes the watchers after the batch.
    pub(crate) fn hold(&self) -> PausedDetector<'_> {
        let mut watcher = Some(lock(&self.watcher)).filter(|watcher| watcher.is_some());
        if let Some(watcher) = watcher.as_mut().and_then(|watcher| watcher.as_mut())
            && let Err(error) = self.look(watcher)
        {
            tracing::warn!(error = %error_chain(&error), "could not poll for changes of other processes");
        }
        PausedDetector { lookout: self, watcher }
    }

    pub(crate) fn ring(&self) {
        self.bell.notify();
    }

    fn look(&self, watcher: &mut Watcher) -> Result<(), StoreError> {
        let now = self.version(&watcher.connection)?;
        if watcher.seen != now {
            watcher.seen = now;
            self.bell.notify();
        }
        Ok(())
    }

    fn version(&self, connection: &Connection) -> Result<i64, StoreError> {
        let asked = connection.prepare_cached("PRAGMA data_version");
        let version = asked.and_then(|mut asked| asked.query_row([], |row| row.get(0)));
        version.map_err(|error| self.place.classify("poll for changes", error))
    }
}

impl PausedDetector<'_> {
    /// Marks the commits made in the meantime as seen.
    pub(crate) fn mark_seen(self) {
        let PausedDetector { lookout, watcher } = self;
        let Some(mut watcher) = watcher else { return };
        let Some(watcher) = watcher.as_mut() else { return };
        match lookout.version(&watcher.connection) {
            Ok(now) => watcher.seen = now,
            // The next poll then mistakes our own commit for another process's, which causes one unnecessary
            // wake-up.
            Err(error) => {
                tracing::warn!(error = %error_chain(&error), "could not mark an own commit as seen")
            }
        }
    }
}
