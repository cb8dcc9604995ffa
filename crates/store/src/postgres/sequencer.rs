//! Numbers the events of the feed. A database sequence assigns numbers before the commit, so that they become
//! visible out of order. A single counter row would make every commit wait for the previous one to reach the
//! disk. So events are committed without a number and numbered right after. One task per process does this,
//! and so does any reader that finds unnumbered events, so that none is missed when a process dies in
//! between. Within a plan the ids are in order, because the plan's lock row is held while they are assigned.

use std::sync::{Arc, Weak};
use std::time::Duration;

use drydock_domain::error_chain;

use super::connections::Want;
use super::engine::PgShared;
use super::fault::classify;
use crate::{StoreError, task};

pub(crate) const CHANNEL: &str = "drydock";
const NUMBERING_KEY: i64 = 0x6472_7964_6f63_0002;

/// The advisory lock is a separate statement, so that the next statement sees everything that was numbered
/// before the lock was acquired.
fn numbering() -> String {
    format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SELECT pg_advisory_xact_lock({NUMBERING_KEY});
         UPDATE events SET seq = pending.seq FROM (
             SELECT id, (SELECT coalesce(max(seq), 0) FROM events) + row_number() OVER (ORDER BY id) AS seq
             FROM events WHERE seq IS NULL) AS pending
         WHERE events.id = pending.id;
         SELECT pg_notify('{CHANNEL}', ''); COMMIT"
    )
}

/// Numbers the committed events without a number, and notifies every listening process once.
pub(crate) async fn number(server: &PgShared) -> Result<(), StoreError> {
    let client = server.client(Want::Work).await?;
    let Err(error) = client.batch_execute(&numbering()).await else { return Ok(()) };
    // The transaction may still be open, so the connection must not return to the pool.
    drop(deadpool_postgres::Object::take(client));
    Err(classify(&server.address.shown, "number the events", error))
}

/// Delay before a failed numbering is retried.
const NUMBERING_AGAIN: Duration = Duration::from_millis(500);
/// Minimum interval between two numberings of one process.
const NUMBERING_EVERY: Duration = Duration::from_millis(5);

/// Returns true if some events are not numbered.
pub(crate) async fn is_pending(server: &PgShared) -> Result<bool, StoreError> {
    let client = server.client(Want::Work).await?;
    let failed = |error| classify(&server.address.shown, "find unnumbered events", error);
    let asked =
        client.prepare_cached("SELECT 1 FROM events WHERE seq IS NULL LIMIT 1").await.map_err(failed)?;
    Ok(client.query_opt(&asked, &[]).await.map_err(failed)?.is_some())
}

/// Starts the task that numbers after commits; it ends with the store.
pub(crate) fn start(server: &Arc<PgShared>) {
    let (nudge, server) = (Arc::clone(&server.nudge), Arc::downgrade(server));
    task::start(async move {
        loop {
            // Any number of commits during a numbering cause one further wake-up.
            nudge.notified().await;
            let Some(server) = Weak::upgrade(&server) else { return };
            if let Err(error) = number(&server).await {
                tracing::warn!(error = %error_chain(&error), "events are not numbered yet; trying again");
                drop(server);
                tokio::time::sleep(NUMBERING_AGAIN).await;
                nudge.notify_one();
                continue;
            }
            drop(server);
            // Each numbering is a separate commit; under load one serves many transitions. A reader in the
            // meantime numbers the events itself.
            tokio::time::sleep(NUMBERING_EVERY).await;
        }
    });
}
