//! Plans: making, listing, showing and steering them.

use axum::extract::{Extension, State};
use drydock_api as api;
use drydock_domain::{Name, Next, Plan, PlanId};
use drydock_engine::{Asked, Caller, Engine, EngineError, NewInvariant, Request, shield};
use drydock_store::{Parent, PlanFilter};

use super::extract::{Answer, Body, By, Path, Query, Refused, Sent, Written, invalid, limit};
use super::keyed::Seed;
use super::router::Shared;
use super::view;

/// How many plans a page has when nobody says, and at the most.
const LIMIT_DEFAULT: u32 = 50;
const LIMIT_MAX: u32 = 1_000;

type One = Answer<api::OnePlan>;

fn one(plan: Plan) -> One {
    Ok(Sent(api::OnePlan { plan: view::plan(plan) }))
}

pub(super) async fn make(
    State(shared): State<Shared>,
    By(caller): By,
    seed: Option<Extension<Seed>>,
    Body(new): Body<api::NewPlan>,
) -> One {
    let asked = match (new.action, new.task) {
        (Some(name), None) => Asked::Action { name, arguments: new.arguments },
        (None, Some(task)) if new.arguments.is_empty() => Asked::Task(task),
        (None, Some(_)) => {
            return Err(invalid(
                "a bare task takes no arguments",
                "leave out `arguments`, or name an action",
            ));
        }
        (Some(_), Some(_)) | (None, None) => {
            return Err(invalid("neither or both of action and task are given", "give one of them"));
        }
    };
    let invariants = new.invariants.into_iter().map(rule).collect();
    let id = seed.map(|Extension(Seed(seed))| PlanId::from_random(seed));
    let api::NewPlan { project, target, profile, agent, budget, .. } = new;
    let request = Request { asked, project, target, profile, agent, invariants, budget, id };
    one(shield(async move { shared.engine.use_action(request, &caller.by).await }).await?)
}

fn rule(rule: api::PlanInvariant) -> NewInvariant {
    NewInvariant {
        name: rule.name,
        cel: rule.cel,
        command: rule.command,
        text: rule.text,
        at: rule.at.iter().map(view::phase_asked).collect(),
    }
}

pub(super) async fn list(
    State(shared): State<Shared>,
    Query(query): Query<api::PlanQuery>,
) -> Answer<api::Plans> {
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
    let plans = page.items.into_iter().map(view::plan).collect();
    Ok(Sent(api::Plans { plans, next: page.next.map(|next| next.to_string()) }))
}

/// Reads whose subplans are meant.
fn parent(text: String) -> Result<Parent, Refused> {
    if text == "none" {
        return Ok(Parent::Nobody);
    }
    let refuse =
        |error: drydock_domain::IdError| invalid(error.to_string(), "use a plan's whole id, or `none`");
    text.parse().map(Parent::Plan).map_err(refuse)
}

/// Reads a cursor that an earlier page gave.
pub(super) fn cursor(text: Option<String>) -> Result<Option<i64>, Refused> {
    let refuse =
        |text: &str| invalid(format!("{text:?} is not a cursor"), "use the `next` of an earlier page");
    text.map(|text| text.parse().map_err(|_| refuse(&text))).transpose()
}

pub(super) async fn show(State(shared): State<Shared>, Path(id): Path) -> Result<Written, Refused> {
    let row = shared.engine.plan_row(&id).await?;
    Ok(Written(shared.shown.answer(row)?))
}

pub(super) async fn diff(State(shared): State<Shared>, Path(id): Path) -> Answer<api::OneDiff> {
    let plan = shared.engine.plan(&id).await?;
    let diff = shared.engine.plan_diff(&plan).await?;
    Ok(Sent(api::OneDiff { diff: view::diff(diff) }))
}

pub(super) async fn tree(State(shared): State<Shared>, Path(id): Path) -> Answer<api::OneTree> {
    let plan = shared.engine.plan(&id).await?;
    Ok(Sent(api::OneTree { tree: view::tree(shared.engine.tree(plan).await?) }))
}

