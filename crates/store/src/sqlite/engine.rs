//! A SQLite store as the rest of the crate sees it: write, read, notice what other processes did, back up.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use futures_util::FutureExt;
use rusqlite::Connection;
use rusqlite::backup::Backup;

use super::connection::{OnConnection, Place};
use super::schema;
use super::writer::Writer;
use crate::crash::Faults;
use crate::tx::{Look, Tx, Work};
use crate::wake::Bell;
use crate::{Options, StoreError};

/// Read connections that are kept; more are opened when more threads read at once, and closed after.
const READERS_KEPT: usize = 4;
const BACKUP_PAGES_A_STEP: i32 = 1024;

#[derive(Debug)]
pub(crate) struct Sqlite {
    place: Place,
    writer: Writer,
    readers: Mutex<Vec<Connection>>,
    watcher: Mutex<Option<Watcher>>,
    bell: Bell,
}

/// A connection that only asks whether others have written.
#[derive(Debug)]
struct Watcher {
    connection: Connection,
    seen: i64,
}

impl Sqlite {
    pub(crate) fn open(path: &Path, options: &Options, bell: Bell) -> Result<Self, StoreError> {
        let place = Place { path: path.to_owned(), clock: options.clock };
        let mut connection = place.connect()?;
        schema::settle(&place, &mut connection)?;
        let faults = Faults::new(options);
        let writer = Writer::new(place.clone(), faults, bell.clone());
        let readers = Mutex::new(vec![connection]);
        Ok(Self { place, writer, readers, watcher: Mutex::new(None), bell })
    }

    pub(crate) async fn write<T: Send + 'static>(&self, work: impl Work<T>) -> Result<T, StoreError> {
        self.writer.submit(work).await
    }

    /// Reads on the caller's thread: a point read is quicker than handing it to another.
    pub(crate) fn read<T>(&self, look: impl Look<T>) -> Result<T, StoreError> {
        let mut connection = match lock(&self.readers).pop() {
            Some(connection) => connection,
            None => self.place.connect()?,
        };
        let begun = connection.execute_batch("BEGIN");
        begun.map_err(|error| self.place.classify("begin to read", error))?;
        let seen = {
            let sql = OnConnection { connection: &mut connection, place: &self.place };
            let mut tx = Tx::new(Box::new(sql), Faults::default());
            look(&mut tx).now_or_never()
        };
        // A connection that cannot end its transaction is closed, which ends it.
        if connection.execute_batch("COMMIT").is_ok() {
            let mut readers = lock(&self.readers);
            if readers.len() < READERS_KEPT {
                readers.push(connection);
            }
        }
        seen.unwrap_or_else(|| Err(StoreError::database("read", "the read waited for something outside")))
    }

    /// Rings the bell when another process has committed since this was last asked.
    pub(crate) fn notice(&self) -> Result<(), StoreError> {
        let failed = |error| self.place.classify("look for changes", error);
        let mut watcher = lock(&self.watcher);
        let version = |connection: &Connection| {
            let mut asked = connection.prepare_cached("PRAGMA data_version")?;
            asked.query_row([], |row| row.get::<_, i64>(0))
        };
        match watcher.as_mut() {
            Some(Watcher { connection, seen }) => {
                let now = version(connection).map_err(failed)?;
                if *seen != now {
                    *seen = now;
                    self.bell.ring();
                }
            }
            None => {
                let connection = self.place.connect()?;
                let seen = version(&connection).map_err(failed)?;
                *watcher = Some(Watcher { connection, seen });
            }
        }
        Ok(())
    }

    /// Returns what SQLite itself finds wrong with the file.
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

    /// Copies the store, as it is at one point in time, into a new file.
    pub(crate) fn backup(&self, to: &Path) -> Result<(), StoreError> {
        let target = Place { path: to.to_owned(), clock: self.place.clock };
        if to.exists() {
            return Err(StoreError::Missing {
                place: target.shown(),
                reason: "the file exists already".to_owned(),
            });
        }
        let source = self.place.connect()?;
        let mut copy = target.connect()?;
        let failed = |error| target.classify("back up the store", error);
        let backup = Backup::new(&source, &mut copy).map_err(failed)?;
        backup.run_to_completion(BACKUP_PAGES_A_STEP, std::time::Duration::ZERO, None).map_err(failed)
    }
}

/// A panic while one of these was held left nothing half done: each is a plain value.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
