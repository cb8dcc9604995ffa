//! Routes to create, list, show and steer plans.

use axum::extract::{Extension, State};
use drydock_api as api;
use drydock_domain::{self as domain, Act, Authority, Name, NextPhase, Plan, PlanId, Refusal};
use drydock_engine::{Caller, Engine, EngineError, InvariantInput, PlanRequest, PlanSource, shield};
use drydock_store::{Parent, PlanFilter};

use super::extract::{
    ApiError, ApiResult, As, JsonBody, JsonResponse, Path, Query, RawJson, RequestCaller, invalid, limit,
};
use super::keyed::Seed;
use super::problem::problem_of;
use super::router::AppState;
use super::view;

/// The default and the maximum number of plans on a page.
const LIMIT_DEFAULT: u32 = 50;
const LIMIT_MAX: u32 = 1_000;

type PlanResult = ApiResult<api::OnePlan>;

/// Returns a plan with the actions that the caller can take.
pub(super) async fn offered(
    engine: &Engine,
    plan: Plan,
    authority: Authority,
) -> Result<api::Plan, ApiError> {
    let offered = engine.offered(&plan, authority).await?;
    Ok(view::offered(plan, &offered))
}

pub(super) async fn make(
    State(shared): State<AppState>,
    RequestCaller(caller): RequestCaller,
    seed: Option<Extension<Seed>>,
    JsonBody(new): JsonBody<api::NewPlan>,
) -> PlanResult {
    let asked = match (new.action, new.task) {
        (Some(name), None) => PlanSource::Action { name, arguments: new.arguments },
        (None, Some(task)) if new.arguments.is_empty() => PlanSource::Task(task),
        (None, Some(_)) => {
            return Err(invalid("`arguments` need an action", "remove `arguments`, or set `action`"));
        }
        (Some(_), Some(_)) | (None, None) => {
            return Err(invalid("exactly one of `action` and `task` is required", "set one of them"));
        }
    };
    let invariants = new.invariants.into_iter().map(rule).collect();
    let id = seed.map(|Extension(Seed(seed))| PlanId::from_random(seed));
    let api::NewPlan { project, target, profile, agent, budget, .. } = new;
    let request = PlanRequest { asked, project, target, profile, agent, invariants, budget, id };
    let (engine, authority) = (shared.engine.clone(), caller.authority);
    let plan = shield(async move { engine.create_plan(request, &caller.by).await }).await?;
    Ok(JsonResponse(api::OnePlan { plan: offered(&shared.engine, plan, authority).await? }))
}

fn rule(rule: api::PlanInvariant) -> InvariantInput {
    InvariantInput {
        name: rule.name,
        cel: rule.cel,
        command: rule.command,
        text: rule.text,
        at: rule.at.iter().map(view::phase_asked).collect(),
    }
}

pub(super) async fn list(
    State(shared): State<AppState>,
    Query(query): Query<api::PlanQuery>,
) -> ApiResult<api::Plans> {
    let name = |text: Option<String>| text.map(|text| text.parse::<Name>()).transpose();
    let filter = PlanFilter {
        phase: query.phase.as_ref().map(view::phase_asked),
        state: query.state.as_ref().map(view::state_asked),
        project: name(query.project)
            .map_err(|error| invalid(error.to_string(), "`drydock project list` shows them"))?,
        action: name(query.action)
            .map_err(|error| invalid(error.to_string(), "`drydock action list` shows them"))?,
        parent: query.parent.map(parent).transpose()?,
        text: query.q,
        limit: i64::from(limit(query.limit, LIMIT_DEFAULT, LIMIT_MAX)?),
        after: cursor(query.after)?,
    };
    let page = shared.engine.store().plan_list(&filter).await?;
    let plans = listed(&shared.engine, page.items).await?;
    Ok(JsonResponse(api::Plans { plans, next: page.next.map(|next| next.to_string()) }))
}

/// Returns plans with the invariants that block each. The available actions are only in the answer about a single
/// plan.
async fn listed(engine: &Engine, plans: Vec<Plan>) -> Result<Vec<api::Plan>, ApiError> {
    let may_be_blocked =
        |plan: &&Plan| matches!(plan.stage.state(), domain::State::Queued | domain::State::Complete);
    let ids: Vec<_> = plans.iter().filter(may_be_blocked).map(|plan| plan.id.clone()).collect();
    let enforced = engine.store().enforcement_blocking(&ids).await?;
    let view = |plan: Plan| {
        let blocking = enforced.get(plan.id.as_str()).and_then(|enforced| enforced.blocking(&plan));
        let blocked = blocking.map(view::blocked);
        api::Plan { blocked, ..view::plan(plan) }
    };
    Ok(plans.into_iter().map(view).collect())
}

