//! Noticing what other processes commit: a connection that only asks whether others have written. To it our own writer
//! is another too, so the writer holds it during a batch and says afterwards that what changed is known; otherwise
//! every quiet commit would ring the bell after all.

use std::sync::{Mutex, MutexGuard, TryLockError};

use drydock_domain::told;
use rusqlite::Connection;

use super::connection::Place;
use super::engine::lock;
use crate::StoreError;
use crate::wake::Bell;

#[derive(Debug)]
pub(crate) struct Lookout {
    place: Place,
    bell: Bell,
    watcher: Mutex<Option<Watcher>>,
}

#[derive(Debug)]
struct Watcher {
    connection: Connection,
    seen: i64,
}

/// A lookout that is held while our own writer commits.
pub(crate) struct Held<'l> {
    lookout: &'l Lookout,
    /// Nothing when nobody has ever watched.
    watcher: Option<MutexGuard<'l, Option<Watcher>>>,
}

impl Lookout {
    pub(crate) fn new(place: Place, bell: Bell) -> Self {
        Self { place, bell, watcher: Mutex::new(None) }
    }

    /// Rings the bell when another process has committed since this was last asked.
    pub(crate) fn notice(&self) -> Result<(), StoreError> {
        let mut watcher = match self.watcher.try_lock() {
            Ok(watcher) => watcher,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // Our writer commits, or somebody else looks; who waits for a change looks again soon.
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

    /// Keeps others from looking until our batch is committed. The caller is past the gate, so that whatever changes
    /// meanwhile is its own, or rings the bell afterwards.
    pub(crate) fn hold(&self) -> Held<'_> {
        let mut watcher = Some(lock(&self.watcher)).filter(|watcher| watcher.is_some());
        if let Some(watcher) = watcher.as_mut().and_then(|watcher| watcher.as_mut())
            && let Err(error) = self.look(watcher)
        {
            tracing::warn!(error = %told(&error), "could not look for changes of other processes");
        }
        Held { lookout: self, watcher }
    }

    pub(crate) fn ring(&self) {
        self.bell.ring();
    }

    fn look(&self, watcher: &mut Watcher) -> Result<(), StoreError> {
        let now = self.version(&watcher.connection)?;
        if watcher.seen != now {
            watcher.seen = now;
            self.bell.ring();
        }
        Ok(())
    }

    fn version(&self, connection: &Connection) -> Result<i64, StoreError> {
        let asked = connection.prepare_cached("PRAGMA data_version");
        let version = asked.and_then(|mut asked| asked.query_row([], |row| row.get(0)));
        version.map_err(|error| self.place.classify("look for changes", error))
    }
}

impl Held<'_> {
    /// Takes what was committed meanwhile as seen.
    pub(crate) fn overlook(self) {
        let Held { lookout, watcher } = self;
        let Some(mut watcher) = watcher else { return };
        let Some(watcher) = watcher.as_mut() else { return };
        match lookout.version(&watcher.connection) {
            Ok(now) => watcher.seen = now,
            // Then the next look takes our own commit for another's, and wakes somebody for nothing.
            Err(error) => tracing::warn!(error = %told(&error), "could not look past an own commit"),
        }
    }
}
