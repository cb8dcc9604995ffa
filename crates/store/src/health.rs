//! Health of the store: counts for the health check, a thorough consistency check, and a backup copy.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::plan::row::{PLAN_COLUMNS, plan_from};
use crate::store::StoreEngine;
use crate::tx::{BoxFuture, Tx};
use crate::value::{Statement, Value};
use crate::{Store, StoreError};

/// Number of rows that a check reads at a time.
const CHECK_PAGE: i64 = 500;
/// Number of problems after which a check stops reading plans.
const PROBLEMS_MAX: usize = 100;

/// Numbers of objects in a store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counts {
    /// Plans, by the name of their state.
    pub plans: BTreeMap<String, i64>,
    /// Held locks.
    pub locks: i64,
    /// Locks that have expired and were not acquired again (S1.7).
    pub stale_locks: i64,
    /// Effects in the outbox, claimed or not.
    pub effects: i64,
    /// Age in microseconds of the oldest effect that is due.
    pub overdue_us: i64,
    /// Open decisions.
    pub open_decisions: i64,
}

impl Store {
    /// Counts the objects in the store.
    pub fn counts(&self) -> BoxFuture<'_, Result<Counts, StoreError>> {
        let store = self.clone();
        Box::pin(async move {
            match self.engine() {
                StoreEngine::Postgres(_) => self.read(|tx| Box::pin(counts(tx))).await,
                StoreEngine::Sqlite(_) => {
                    on_own_thread(move || store.on_sqlite(|sqlite| sqlite.read(|tx| Box::pin(counts(tx)))))
                        .await
                }
            }
        })
    }

    /// Returns the version of the schema.
    pub fn schema_version(&self) -> i64 {
        match self.engine() {
            StoreEngine::Sqlite(_) => crate::sqlite::schema_known(),
            StoreEngine::Postgres(_) => crate::postgres::schema_known(),
        }
    }

    /// Returns the name and version of the database.
    pub fn engine_version(&self) -> BoxFuture<'_, Result<String, StoreError>> {
        Box::pin(async move {
            match self.engine() {
                StoreEngine::Sqlite(_) => Ok(format!("SQLite {}", crate::sqlite::engine_version())),
                StoreEngine::Postgres(_) => {
                    self.read(|tx| {
                        Box::pin(async move {
                            let rows = tx.last(Statement::new("SELECT version()", [])).await?;
                            rows.first().map_or(Ok(String::new()), |row| row.text(0).map(str::to_owned))
                        })
                    })
                    .await
                }
            }
        })
    }

    /// Checks the whole store, and returns the problems found, at most about a hundred.
    pub fn check(&self) -> BoxFuture<'_, Result<Vec<String>, StoreError>> {
        let store = self.clone();
        Box::pin(async move {
            match self.engine() {
                StoreEngine::Postgres(_) => self.read(|tx| Box::pin(check(tx))).await,
                StoreEngine::Sqlite(_) => {
                    on_own_thread(move || {
                        store.on_sqlite(|sqlite| {
                            let mut problems = sqlite.integrity()?;
                            problems.extend(sqlite.read(|tx| Box::pin(check(tx)))?);
                            Ok(problems)
                        })
                    })
                    .await
                }
            }
        })
    }

    /// Copies a consistent state of the store into a new file.
    pub fn backup(&self, to: &Path) -> BoxFuture<'_, Result<(), StoreError>> {
        let (store, to): (Store, PathBuf) = (self.clone(), to.to_owned());
        Box::pin(on_own_thread(move || store.on_sqlite(|sqlite| sqlite.backup(&to))))
    }

    /// Runs an operation on the SQLite engine. On PostgreSQL only `backup` gets here, and it is not
    /// supported.
    fn on_sqlite<T>(
        &self,
        work: impl FnOnce(&crate::sqlite::Sqlite) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        match self.engine() {
            StoreEngine::Sqlite(sqlite) => work(sqlite),
            StoreEngine::Postgres(_) => Err(StoreError::Unsupported {
                attempt: "back up to a file",
                reason: "use pg_dump, which copies a PostgreSQL database while it is in use",
            }),
        }
    }
}

/// Runs a slow operation on a blocking thread, so that it does not block the async runtime.
async fn on_own_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|stopped| Err(StoreError::database("inspect the store", stopped)))
}

