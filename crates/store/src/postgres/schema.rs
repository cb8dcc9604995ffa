//! The schema on PostgreSQL, as numbered migration steps that are never edited once released. One transaction
//! under an advisory lock migrates a database from any older version to the newest.

use deadpool_postgres::Object;
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use super::fault::classify;
use crate::StoreError;

/// "drydock" in the key space of advisory locks, which is per database; the last digit stands for the
/// purpose.
pub(crate) const MIGRATION_KEY: i64 = 0x6472_7964_6f63_0001;

/// Each entry migrates the schema by one version.
const STEPS: &[&str] = &[
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

/// Makes sure that the database has the schema version of this program.
pub(crate) async fn ensure(place: &str, client: &Object) -> Result<(), StoreError> {
    let failed = |error| classify(place, "migrate the store", error);
    if compare(place, version(client).await.map_err(failed)?)? {
        return Ok(());
    }
    let begin = format!("BEGIN; SELECT pg_advisory_xact_lock({MIGRATION_KEY})");
    client.batch_execute(&begin).await.map_err(failed)?;
    let migrated = migrate(place, client).await;
    let end = if migrated.is_ok() { "COMMIT" } else { "ROLLBACK" };
    client.batch_execute(end).await.map_err(failed)?;
    migrated
}

/// Returns true if the schema is the newest known; rejects a newer one.
fn compare(place: &str, found: i64) -> Result<bool, StoreError> {
    if found > known() {
        return Err(StoreError::Newer { place: place.to_owned(), found, known: known() });
    }
    Ok(found == known())
}

/// Returns the schema version, or 0 for a database without schema.
async fn version(client: &Object) -> Result<i64, Error> {
    // `to_regclass` could return a result that this session cached before it waited for the lock.
    let exists = "SELECT 1 FROM pg_class WHERE relname = 'drydock_schema' AND pg_table_is_visible(oid)";
    if client.query_opt(exists, &[]).await?.is_none() {
        return Ok(0);
    }
    let row = client.query_opt("SELECT max(version) FROM drydock_schema", &[]).await?;
    Ok(row.and_then(|row| row.get::<_, Option<i64>>(0)).unwrap_or(0))
}

async fn migrate(place: &str, client: &Object) -> Result<(), StoreError> {
    let failed = |error: Error| match error.code() {
        Some(&SqlState::DUPLICATE_TABLE | &SqlState::DUPLICATE_FUNCTION) => StoreError::NotDrydock {
            place: place.to_owned(),
            reason: "the database has tables of the same name that Drydock did not create".to_owned(),
        },
        _ => classify(place, "migrate the store", error),
    };
    // Another process may have migrated while we waited for the lock.
    let found = version(client).await.map_err(failed)?;
    if compare(place, found)? {
        return Ok(());
    }
    if found == 0 {
        client
            .batch_execute("CREATE TABLE drydock_schema (version BIGINT NOT NULL)")
            .await
            .map_err(failed)?;
    }
    for step in STEPS.iter().skip(usize::try_from(found).unwrap_or(0)) {
        client.batch_execute(step).await.map_err(failed)?;
    }
    let record = "INSERT INTO drydock_schema (version) VALUES ($1)";
    client.execute(record, &[&known()]).await.map(drop).map_err(failed)
}
