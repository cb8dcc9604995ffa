//! Reads a SQLite file as a second observer: over its own connection, independent of the process that has it open.

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::types::ValueRef;

/// How long a statement waits for a writer.
const BUSY_LIMIT: Duration = Duration::from_secs(90);

/// Runs a statement and returns its rows as `postgres::Database::query` does: columns separated by `|`, one row per
/// line.
#[track_caller]
pub fn query(file: &Path, statement: &str) -> String {
    match rows(file, statement) {
        Ok(rows) => rows.join("\n"),
        Err(error) => panic!("could not run {statement:?} on {}: {error}", file.display()),
    }
}

fn rows(file: &Path, statement: &str) -> rusqlite::Result<Vec<String>> {
    let connection = Connection::open(file)?;
    connection.busy_timeout(BUSY_LIMIT)?;
    let mut asked = connection.prepare(statement)?;
    let columns = asked.column_count();
    let rows = asked.query_map([], |row| {
        let shown = (0..columns).map(|column| match row.get_ref(column)? {
            ValueRef::Null => Ok(String::new()),
            ValueRef::Integer(number) => Ok(number.to_string()),
            other => Ok(other.as_str()?.to_owned()),
        });
        Ok(shown.collect::<rusqlite::Result<Vec<_>>>()?.join("|"))
    })?;
    rows.collect()
}
