//! The SQLite store, as used by the rest of the crate: write, read, detect commits of other processes, back
//! up.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use drydock_domain::error_chain;
use futures_util::FutureExt;
use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};

use super::connection::{MISSING, PRIVATE, SqliteLocation, SqliteReadTx, SqliteTx};
use super::lookout::ChangeDetector;
use super::schema;
use super::writer::Writer;
use crate::crash::Faults;
use crate::tx::{ReadFn, Tx, WriteFn};
use crate::wake::Notifier;
use crate::{Options, StoreError};

/// Number of read connections to keep. More are opened if more threads read concurrently, and closed
/// afterwards.
const READERS_KEPT: usize = 4;
/// Copies all pages in one step, so that the copy is of one point in time. Between two steps a commit could
/// restart the copy, and frequent commits could do so forever.
const BACKUP_PAGES_A_STEP: i32 = -1;

#[derive(Debug)]
pub(crate) struct Sqlite {
    place: SqliteLocation,
    writer: Writer,
    readers: Mutex<Vec<Connection>>,
    lookout: Arc<ChangeDetector>,
}

impl Sqlite {
    pub(crate) fn open(path: &Path, options: &Options, bell: Notifier) -> Result<Self, StoreError> {
        let place = SqliteLocation { path: path.to_owned(), clock: options.clock };
        let mut connection = place.connect()?;
        schema::ensure(&place, &mut connection)?;
        let faults = Faults::new(options);
        let lookout = Arc::new(ChangeDetector::new(place.clone(), bell));
        let writer = Writer::new(place.clone(), faults, Arc::clone(&lookout));
        let readers = Mutex::new(vec![connection]);
        Ok(Self { place, writer, readers, lookout })
    }

    pub(crate) async fn write<T: Send + 'static>(&self, work: impl WriteFn<T>) -> Result<T, StoreError> {
        self.writer.submit(work).await
    }

    /// Reads on the caller's thread: a point read is faster than passing it to another thread.
    pub(crate) fn read<T>(&self, look: impl ReadFn<T>) -> Result<T, StoreError> {
        let mut connection = match lock(&self.readers).pop() {
            Some(connection) => connection,
            None => self.place.connect()?,
        };
        let seen = {
            let sql = SqliteReadTx(SqliteTx { connection: &mut connection, place: &self.place });
            let mut tx = Tx::new(Box::new(sql), Faults::default());
            look(&mut tx).now_or_never()
        };
        // A connection that cannot end its transaction is closed, which ends it.
        if connection.is_autocommit() || connection.execute_batch("COMMIT").is_ok() {
            let mut readers = lock(&self.readers);
            if readers.len() < READERS_KEPT {
                readers.push(connection);
            }
        }
        seen.unwrap_or_else(|| Err(StoreError::database("read", "the read waited for something outside")))
    }

    /// Wakes the watchers if another process has committed since the last call.
    pub(crate) fn notice(&self) -> Result<(), StoreError> {
        self.lookout.notice()
    }

    /// Returns the problems that SQLite's own checks find in the file.
    pub(crate) fn integrity(&self) -> Result<Vec<String>, StoreError> {
        let failed = |error| self.place.classify("check the store", error);
        let connection = self.place.connect()?;
        let mut found = Vec::new();
        for pragma in ["PRAGMA integrity_check", "PRAGMA foreign_key_check"] {
            let mut asked = connection.prepare(pragma).map_err(failed)?;
            let lines = asked.query_map([], |row| row.get::<_, String>(0)).map_err(failed)?;
            for line in lines {
                let line = line.map_err(failed)?;
                if line != "ok" {
                    found.push(format!("{pragma}: {line}"));
                }
            }
        }
        Ok(found)
    }

    /// Copies a consistent state of the store into a new file.
    pub(crate) fn backup(&self, to: &Path) -> Result<(), StoreError> {
        let target = SqliteLocation { path: to.to_owned(), clock: self.place.clock };
        let source = self.place.connect()?;
        // Created exclusively, so that removing it after an error cannot delete another file.
        OpenOptions::new().write(true).create_new(true).mode(PRIVATE).open(to).map_err(
            |error| match error.kind() {
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    target.read_only(error.into())
                }
                _ => {
                    StoreError::Missing { place: target.shown(), reason: error.to_string(), remedy: MISSING }
                }
            },
        )?;
        let copied = copy(&source, &target);
        if copied.is_err() {
            remove_half(to);
        }
        copied
    }
}

fn copy(source: &Connection, target: &SqliteLocation) -> Result<(), StoreError> {
    let attempt = "back up the store";
    let mut copy = target.connect()?;
    let failed = |error| target.classify(attempt, error);
    let backup = Backup::new(source, &mut copy).map_err(failed)?;
    match backup.step(BACKUP_PAGES_A_STEP).map_err(failed)? {
        StepResult::Done => Ok(()),
        _ => Err(target.busy(attempt)),
    }
}

/// Removes an incomplete copy, and the files that SQLite created beside it.
fn remove_half(path: &Path) {
    for suffix in ["", "-journal", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        match fs::remove_file(PathBuf::from(&name)) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                tracing::error!(error = %error_chain(&error), file = ?name, "could not remove an incomplete backup")
            }
        }
    }
}

/// Ignores poisoning: each mutex protects a plain value, which a panic cannot leave half changed.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
