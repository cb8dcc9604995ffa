//! The feed. Events are written in the transaction of their cause, never separately. They are numbered
//! without gaps in commit order. The numbering differs between the databases; see `postgres::sequencer`.

use std::collections::BTreeSet;

use drydock_domain::{Event, Plan, PlanId, RunId, StoredEvent};
use serde_json::Value as Json;

use crate::store::StoreEngine;
use crate::tx::{BoxFuture, Tx};
use crate::value::{Row, Statement, Value};
use crate::{EventBatch, Store, StoreError};

/// Which events to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventFilter {
    /// Only events with a larger number.
    pub after: i64,
    /// Only events of this plan.
    pub plan: Option<PlanId>,
    /// Maximum number of events.
    pub limit: i64,
}

/// The subject of an event.
pub(crate) struct EventSubject {
    plan: Option<String>,
    run: Option<RunId>,
    revision: Option<i64>,
}

impl EventSubject {
    pub(crate) fn nothing() -> Self {
        Self { plan: None, run: None, revision: None }
    }

    pub(crate) fn plan(plan: &Plan) -> Self {
        Self { plan: Some(plan.id.as_str().to_owned()), run: plan.run.clone(), revision: Some(plan.revision) }
    }

    /// Returns the stored plan as the subject, and locks its row until the transaction ends. A lock may
    /// belong to a plan that was never created, so the plan may be missing.
    pub(crate) async fn of_stored(tx: &mut Tx<'_>, id: &str) -> Result<Self, StoreError> {
        match crate::plan::row::hold(tx, id).await? {
            Some(plan) => Ok(Self::plan(&plan)),
            None => Ok(Self { plan: Some(id.to_owned()), run: None, revision: None }),
        }
    }
}

const APPEND: &str = "INSERT INTO events (at, kind, plan, run, revision, details)
    VALUES (drydock_now(), $1, $2, $3, $4, $5)";