/// Parses the filter by parent plan.
fn parent(text: String) -> Result<Parent, ApiError> {
    if text == "none" {
        return Ok(Parent::Nobody);
    }
    let refuse =
        |error: drydock_domain::IdError| invalid(error.to_string(), "use the full id of a plan, or `none`");
    text.parse().map(Parent::Plan).map_err(refuse)
}

/// Parses the cursor of an earlier page.
pub(super) fn cursor(text: Option<String>) -> Result<Option<i64>, ApiError> {
    let refuse =
        |text: &str| invalid(format!("{text:?} is not a cursor"), "use the `next` of an earlier page");
    text.map(|text| text.parse().map_err(|_| refuse(&text))).transpose()
}

pub(super) async fn show(
    State(shared): State<AppState>,
    Path(id): Path,
    As(authority): As,
) -> Result<RawJson, ApiError> {
    let rows = shared.engine.plan_rows(&id).await?;
    Ok(RawJson(shared.shown.answer(rows, authority)?))
}

pub(super) async fn diff(State(shared): State<AppState>, Path(id): Path) -> ApiResult<api::OneDiff> {
    let plan = shared.engine.plan(&id).await?;
    let diff = shared.engine.plan_diff(&plan).await?;
    Ok(JsonResponse(api::OneDiff { diff: view::diff(diff) }))
}

pub(super) async fn tree(State(shared): State<AppState>, Path(id): Path) -> ApiResult<api::OneTree> {
    let plan = shared.engine.plan(&id).await?;
    Ok(JsonResponse(api::OneTree { tree: view::tree(shared.engine.tree(plan).await?) }))
}

pub(super) async fn why(State(shared): State<AppState>, Path(id): Path) -> ApiResult<api::OneWhy> {
    let plan = shared.engine.plan(&id).await?;
    let why = shared.engine.why(&plan).await?;
    let can_act = why.can_act.into_iter().map(|way| api::CanAct {
        who: way.who.to_owned(),
        command: way.command,
        does: way.does,
    });
    let why = api::Why {
        summary: why.summary,
        holds: why.holds,
        can_act: can_act.collect(),
        lock: why.lock.map(view::lock),
        decision: why.decision.map(view::decision),
        error: plan.stage.failure().map(view::failure),
    };
    Ok(JsonResponse(api::OneWhy { why }))
}

pub(super) async fn checkpoints(
    State(shared): State<AppState>,
    Path(id): Path,
) -> ApiResult<api::Checkpoints> {
    let plan = shared.engine.plan(&id).await?;
    let checkpoint = |one: drydock_engine::PlanCheckpoint| api::Checkpoint {
        reference: one.reference,
        commit: one.commit,
        plan: plan.id.to_string(),
        run: one.run,
        label: Some(one.label),
        created_at: view::time(one.created_at),
    };
    let checkpoints = shared.engine.checkpoints(&plan).await?.into_iter().map(checkpoint).collect();
    Ok(JsonResponse(api::Checkpoints { checkpoints, next: None }))
}

/// Finds the plan and runs the command to its end, even if the client disconnects.
async fn steer<F, R>(shared: AppState, id: String, caller: Caller, act: F) -> PlanResult
where
    F: FnOnce(Engine, PlanId, Caller) -> R + Send + 'static,
    R: Future<Output = Result<Plan, EngineError>> + Send + 'static,
{
    let plan = shared.engine.plan(&id).await?;
    let authority = caller.authority;
    let done = shield(act(shared.engine.clone(), plan.id.clone(), caller)).await;
    let plan = match done {
        Ok(plan) => plan,
        Err(error) => return Err(about(&shared.engine, &plan.id, error, authority).await),
    };
    Ok(JsonResponse(api::OnePlan { plan: offered(&shared.engine, plan, authority).await? }))
}

