//! Opens SQLite connections with the settings of this store, maps SQLite's errors, and runs statements.

use std::fs::{self, OpenOptions};
use std::future::ready;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use drydock_domain::Timestamp;
use rusqlite::functions::FunctionFlags;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ErrorCode, OpenFlags, ToSql, ffi};

use super::{holder, room};
use crate::StoreError;
use crate::tx::{BatchEnd, BoxFuture, Dialect, ResultSets, Sql};
use crate::value::{Row, Statement, Value};

/// Older versions can corrupt a database when its write-ahead log is reset.
const ENGINE_MIN: i32 = 3_051_003;
const _: () = assert!(ffi::SQLITE_VERSION_NUMBER >= ENGINE_MIN, "the bundled SQLite is too old");

/// Only needed for other programs: our own processes queue at the [`WriteQueue`](super::gate::WriteQueue) file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
const STATEMENTS_CACHED: usize = 128;
/// The file mode of our files: other users must not read tasks, outputs and token digests.
pub(super) const PRIVATE: u32 = 0o600;
/// Advice for a file that does not exist and cannot be created.
pub(super) const MISSING: &str = "create the directory, or name another store with --store";

/// The path of a database, and the clock that determines lock expiry.
#[derive(Debug, Clone)]
pub(crate) struct SqliteLocation {
    pub(crate) path: PathBuf,
    pub(crate) clock: fn() -> Timestamp,
}

impl SqliteLocation {
    pub(crate) fn shown(&self) -> String {
        self.path.display().to_string()
    }

    /// Opens a connection, and creates the file if it does not exist.
    pub(crate) fn connect(&self) -> Result<Connection, StoreError> {
        let attempt = "open the store";
        if rusqlite::version_number() < ENGINE_MIN {
            return Err(StoreError::database(attempt, format!("SQLite {} is too old", rusqlite::version())));
        }
        self.check_directory()?;
        self.make_private();
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = Connection::open_with_flags(&self.path, flags);
        let connection = opened.map_err(|error| self.classify(attempt, error))?;
        self.prepare(&connection).map_err(|error| self.classify(attempt, error))?;
        if connection.is_readonly("main").map_err(|error| self.classify(attempt, error))? {
            return Err(self.read_only("the file is read-only".into()));
        }
        Ok(connection)
    }

    /// Creates the file with access for this user only, if it does not exist: SQLite would make it readable
    /// for others. SQLite gives its `-wal` and `-shm` files the same mode. An existing file is not opened,
    /// because closing it would release SQLite's locks. Errors are ignored here, because SQLite reports them
    /// when it opens the file.
    fn make_private(&self) {
        OpenOptions::new().write(true).create_new(true).mode(PRIVATE).open(&self.path).ok();
    }

    fn prepare(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS_CACHED);
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "foreign_keys", "ON")?;
        let clock = self.clock;
        // On PostgreSQL a stored function has the same name and uses the server's clock, so that one SQL text
        // works on both.
        connection.create_scalar_function("drydock_now", 0, FunctionFlags::SQLITE_UTF8, move |_| {
            Ok(clock().as_micros())
        })
    }

    fn check_directory(&self) -> Result<(), StoreError> {
        let parent = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let directory = parent.unwrap_or(Path::new("."));
        match fs::metadata(directory) {
            Ok(found) if found.is_dir() => Ok(()),
            Ok(_) => Err(self.missing(format!("{} is not a directory", directory.display()))),
            Err(error) => Err(self.missing(format!("{}: {error}", directory.display()))),
        }
    }

    fn missing(&self, reason: String) -> StoreError {
        StoreError::Missing { place: self.shown(), reason, remedy: MISSING }
    }

    pub(crate) fn read_only(&self, source: Box<dyn std::error::Error + Send + Sync>) -> StoreError {
        let remedy = "check the permissions of the file and of its directory";
        StoreError::ReadOnly { place: self.shown(), remedy, source: Arc::from(source) }
    }

    /// Returns the error for a store that another process holds, with that process.
    pub(crate) fn busy(&self, attempt: &'static str) -> StoreError {
        StoreError::Busy { place: self.shown(), attempt, holder: holder::of(&self.path) }
    }

    /// Maps an error of SQLite.
    pub(crate) fn classify(&self, attempt: &'static str, error: rusqlite::Error) -> StoreError {
        let place = self.shown();
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => self.busy(attempt),
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => self.read_only(error.into()),
            Some(ErrorCode::CannotOpen) => match fs::metadata(&self.path) {
                Ok(found) if found.is_dir() => self.missing(format!("{place} is a directory")),
                Ok(_) | Err(_) => self.read_only(error.into()),
            },
            Some(ErrorCode::DiskFull) => StoreError::Full { place, source: Arc::new(error) },
            Some(ErrorCode::SystemIoFailure) if room::is_lacking(&self.path) => {
                StoreError::Full { place, source: Arc::new(error) }
            }
            Some(ErrorCode::DatabaseCorrupt) => StoreError::Corrupt { place, source: Arc::new(error) },
            Some(ErrorCode::NotADatabase) => {
                StoreError::NotDrydock { place, reason: "the file is not a database".to_owned() }
            }
            Some(_) | None => StoreError::database(attempt, error),
        }
    }
}

