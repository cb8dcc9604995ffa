//! Checks made once when a server is opened: whether the requested session limits are in force, and how many
//! connections the server has. A pooler may drop the limits. Without them, a process that is suspended in the
//! middle of a transaction would hold its row locks until it resumes.

use deadpool_postgres::Object;

use super::address::{Address, SESSION_LIMIT_MS};
use super::fault::classify;
use crate::StoreError;

const LOOK: &str = "SELECT name, setting, source FROM pg_settings WHERE name IN
    ('lock_timeout', 'idle_in_transaction_session_timeout', 'max_connections', 'superuser_reserved_connections')";

/// Rejects a server on which the limits are not in force, and returns its number of connections for ordinary
/// users.
pub(crate) async fn check(address: &Address, client: &Object) -> Result<i64, StoreError> {
    let failed = |error| classify(&address.shown, "read the settings of the server", error);
    let (mut most, mut reserved) = (0, 0);
    for row in client.query(LOOK, &[]).await.map_err(failed)? {
        let (name, setting, source): (&str, &str, &str) = (row.get(0), row.get(1), row.get(2));
        let value: i64 = setting.parse().unwrap_or(0);
        match name {
            "max_connections" => most = value,
            "superuser_reserved_connections" => reserved = value,
            // A limit set in the address, in any unit, has the client as its source; otherwise it must be our
            // own limit.
            _ if value == SESSION_LIMIT_MS || matches!(source, "client" | "session") => {}
            _ => {
                let reason = format!(
                    "it ignores the settings of a connection: {name} is {value} ms instead of \
                     {SESSION_LIMIT_MS} ms"
                );
                return Err(StoreError::Pooled { place: address.shown.clone(), reason });
            }
        }
    }
    Ok(most - reserved)
}