/// Returns a refusal with hints that name the plan. If invariants block the plan, it also lists the actions that
/// help.
pub(super) async fn about(
    engine: &Engine,
    id: &PlanId,
    error: EngineError,
    authority: Authority,
) -> ApiError {
    let problem = problem_of(&error, Some(id.as_str()));
    let EngineError::Refused(Refusal::Blocked(enforcement)) = &error else {
        return ApiError(Box::new(problem));
    };
    let Ok(Some(plan)) = engine.store().plan_fetch(id).await else { return ApiError(Box::new(problem)) };
    let offers = engine.offered(&plan, authority).await.map(|offered| offered.offers).unwrap_or_default();
    let asks = offers.iter().find(|offer| offer.act == Act::Revert).and_then(|offer| offer.line(id));
    let rules = format!("`drydock invariant list --effective {id}` shows the rules");
    let hint = match asks {
        Some(line) => format!("{}: `{line}`; {rules}", enforcement.advice()),
        None => format!("{}; {rules}", enforcement.advice()),
    };
    ApiError(Box::new(problem.hint(hint)))
}

pub(super) async fn strategize(
    State(shared): State<AppState>,
    Path(id): Path,
    RequestCaller(caller): RequestCaller,
) -> PlanResult {
    steer(shared, id, caller, |engine, plan, by| async move { engine.strategize(&plan, &by).await }).await
}

pub(super) async fn execute(
    State(shared): State<AppState>,
    Path(id): Path,
    RequestCaller(caller): RequestCaller,
) -> PlanResult {
    steer(shared, id, caller, |engine, plan, by| async move {
        engine.advance(&plan, NextPhase::Execute, &by).await
    })
    .await
}

pub(super) async fn apply(
    State(shared): State<AppState>,
    Path(id): Path,
    RequestCaller(caller): RequestCaller,
) -> PlanResult {
    steer(
        shared,
        id,
        caller,
        |engine, plan, by| async move { engine.advance(&plan, NextPhase::Apply, &by).await },
    )
    .await
}

pub(super) async fn retry(
    State(shared): State<AppState>,
    Path(id): Path,
    RequestCaller(caller): RequestCaller,
    JsonBody(api::RetryPlan { from_base }): JsonBody<api::RetryPlan>,
) -> PlanResult {
    let retry = move |engine: Engine, plan: PlanId, by: Caller| async move {
        if from_base { engine.start_over(&plan, &by).await } else { engine.retry(&plan, &by).await }
    };
    steer(shared, id, caller, retry).await
}

pub(super) async fn accept(
    State(shared): State<AppState>,
    Path(id): Path,
    RequestCaller(caller): RequestCaller,
) -> PlanResult {
    steer(shared, id, caller, |engine, plan, by| async move { engine.accept(&plan, &by).await }).await
}

pub(super) async fn take_over(
    State(shared): State<AppState>,
    Path(id): Path,
    RequestCaller(caller): RequestCaller,
) -> PlanResult {
    steer(shared, id, caller, |engine, plan, by| async move { engine.take_over(&plan, &by).await }).await
}

pub(super) async fn cancel(
    State(shared): State<AppState>,
    Path(id): Path,
    RequestCaller(caller): RequestCaller,
    JsonBody(api::Reason { reason }): JsonBody<api::Reason>,
) -> PlanResult {
    let reason = reason.unwrap_or_else(|| "no reason was given".to_owned());
    steer(shared, id, caller, |engine, plan, by| async move { engine.cancel(&plan, reason, &by).await }).await
}

pub(super) async fn revert(
    State(shared): State<AppState>,
    Path(id): Path,
    RequestCaller(caller): RequestCaller,
    JsonBody(api::Reason { reason }): JsonBody<api::Reason>,
) -> PlanResult {
    let reason = reason.unwrap_or_else(|| "no reason was given".to_owned());
    steer(shared, id, caller, |engine, plan, by| async move { engine.revert(&plan, reason, &by).await }).await
}

pub(super) async fn prompt(
    State(shared): State<AppState>,
    Path(id): Path,
    RequestCaller(caller): RequestCaller,
    JsonBody(api::Prompt { text }): JsonBody<api::Prompt>,
) -> PlanResult {
    steer(shared, id, caller, |engine, plan, by| async move { engine.prompt(&plan, text, &by).await }).await
}

pub(super) async fn roll_back(
    State(shared): State<AppState>,
    Path(id): Path,
    RequestCaller(caller): RequestCaller,
    JsonBody(api::RollBack { checkpoint }): JsonBody<api::RollBack>,
) -> PlanResult {
    steer(
        shared,
        id,
        caller,
        |engine, plan, by| async move { engine.roll_back(&plan, &checkpoint, &by).await },
    )
    .await
}
