//! Routes for agents, locks, doctor and gc.

use axum::extract::State;
use drydock_api as api;
use drydock_engine::{CheckGrade, GcMode, HealthCheck, shield};

use super::extract::{ApiResult, JsonBody, JsonResponse, Path, RequestCaller, invalid};
use super::router::AppState;
use super::view;

pub(super) async fn agents(State(shared): State<AppState>) -> ApiResult<api::Agents> {
    let default = shared.engine.settings().default_agent.clone();
    let entry = |one: drydock_engine::ConfiguredAgent| api::AgentEntry {
        default: default.as_ref() == Some(&one.name),
        name: one.name,
        protocol: one.protocol,
        summary: one.summary,
        timeout_s: one.timeout.as_secs(),
        source: match one.source {
            drydock_engine::AgentSource::Configured => "configured",
            drydock_engine::AgentSource::BuiltIn => "built_in",
        }
        .to_owned(),
        found: one.found,
    };
    Ok(JsonResponse(api::Agents {
        agents: shared.engine.agents().into_iter().map(entry).collect(),
        next: None,
    }))
}

pub(super) async fn agent_check(
    State(shared): State<AppState>,
    Path(name): Path,
) -> ApiResult<api::OneAgentCheck> {
    let engine = shared.engine;
    let agent = name.clone();
    let found = shield(async move { engine.agent_check(&name).await }).await?;
    let check = api::AgentCheck {
        agent,
        status: grade(found.grade),
        text: found.text,
        hint: found.hint,
        duration_ms: u64::try_from(found.took.as_millis()).unwrap_or(u64::MAX),
    };
    Ok(JsonResponse(api::OneAgentCheck { check }))
}

pub(super) async fn locks(State(shared): State<AppState>) -> ApiResult<api::Locks> {
    let locks = shared.engine.locks().await?.into_iter().map(view::lock).collect();
    Ok(JsonResponse(api::Locks { locks, next: None }))
}

pub(super) async fn lock_break(
    State(shared): State<AppState>,
    Path(id): Path,
    RequestCaller(caller): RequestCaller,
    JsonBody(api::BreakLock { reason }): JsonBody<api::BreakLock>,
) -> ApiResult<api::OneLock> {
    if reason.trim().is_empty() {
        return Err(invalid("a reason is required to break a lock", "set `reason`"));
    }
    let lock = shared.engine.lock_break(&id, &reason, &caller.by).await?;
    Ok(JsonResponse(api::OneLock { lock: view::lock(lock) }))
}

pub(super) async fn doctor(State(shared): State<AppState>) -> ApiResult<api::OneDoctor> {
    let (checks, stale) = shared.engine.doctor().await?;
    let check = |one: HealthCheck| api::Check {
        name: one.name.to_owned(),
        status: grade(one.grade),
        text: one.text,
        hint: one.hint,
    };
    let doctor = api::Doctor {
        checks: checks.into_iter().map(check).collect(),
        stale_locks: u64::try_from(stale).unwrap_or(0),
    };
    Ok(JsonResponse(api::OneDoctor { doctor }))
}

fn grade(grade: CheckGrade) -> api::CheckStatus {
    match grade {
        CheckGrade::Good => api::CheckStatus::Ok,
        CheckGrade::Doubtful => api::CheckStatus::Warn,
        CheckGrade::Bad => api::CheckStatus::Error,
    }
}

pub(super) async fn collect(
    State(shared): State<AppState>,
    JsonBody(api::GcRequest { dry_run }): JsonBody<api::GcRequest>,
) -> ApiResult<api::OneGc> {
    let sweep = if dry_run { GcMode::Tell } else { GcMode::Remove };
    let engine = shared.engine;
    let found = shield(async move { engine.gc(sweep).await }).await?;
    let removed = found.removed.into_iter().map(|one| api::Removed { what: one.what, proof: one.proof });
    let kept = found.kept.into_iter().map(|one| api::Kept { what: one.what, reason: one.reason });
    Ok(JsonResponse(api::OneGc { gc: api::Gc { removed: removed.collect(), kept: kept.collect(), dry_run } }))
}
