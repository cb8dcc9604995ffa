//! Maps errors of PostgreSQL to [`StoreError`].

use std::sync::Arc;

use deadpool_postgres::PoolError;
use drydock_domain::error_chain;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use crate::StoreError;

/// Maps an error of the server or the connection.
pub(crate) fn classify(place: &str, attempt: &'static str, error: Error) -> StoreError {
    let here = || place.to_owned();
    let Some(code) = error.code() else {
        // Without a code, the error is not from the server: the connection failed, or a parameter does not
        // fit its column.
        return StoreError::Unavailable { place: here(), reason: error_chain(&error) };
    };
    match code {
        &SqlState::T_R_DEADLOCK_DETECTED
        | &SqlState::T_R_SERIALIZATION_FAILURE
        | &SqlState::LOCK_NOT_AVAILABLE
        | &SqlState::QUERY_CANCELED => StoreError::Busy { place: here(), attempt, holder: None },
        &SqlState::TOO_MANY_CONNECTIONS => StoreError::Crowded { place: here(), reason: error_chain(&error) },
        // A pooler returns these if it does not forward a request, or if two of our connections share one
        // server session.
        &SqlState::PROTOCOL_VIOLATION
        | &SqlState::DUPLICATE_PSTATEMENT
        | &SqlState::INVALID_SQL_STATEMENT_NAME => {
            StoreError::Pooled { place: here(), reason: error_chain(&error) }
        }
        &SqlState::DISK_FULL => StoreError::Full { place: here(), source: Arc::new(error) },
        &SqlState::READ_ONLY_SQL_TRANSACTION => StoreError::ReadOnly {
            place: here(),
            remedy: "name the primary server, not a read-only replica",
            source: Arc::new(error),
        },
        &SqlState::INSUFFICIENT_PRIVILEGE => StoreError::ReadOnly {
            place: here(),
            remedy: "grant the database user the right to create and to write tables there",
            source: Arc::new(error),
        },
        &SqlState::DATA_CORRUPTED | &SqlState::INDEX_CORRUPTED => {
            StoreError::Corrupt { place: here(), source: Arc::new(error) }
        }
        &SqlState::INVALID_CATALOG_NAME => StoreError::Missing {
            place: here(),
            reason: error_chain(&error),
            remedy: "create the database first (`createdb NAME`), or name another store with --store",
        },
        &SqlState::ADMIN_SHUTDOWN
        | &SqlState::CRASH_SHUTDOWN
        | &SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT
        | &SqlState::CANNOT_CONNECT_NOW
        | &SqlState::INVALID_PASSWORD
        | &SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
            StoreError::Unavailable { place: here(), reason: error_chain(&error) }
        }
        _ => StoreError::database(attempt, error),
    }
}

/// Maps the error of a failed attempt to get a connection.
pub(crate) fn no_connection(place: &str, error: PoolError) -> StoreError {
    match error {
        PoolError::Backend(error) => classify(place, "connect", error),
        other => StoreError::Unavailable { place: place.to_owned(), reason: error_chain(&other) },
    }
}