async fn counts(tx: &mut Tx<'_>) -> Result<Counts, StoreError> {
    let number = |sql| Statement::new(sql, []);
    let answers = tx
        .finish(vec![
            number("SELECT state, count(*) FROM plans GROUP BY state"),
            number("SELECT count(*) FROM locks WHERE owner IS NOT NULL"),
            number("SELECT count(*) FROM locks WHERE owner IS NOT NULL AND expires_at <= drydock_now()"),
            number("SELECT count(*) FROM outbox"),
            number("SELECT count(*) FROM decisions WHERE status = 'open'"),
            number("SELECT coalesce(max(drydock_now() - ready_at), 0) FROM outbox WHERE ready_at <= drydock_now()"),
        ])
        .await?;
    let single =
        |place: usize| answers.get(place).and_then(|rows| rows.first()).map_or(Ok(0), |row| row.int(0));
    let states = answers.first().map(Vec::as_slice).unwrap_or_default();
    let plans = states.iter().map(|row| Ok((row.text(0)?.to_owned(), row.int(1)?)));
    Ok(Counts {
        plans: plans.collect::<Result<_, StoreError>>()?,
        locks: single(1)?,
        stale_locks: single(2)?,
        effects: single(3)?,
        overdue_us: single(5)?,
        open_decisions: single(4)?,
    })
}

/// Queries for impossible states, each with the problem text. The returned rows name the affected objects.
const IMPOSSIBLE: &[(&str, &str)] = &[
    (
        "events of the plan go back in revision",
        "SELECT DISTINCT plan FROM (SELECT plan, revision, lag(revision) OVER (PARTITION BY plan ORDER BY seq) AS before
         FROM events WHERE plan IS NOT NULL AND revision IS NOT NULL AND seq IS NOT NULL) AS steps
         WHERE revision < before LIMIT 20",
    ),
    (
        "an event of the plan has a revision that the plan never had",
        "SELECT DISTINCT e.plan FROM events e JOIN plans p ON p.id = e.plan WHERE e.revision > p.revision LIMIT 20",
    ),
    (
        "the numbers of the feed have a gap before this one",
        "SELECT CAST(seq AS TEXT) FROM (SELECT seq, lag(seq, 1, 0) OVER (ORDER BY seq) AS before FROM events
         WHERE seq IS NOT NULL) AS steps WHERE seq <> before + 1 LIMIT 20",
    ),
    (
        "an open changeset belongs to a plan that is not processing",
        "SELECT c.id FROM changesets c JOIN plans p ON p.id = c.plan
         WHERE c.state = 'open' AND p.state <> 'processing' LIMIT 20",
    ),
    (
        "the changeset's entry count differs from its number of entries",
        "SELECT c.id FROM changesets c LEFT JOIN (SELECT changeset, count(*) AS found FROM entries GROUP BY changeset)
         AS e ON e.changeset = c.id WHERE c.entries <> coalesce(e.found, 0) LIMIT 20",
    ),
];

async fn check(tx: &mut Tx<'_>) -> Result<Vec<String>, StoreError> {
    let mut problems = Vec::new();
    let mut after = 0;
    while problems.len() < PROBLEMS_MAX {
        let rows = tx.query(check_page(after)).await?;
        for row in &rows {
            after = row.int(0)?;
            problems.extend(plan_problem(row)?);
        }
        if rows.is_empty() {
            break;
        }
    }
    for (sentence, sql) in IMPOSSIBLE {
        for row in tx.query(Statement::new(sql, [])).await? {
            problems.push(format!("{}: {sentence}", row.text(0)?));
        }
    }
    Ok(problems)
}

/// Returns the statement for one page of plans, each with its open decision and its effect.
fn check_page(after: i64) -> Statement {
    let columns: Vec<_> = PLAN_COLUMNS.split(", ").map(|column| format!("p.{column}")).collect();
    let sql = format!(
        "SELECT p.n, {}, d.id, o.effect FROM plans p
         LEFT JOIN decisions d ON d.plan = p.id AND d.status = 'open' LEFT JOIN outbox o ON o.plan = p.id
         WHERE p.n > $1 ORDER BY p.n LIMIT $2",
        columns.join(", ")
    );
    let params: Vec<Value> = vec![after.into(), CHECK_PAGE.into()];
    Statement::composed(sql, params)
}

/// Returns the problem of one plan, if there is one: in its row, its decision, or its effect.
fn plan_problem(row: &crate::value::Row) -> Result<Option<String>, StoreError> {
    let plan = match plan_from(row, 1) {
        Ok(plan) => plan,
        Err(error) => return Ok(Some(error.to_string())),
    };
    let (asked, open) = (plan.pending_decision().map(|id| id.as_str()), row.text_or_null(8)?);
    if asked != open {
        return Ok(Some(format!("{}: it waits for {asked:?}, but the open decision is {open:?}", plan.id)));
    }
    let due = drydock_domain::next_effect(&plan);
    let stored = row.text_or_null(9)?.map(|text| crate::plan::row::parse("outbox", plan.id.as_str(), text));
    match stored.transpose() {
        Ok(stored) if stored == due => Ok(None),
        Ok(stored) => Ok(Some(format!("{}: {due:?} is due, but the outbox has {stored:?}", plan.id))),
        Err(error) => Ok(Some(error.to_string())),
    }
}
