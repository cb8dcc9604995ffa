//! Routes for the feed and for changesets.

use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use drydock_api as api;
use drydock_domain::{ChangesetId, IdPrefix};
use drydock_engine::{EngineError, FeedFilter, PatternError};
use drydock_store::PrefixMatch;

use super::extract::{ApiError, ApiResult, JsonResponse, Path, Query, invalid, limit};
use super::router::AppState;
use super::{stream, view};

const LIMIT_DEFAULT: u32 = 500;
const LIMIT_MAX: u32 = 5_000;
/// The maximum time that one request may wait for events.
const WAIT_MAX_MS: u64 = 30_000;

pub(super) async fn list(
    State(shared): State<AppState>,
    headers: HeaderMap,
    Query(query): Query<api::EventQuery>,
) -> Result<Response, ApiError> {
    let interest = interest(&shared, query.plan.as_deref(), query.kind.as_deref()).await?;
    // A position before the first event means the beginning of the feed.
    let after = query.after.unwrap_or(0).max(0);
    if stream::is_wanted(&headers) {
        if query.limit.is_some() || query.wait_ms.is_some() || query.newest.is_some() {
            let text = "a stream does not accept limit, wait_ms or newest";
            return Err(invalid(text, "remove them, or request application/json"));
        }
        let after = stream::last_seen(&headers)?.unwrap_or(after).max(0);
        return stream::answer(&shared, after, interest).await;
    }
    if let Some(newest) = query.newest {
        return newest_of(&shared, &query, &interest, newest).await.map(IntoResponse::into_response);
    }
    let limit = limit(query.limit, LIMIT_DEFAULT, LIMIT_MAX)?;
    let wait = Duration::from_millis(query.wait_ms.unwrap_or(0).min(WAIT_MAX_MS));
    let page = shared.engine.events_page(after, &interest, i64::from(limit), wait).await?;
    let events = page.events.into_iter().map(view::event).collect();
    Ok(JsonResponse(api::Events { events, next: page.next, ends_at: page.ends_at }).into_response())
}

/// Returns the newest events of a plan, oldest first.
async fn newest_of(
    shared: &AppState,
    query: &api::EventQuery,
    interest: &FeedFilter,
    newest: u32,
) -> ApiResult<api::Events> {
    let alone = query.limit.is_none() && query.wait_ms.is_none() && query.after.is_none();
    let (Some(plan), None, true) = (&interest.plan, &interest.kinds, alone) else {
        let text = "`newest` can only be combined with `plan`";
        return Err(invalid(text, "set `plan`, and remove `after`, `kind`, `limit` and `wait_ms`"));
    };
    let count = limit(Some(newest), LIMIT_DEFAULT, LIMIT_MAX)?;
    let mut events = shared.engine.store().event_recent(plan, i64::from(count)).await?;
    events.reverse();
    let events = events.into_iter().map(view::event).collect();
    Ok(JsonResponse(api::Events { events, next: None, ends_at: None }))
}

/// Parses the filter for events.
async fn interest(shared: &AppState, plan: Option<&str>, kind: Option<&str>) -> Result<FeedFilter, ApiError> {
    let plan = match plan {
        Some(given) => Some(shared.engine.plan(given).await?.id),
        None => None,
    };
    let kinds = kind.map(str::parse).transpose();
    let kinds =
        kinds.map_err(|error: PatternError| invalid(error.to_string(), "fix `kind`, or remove it"))?;
    Ok(FeedFilter { plan, kinds })
}

pub(super) async fn last(
    State(shared): State<AppState>,
    Query(query): Query<api::LastEventQuery>,
) -> ApiResult<api::LastEvent> {
    let store = shared.engine.store();
    let last = match query.plan {
        Some(given) => {
            let plan = shared.engine.plan(&given).await?;
            store.event_recent(&plan.id, 1).await?.first().map_or(0, |event| event.seq)
        }
        None => store.event_newest().await?,
    };
    Ok(JsonResponse(api::LastEvent { last }))
}

pub(super) async fn changesets(
    State(shared): State<AppState>,
    Query(query): Query<api::ChangesetQuery>,
) -> ApiResult<api::Changesets> {
    let Some(given) = query.plan else { return Err(invalid("no plan given", "add ?plan=ID")) };
    let plan = shared.engine.plan(&given).await?;
    let changesets = shared.engine.store().changeset_list(&plan.id).await?;
    let changesets = changesets.into_iter().map(view::changeset).collect();
    Ok(JsonResponse(api::Changesets { changesets, next: None }))
}

pub(super) async fn changeset(
    State(shared): State<AppState>,
    Path(id): Path,
) -> ApiResult<api::OneChangeset> {
    let absent = || ApiError::from(EngineError::absent("changeset", &id));
    let prefix = IdPrefix::parse(&id, ChangesetId::PREFIX, "changeset").map_err(|_| absent())?;
    match shared.engine.store().changeset_find(&prefix).await? {
        PrefixMatch::One(changeset) => {
            Ok(JsonResponse(api::OneChangeset { changeset: view::changeset(changeset) }))
        }
        PrefixMatch::None => Err(absent()),
        PrefixMatch::Many(candidates) => {
            Err(EngineError::Ambiguous { kind: "changeset", given: id, candidates }.into())
        }
    }
}