pub(super) async fn why(State(shared): State<Shared>, Path(id): Path) -> Answer<api::OneWhy> {
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
    Ok(Sent(api::OneWhy { why }))
}

pub(super) async fn checkpoints(State(shared): State<Shared>, Path(id): Path) -> Answer<api::Checkpoints> {
    let plan = shared.engine.plan(&id).await?;
    let checkpoint = |one: drydock_engine::Checkpoint| api::Checkpoint {
        reference: one.reference,
        commit: one.commit,
        plan: plan.id.to_string(),
        run: None,
        label: Some(one.label),
        created_at: view::time(one.created_at),
    };
    let checkpoints = shared.engine.checkpoints(&plan).await?.into_iter().map(checkpoint).collect();
    Ok(Sent(api::Checkpoints { checkpoints, next: None }))
}

/// Finds the plan, then steers it to the end even if the client goes away.
async fn steer<F, R>(shared: Shared, id: String, caller: Caller, act: F) -> One
where
    F: FnOnce(Engine, PlanId, Caller) -> R + Send + 'static,
    R: Future<Output = Result<Plan, EngineError>> + Send + 'static,
{
    let plan = shared.engine.plan(&id).await?;
    one(shield(act(shared.engine, plan.id, caller)).await?)
}

pub(super) async fn strategize(State(shared): State<Shared>, Path(id): Path, By(caller): By) -> One {
    steer(shared, id, caller, |engine, plan, by| async move { engine.strategize(&plan, &by).await }).await
}

pub(super) async fn execute(State(shared): State<Shared>, Path(id): Path, By(caller): By) -> One {
    steer(
        shared,
        id,
        caller,
        |engine, plan, by| async move { engine.advance(&plan, Next::Execute, &by).await },
    )
    .await
}

pub(super) async fn apply(State(shared): State<Shared>, Path(id): Path, By(caller): By) -> One {
    steer(shared, id, caller, |engine, plan, by| async move { engine.advance(&plan, Next::Apply, &by).await })
        .await
}

pub(super) async fn retry(State(shared): State<Shared>, Path(id): Path, By(caller): By) -> One {
    steer(shared, id, caller, |engine, plan, by| async move { engine.retry(&plan, &by).await }).await
}

pub(super) async fn take_over(State(shared): State<Shared>, Path(id): Path, By(caller): By) -> One {
    steer(shared, id, caller, |engine, plan, by| async move { engine.take_over(&plan, &by).await }).await
}

pub(super) async fn cancel(
    State(shared): State<Shared>,
    Path(id): Path,
    By(caller): By,
    Body(api::Reason { reason }): Body<api::Reason>,
) -> One {
    let reason = reason.unwrap_or_else(|| "no reason was given".to_owned());
    steer(shared, id, caller, |engine, plan, by| async move { engine.cancel(&plan, reason, &by).await }).await
}

pub(super) async fn revert(
    State(shared): State<Shared>,
    Path(id): Path,
    By(caller): By,
    Body(api::Reason { reason }): Body<api::Reason>,
) -> One {
    let reason = reason.unwrap_or_else(|| "no reason was given".to_owned());
    steer(shared, id, caller, |engine, plan, by| async move { engine.revert(&plan, reason, &by).await }).await
}

pub(super) async fn prompt(
    State(shared): State<Shared>,
    Path(id): Path,
    By(caller): By,
    Body(api::Prompt { text }): Body<api::Prompt>,
) -> One {
    steer(shared, id, caller, |engine, plan, by| async move { engine.prompt(&plan, text, &by).await }).await
}

pub(super) async fn roll_back(
    State(shared): State<Shared>,
    Path(id): Path,
    By(caller): By,
    Body(api::RollBack { checkpoint }): Body<api::RollBack>,
) -> One {
    steer(
        shared,
        id,
        caller,
        |engine, plan, by| async move { engine.roll_back(&plan, &checkpoint, &by).await },
    )
    .await
}