/// Skips an event that is already stored under this key.
const APPEND_ONCE: &str = "INSERT INTO events (at, kind, plan, run, revision, details, batch)
    VALUES (drydock_now(), $1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING";

/// Returns the statement that appends an event.
pub(crate) fn append(about: &EventSubject, event: &Event) -> Statement {
    append_with(about, event, [])
}

/// Returns the statements that append the events of a batch, each of them once.
pub(crate) fn append_once(about: &EventSubject, batch: &EventBatch) -> Vec<Statement> {
    let one = |(place, event): (usize, &Event)| {
        let [kind, plan, run, revision, details] = params(about, event, event.details());
        let key = format!("{}.{place}", batch.key).into();
        Statement::new(APPEND_ONCE, [kind, plan, run, revision, details, key])
    };
    batch.events.iter().enumerate().map(one).collect()
}

/// Returns the statement that appends an event with additional details.
pub(crate) fn append_with<const N: usize>(
    about: &EventSubject,
    event: &Event,
    more: [(&'static str, Json); N],
) -> Statement {
    let mut details = event.details();
    if let Json::Object(fields) = &mut details {
        fields.extend(more.map(|(name, value)| (name.to_owned(), value)));
    }
    Statement::new(APPEND, params(about, event, details))
}

fn params(about: &EventSubject, event: &Event, details: Json) -> [Value; 5] {
    [
        event.kind().into(),
        about.plan.clone().into(),
        about.run.as_ref().map(RunId::as_str).into(),
        about.revision.into(),
        details.to_string().into(),
    ]
}

impl Store {
    /// Returns events in order. All events committed before the call are included, and no event appears later
    /// with a smaller number than one already returned.
    pub fn event_list(&self, filter: &EventFilter) -> BoxFuture<'_, Result<Vec<StoredEvent>, StoreError>> {
        let filter = filter.clone();
        Box::pin(async move {
            self.number_events().await?;
            self.read(move |tx| Box::pin(list(tx, filter))).await
        })
    }

    /// Returns the number of the newest event, or 0 if the feed is empty.
    pub fn event_newest(&self) -> BoxFuture<'_, Result<i64, StoreError>> {
        Box::pin(async move {
            self.number_events().await?;
            let look = self.read(|tx| {
                Box::pin(async move {
                    let sql = "SELECT coalesce(max(seq), 0) FROM events";
                    tx.last(Statement::new(sql, [])).await?.first().map_or(Ok(0), |row| row.int(0))
                })
            });
            look.await
        })
    }

    /// Returns the commits that the runs of a plan recorded as their own.
    pub fn plan_commits(&self, plan: &PlanId) -> BoxFuture<'_, Result<BTreeSet<String>, StoreError>> {
        let sql = "SELECT details FROM events WHERE plan = $1 AND kind = $2";
        let statement = Statement::new(sql, [plan.as_str().into(), Event::COMMITTED.into()]);
        let read = |row: &Row| -> Result<String, StoreError> {
            let details: Json = serde_json::from_str(row.text(0)?).unwrap_or_default();
            Ok(details["commit"].as_str().unwrap_or_default().to_owned())
        };
        Box::pin(
            self.read(move |tx| {
                Box::pin(async move { tx.last(statement).await?.iter().map(read).collect() })
            }),
        )
    }

    /// Returns the newest events of a plan, newest first.
    pub fn event_recent(
        &self,
        plan: &PlanId,
        limit: i64,
    ) -> BoxFuture<'_, Result<Vec<StoredEvent>, StoreError>> {
        let statement = recent(plan, limit);
        Box::pin(async move {
            self.number_events().await?;
            let look = self.read(move |tx| {
                Box::pin(async move { tx.last(statement).await?.iter().map(recorded).collect() })
            });
            look.await
        })
    }

    /// Makes sure that all events committed before the call have a number.
    pub(crate) async fn number_events(&self) -> Result<(), StoreError> {
        match self.engine() {
            StoreEngine::Sqlite(_) => Ok(()),
            StoreEngine::Postgres(postgres) => postgres.number_pending().await,
        }
    }
}

/// Returns the statement that reads the newest events of a plan.
pub(crate) fn recent(plan: &PlanId, limit: i64) -> Statement {
    let sql = "SELECT seq, at, kind, plan, run, revision, details FROM events
        WHERE plan = $1 AND seq IS NOT NULL ORDER BY seq DESC LIMIT $2";
    Statement::new(sql, [plan.as_str().into(), limit.into()])
}

async fn list(tx: &mut Tx<'_>, filter: EventFilter) -> Result<Vec<StoredEvent>, StoreError> {
    let of_plan = if filter.plan.is_some() { "AND plan = $3 " } else { "" };
    let sql = format!(
        "SELECT seq, at, kind, plan, run, revision, details FROM events WHERE seq > $1 {of_plan}ORDER BY seq LIMIT $2"
    );
    let mut params: Vec<Value> = vec![filter.after.into(), filter.limit.into()];
    params.extend(filter.plan.iter().map(|plan| plan.as_str().into()));
    tx.last(Statement::composed(sql, params)).await?.iter().map(recorded).collect()
}

fn recorded(row: &Row) -> Result<StoredEvent, StoreError> {
    let seq = row.int(0)?;
    let damaged = |reason: String| StoreError::damaged("events", seq.to_string(), reason);
    let plan = row.text_or_null(3)?.map(str::parse).transpose();
    let run = row.text_or_null(4)?.map(str::parse).transpose();
    Ok(StoredEvent {
        seq,
        at: row.time(1)?,
        kind: row.text(2)?.to_owned(),
        plan: plan.map_err(|error| damaged(format!("{error}")))?,
        run: run.map_err(|error| damaged(format!("{error}")))?,
        revision: row.int_or_null(5)?,
        details: serde_json::from_str(row.text(6)?).map_err(|error| damaged(error.to_string()))?,
    })
}
