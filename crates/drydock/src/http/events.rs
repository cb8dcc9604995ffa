//! The feed and the changesets.

use std::time::Duration;

use axum::extract::State;
use drydock_api as api;
use drydock_domain::{ChangesetId, IdPrefix};
use drydock_engine::EngineError;
use drydock_store::{EventFilter, Found};

use super::extract::{Answer, Path, Query, Refused, Sent, invalid, limit};
use super::router::Shared;
use super::view;

const LIMIT_DEFAULT: u32 = 500;
const LIMIT_MAX: u32 = 5_000;
/// How long a reader may wait for news in one request.
const WAIT_MAX_MS: u64 = 30_000;

pub(super) async fn list(
    State(shared): State<Shared>,
    Query(query): Query<api::EventQuery>,
) -> Answer<api::Events> {
    let plan = match query.plan {
        Some(given) => Some(shared.engine.plan(&given).await?.id),
        None => None,
    };
    let limit = limit(query.limit, LIMIT_DEFAULT, LIMIT_MAX)?;
    // One more than asked for tells whether there is more.
    let filter = EventFilter { after: query.after.unwrap_or(0), plan, limit: i64::from(limit) + 1 };
    let wait = Duration::from_millis(query.wait_ms.unwrap_or(0).min(WAIT_MAX_MS));
    let events = shared.engine.events_after(&filter, wait).await?;
    let asked = usize::try_from(limit).unwrap_or(usize::MAX);
    let is_more = events.len() > asked;
    let events: Vec<_> = events.into_iter().take(asked).map(view::event).collect();
    let next = events.last().filter(|_| is_more).map(|event| event.seq);
    Ok(Sent(api::Events { events, next }))
}

pub(super) async fn last(
    State(shared): State<Shared>,
    Query(query): Query<api::LastEventQuery>,
) -> Answer<api::LastEvent> {
    let plan = shared.engine.plan(&query.plan).await?;
    let newest = shared.engine.store().event_recent(&plan.id, 1).await?;
    Ok(Sent(api::LastEvent { last: newest.first().map_or(0, |event| event.seq) }))
}

pub(super) async fn changesets(
    State(shared): State<Shared>,
    Query(query): Query<api::ChangesetQuery>,
) -> Answer<api::Changesets> {
    let Some(given) = query.plan else { return Err(invalid("no plan is named", "name it as ?plan=ID")) };
    let plan = shared.engine.plan(&given).await?;
    let changesets = shared.engine.store().changeset_list(&plan.id).await?;
    let changesets = changesets.into_iter().map(view::changeset).collect();
    Ok(Sent(api::Changesets { changesets, next: None }))
}

pub(super) async fn changeset(State(shared): State<Shared>, Path(id): Path) -> Answer<api::OneChangeset> {
    let absent = || Refused::from(EngineError::absent("changeset", &id));
    let prefix = IdPrefix::parse(&id, ChangesetId::PREFIX, "changeset").map_err(|_| absent())?;
    match shared.engine.store().changeset_find(&prefix).await? {
        Found::One(changeset) => Ok(Sent(api::OneChangeset { changeset: view::changeset(changeset) })),
        Found::None => Err(absent()),
        Found::Many(candidates) => {
            Err(EngineError::Ambiguous { kind: "changeset", given: id, candidates }.into())
        }
    }
}
