//! The schema on SQLite, as numbered migration steps that are never edited once released. Also decides
//! whether a file can be opened that is empty, older, newer, or from another program.

use std::io;
use std::time::{Duration, Instant};

use rusqlite::{Connection, TransactionBehavior};

use super::connection::SqliteLocation;
use super::gate::WriteQueue;
use crate::StoreError;

/// Marks our files: "DRYD".
const APPLICATION_ID: i64 = 0x4452_5944;
const GATE_WAIT_MAX: Duration = Duration::from_secs(10);

/// Each entry migrates the schema by one version.
pub(crate) const STEPS: &[&str] = &[
    include_str!("schema_1.sql"),
    include_str!("schema_2.sql"),
    include_str!("schema_3.sql"),
    include_str!("schema_4.sql"),
    include_str!("schema_5.sql"),
    include_str!("schema_6.sql"),
    include_str!("schema_7.sql"),
    include_str!("schema_8.sql"),
    include_str!("schema_9.sql"),
    include_str!("schema_10.sql"),
];

/// Returns the schema version that this program writes.
pub(crate) fn known() -> i64 {
    STEPS.len() as i64
}

enum DatabaseContents {
    Empty,
    Ours(i64),
}

/// Makes sure that the file is a drydock store with the schema version of this program.
pub(crate) fn ensure(place: &SqliteLocation, connection: &mut Connection) -> Result<(), StoreError> {
    match inspect(place, connection)? {
        DatabaseContents::Ours(version) if version == known() => return Ok(()),
        DatabaseContents::Ours(_) | DatabaseContents::Empty => {}
    }
    let gate = WriteQueue::open(&place.path).map_err(|error| gate_error(place, error))?;
    let pass = gate.pass_within(GATE_WAIT_MAX).map_err(|error| gate_error(place, error))?;
    let Some(_pass) = pass else {
        return Err(place.busy("migrate the store"));
    };
    match inspect(place, connection)? {
        DatabaseContents::Ours(version) if version == known() => Ok(()),
        DatabaseContents::Ours(version) => migrate(place, connection, version),
        DatabaseContents::Empty => migrate(place, connection, 0),
    }
}

pub(crate) fn gate_error(place: &SqliteLocation, error: io::Error) -> StoreError {
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => place.read_only(error.into()),
        io::ErrorKind::StorageFull => {
            StoreError::Full { place: place.shown(), source: std::sync::Arc::new(error) }
        }
        _ => StoreError::database("lock the write gate of the store", error),
    }
}

fn inspect(place: &SqliteLocation, connection: &mut Connection) -> Result<DatabaseContents, StoreError> {
    let seen = look(connection).map_err(|error| place.classify("read the store's schema", error))?;
    match seen {
        (APPLICATION_ID, version, _) if version > known() => {
            Err(StoreError::Newer { place: place.shown(), found: version, known: known() })
        }
        (APPLICATION_ID, version, _) => Ok(DatabaseContents::Ours(version)),
        (0, 0, 0) => Ok(DatabaseContents::Empty),
        (mark, ..) => {
            let reason = format!("it is the database of another program (application id {mark})");
            Err(StoreError::NotDrydock { place: place.shown(), reason })
        }
    }
}

/// Reads the application id, the schema version and the number of schema entries at one point in time.
fn look(connection: &mut Connection) -> rusqlite::Result<(i64, i64, i64)> {
    let tx = connection.transaction_with_behavior(TransactionBehavior::Deferred)?;
    let number = |sql: &str| tx.query_row(sql, [], |row| row.get::<_, i64>(0));
    Ok((
        number("PRAGMA application_id")?,
        number("PRAGMA user_version")?,
        number("SELECT count(*) FROM sqlite_schema")?,
    ))
}

fn migrate(place: &SqliteLocation, connection: &mut Connection, from: i64) -> Result<(), StoreError> {
    let failed = |error| place.classify("migrate the store", error);
    write_ahead(connection).map_err(failed)?;
    let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    for step in STEPS.iter().skip(usize::try_from(from).unwrap_or(0)) {
        tx.execute_batch(step).map_err(failed)?;
    }
    tx.pragma_update(None, "application_id", APPLICATION_ID).map_err(failed)?;
    tx.pragma_update(None, "user_version", known()).map_err(failed)?;
    tx.commit().map_err(failed)
}

/// Switches to the write-ahead log. Retries, because a concurrent reader can block the switch.
fn write_ahead(connection: &Connection) -> rusqlite::Result<()> {
    let started = Instant::now();
    loop {
        let switched = connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0));
        match switched {
            Ok(mode) if mode == "wal" => return Ok(()),
            Err(error) if started.elapsed() >= GATE_WAIT_MAX => return Err(error),
            Ok(mode) if started.elapsed() >= GATE_WAIT_MAX => {
                return Err(rusqlite::Error::InvalidParameterName(format!("journal mode stays {mode}")));
            }
            Ok(_) | Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}
