//! Routes to list, show and answer decisions.

use axum::extract::State;
use drydock_api::{self as api, Problem};
use drydock_domain::Refusal;
use drydock_engine::{EngineError, shield};
use drydock_store::{DecisionFilter, DecisionOrder};
use serde_json::json;

use super::extract::{
    ApiError, ApiResult, JsonBody, JsonResponse, Path, Query, RequestCaller, invalid, limit,
};
use super::plans::{about, cursor, offered};
use super::problem::problem;
use super::router::AppState;
use super::view;

const LIMIT_DEFAULT: u32 = 50;
const LIMIT_MAX: u32 = 1_000;
/// The maximum number of ids in one request.
const IDS_MAX: usize = 1_000;

pub(super) async fn list(
    State(shared): State<AppState>,
    Query(query): Query<api::DecisionQuery>,
) -> ApiResult<api::Decisions> {
    let plan = match query.plan {
        Some(given) => Some(shared.engine.plan(&given).await?.id),
        None => None,
    };
    let ids: Option<Vec<String>> =
        query.ids.map(|ids| ids.split(',').map(|id| id.trim().to_owned()).collect());
    if ids.as_ref().is_some_and(|ids| ids.len() > IDS_MAX) {
        return Err(invalid(format!("more than {IDS_MAX} ids requested"), "request fewer at a time"));
    }
    let order = match query.order {
        Some(api::DecisionOrder::Need) => DecisionOrder::Need,
        Some(api::DecisionOrder::Newest) | None => DecisionOrder::Newest,
    };
    let open_only = query.open.unwrap_or(false) || order == DecisionOrder::Need;
    let filter = DecisionFilter {
        open_only,
        plan,
        ids,
        order,
        limit: i64::from(limit(query.limit, LIMIT_DEFAULT, LIMIT_MAX)?),
        after: cursor(query.after)?,
    };
    let store = shared.engine.store();
    let page = store.decision_list(&filter).await?;
    let total = match open_only {
        true => Some(store.decision_count(&filter).await?),
        false => None,
    };
    let decisions = page.items.into_iter().map(view::decision).collect();
    Ok(JsonResponse(api::Decisions { decisions, next: page.next.map(|next| next.to_string()), total }))
}

pub(super) async fn show(State(shared): State<AppState>, Path(id): Path) -> ApiResult<api::OneDecision> {
    let decision = shared.engine.decision(&id).await?;
    Ok(JsonResponse(api::OneDecision { decision: view::decision(decision) }))
}

pub(super) async fn resolve(
    State(shared): State<AppState>,
    Path(id): Path,
    RequestCaller(caller): RequestCaller,
    JsonBody(answer): JsonBody<api::Resolve>,
) -> ApiResult<api::Resolved> {
    let decision = shared.engine.decision(&id).await?;
    let (engine, authority, asked) = (shared.engine.clone(), caller.authority, decision.plan.clone());
    let resolved =
        shield(async move { engine.resolve(&decision, &answer.option, answer.note, &caller).await });
    let (decision, plan) = match resolved.await {
        Err(error @ EngineError::Refused(Refusal::DecisionClosed(_))) => {
            let stored = shared.engine.decision(&id).await?;
            return Err(ApiError(Box::new(answered(problem(&error), view::decision(stored)))));
        }
        Err(error) => return Err(about(&shared.engine, &asked, error, authority).await),
        Ok(resolved) => resolved,
    };
    let plan = offered(&shared.engine, plan, authority).await?;
    Ok(JsonResponse(api::Resolved { decision: view::decision(decision), plan }))
}

/// Adds the stored answer to the refusal of a second answer.
fn answered(mut problem: Problem, decision: api::Decision) -> Problem {
    let Some(first) = decision.resolution else { return problem };
    let note = first
        .note
        .as_ref()
        .map_or_else(|| " without a note".to_owned(), |note| format!(" with the note {note:?}"));
    let api::Resolution { option, by, .. } = &first;
    problem.detail = format!("{}: {by} answered {option:?}{note}", problem.detail);
    problem
        .with("resolution", json!(first))
        .hint(format!("to add guidance for the agents: `drydock plan prompt {} TEXT`", decision.plan))
}
