//! Connections as this store wants them, what SQLite's errors mean here, and statements run on one.

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
use crate::tx::{Answers, BoxFuture, Dialect, Ending, Sql};
use crate::value::{Row, Statement, Value};

/// Older engines can corrupt a database when its write-ahead log is reset.
const ENGINE_MIN: i32 = 3_051_003;
const _: () = assert!(ffi::SQLITE_VERSION_NUMBER >= ENGINE_MIN, "the bundled SQLite is too old");

/// A net for foreign programs; our own processes queue at the gate.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
const STATEMENTS_CACHED: usize = 128;
/// The mode of our files: tasks, outputs and digests are not for other users.
pub(super) const PRIVATE: u32 = 0o600;
/// What to do about a file that is not there and cannot be made.
pub(super) const MISSING: &str = "create the directory, or name another store with --store";

/// Where a database is, and which clock its locks are judged by.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) path: PathBuf,
    pub(crate) clock: fn() -> Timestamp,
}

impl Place {
    pub(crate) fn shown(&self) -> String {
        self.path.display().to_string()
    }

    /// Opens one more connection, making the file when there is none.
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
            return Err(self.read_only("the file may only be read".into()));
        }
        Ok(connection)
    }

    /// Makes the file for this user alone, when there is none: SQLite would let others read it. Its log and index beside it
    /// get the same mode. One that is there is not opened, since closing it would drop SQLite's locks; and what fails here,
    /// fails in SQLite's words.
    fn make_private(&self) {
        OpenOptions::new().write(true).create_new(true).mode(PRIVATE).open(&self.path).ok();
    }

    fn prepare(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS_CACHED);
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "foreign_keys", "ON")?;
        let clock = self.clock;
        // The name is a stored function on PostgreSQL, where the server's clock judges; so one text serves both.
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

    /// Says that another process holds it, and which.
    pub(crate) fn busy(&self, attempt: &'static str) -> StoreError {
        StoreError::Busy { place: self.shown(), attempt, holder: holder::of(&self.path) }
    }

    /// Says what an error of SQLite means to a caller.
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

/// Statements on one connection, which answers at once. Whoever made it begins and ends the transaction.
pub(crate) struct OnConnection<'c> {
    pub(crate) connection: &'c mut Connection,
    pub(crate) place: &'c Place,
}

impl OnConnection<'_> {
    fn run(&self, statement: &Statement) -> Result<Vec<Row>, rusqlite::Error> {
        // To SQLite `$3` is a name that gets the next free place, not the third place; `?3` is.
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

impl Sql for OnConnection<'_> {
    fn pipeline(
        &mut self,
        statements: Vec<Statement>,
        _ending: Ending,
    ) -> BoxFuture<'_, Result<Answers, StoreError>> {
        let answers = statements.iter().map(|statement| self.run(statement)).collect::<Result<_, _>>();
        let answers = answers.map_err(|error| self.place.classify("run a statement", error));
        Box::pin(ready(answers))
    }

    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }
}

/// Statements of one look, which see one point in time. A look of a single statement does so by itself; a longer one
/// begins a transaction, which whoever made this ends.
pub(crate) struct Reading<'c>(pub(crate) OnConnection<'c>);

impl Sql for Reading<'_> {
    fn pipeline(
        &mut self,
        statements: Vec<Statement>,
        ending: Ending,
    ) -> BoxFuture<'_, Result<Answers, StoreError>> {
        let OnConnection { connection, place } = &self.0;
        let alone = ending == Ending::Commit && statements.len() == 1;
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
        // No column is of this type; whoever reads it as something else reports the row.
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