/// Runs statements on one connection, synchronously. The caller begins and ends the transaction.
pub(crate) struct SqliteTx<'c> {
    pub(crate) connection: &'c mut Connection,
    pub(crate) place: &'c SqliteLocation,
}

impl SqliteTx<'_> {
    fn run(&self, statement: &Statement) -> Result<Vec<Row>, rusqlite::Error> {
        // In SQLite `$3` is a named parameter that gets the next free index; `?3` is the third parameter.
        let mut prepared = self.connection.prepare_cached(&statement.sql.replace('$', "?"))?;
        let columns = prepared.column_count();
        let mut rows = prepared.query(rusqlite::params_from_iter(&statement.params))?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            let values = (0..columns).map(|column| row.get_ref(column).map(owned));
            found.push(Row(values.collect::<Result<_, _>>()?));
        }
        Ok(found)
    }
}

impl Sql for SqliteTx<'_> {
    fn pipeline(
        &mut self,
        statements: Vec<Statement>,
        _ending: BatchEnd,
    ) -> BoxFuture<'_, Result<ResultSets, StoreError>> {
        let answers = statements.iter().map(|statement| self.run(statement)).collect::<Result<_, _>>();
        let answers = answers.map_err(|error| self.place.classify("run a statement", error));
        Box::pin(ready(answers))
    }

    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }
}

/// The statements of one read, which see one point in time. A single statement needs no transaction. For
/// several, this begins a transaction, which the caller ends.
pub(crate) struct SqliteReadTx<'c>(pub(crate) SqliteTx<'c>);

impl Sql for SqliteReadTx<'_> {
    fn pipeline(
        &mut self,
        statements: Vec<Statement>,
        ending: BatchEnd,
    ) -> BoxFuture<'_, Result<ResultSets, StoreError>> {
        let SqliteTx { connection, place } = &self.0;
        let alone = ending == BatchEnd::Commit && statements.len() == 1;
        if !alone
            && connection.is_autocommit()
            && let Err(error) = connection.execute_batch("BEGIN")
        {
            return Box::pin(ready(Err(place.classify("begin to read", error))));
        }
        self.0.pipeline(statements, ending)
    }

    fn dialect(&self) -> Dialect {
        self.0.dialect()
    }
}

fn owned(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(value) => Value::Int(value),
        // No column has this type; code that reads it as another type reports the row as damaged.
        ValueRef::Real(value) => Value::Blob(value.to_be_bytes().to_vec()),
        ValueRef::Text(text) => match str::from_utf8(text) {
            Ok(text) => Value::Text(text.to_owned()),
            Err(_) => Value::Blob(text.to_vec()),
        },
        ValueRef::Blob(bytes) => Value::Blob(bytes.to_vec()),
    }
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Value::Null => ValueRef::Null,
            Value::Int(value) => ValueRef::Integer(*value),
            Value::Text(value) => ValueRef::Text(value.as_bytes()),
            Value::Blob(value) => ValueRef::Blob(value),
        }))
    }
}
