//! Routes for agents, locks, doctor and gc.

use axum::extract::State;
use drydock_api as api;
use drydock_engine::{CheckGrade, GcMode, HealthCheck, shield};

use super::extract::{Answer, Body, By, Path, Sent, invalid};
use super::router::Shared;
use super::view;

pub(super) async fn agents(State(shared): State<Shared>) -> Answer<api::Agents> {
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
    Ok(Sent(api::Agents { agents: shared.engine.agents().into_iter().map(entry).collect(), next: None }))
}

pub(super) async fn agent_check(
    State(shared): State<Shared>,
    Path(name): Path,
) -> Answer<api::OneAgentCheck> {
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
    Ok(Sent(api::OneAgentCheck { check }))
}

pub(super) async fn locks(State(shared): State<Shared>) -> Answer<api::Locks> {
    let locks = shared.engine.locks().await?.into_iter().map(view::lock).collect();
    Ok(Sent(api::Locks { locks, next: None }))
}

pub(super) async fn lock_break(
    State(shared): State<Shared>,
    Path(id): Path,
    By(caller): By,
    Body(api::BreakLock { reason }): Body<api::BreakLock>,
) -> Answer<api::OneLock> {
    if reason.trim().is_empty() {
        return Err(invalid("a reason is required to break a lock", "set `reason`"));
    }
    let lock = shared.engine.lock_break(&id, &reason, &caller.by).await?;
    Ok(Sent(api::OneLock { lock: view::lock(lock) }))
}

pub(super) async fn doctor(State(shared): State<Shared>) -> Answer<api::OneDoctor> {
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
    Ok(Sent(api::OneDoctor { doctor }))
}

fn grade(grade: CheckGrade) -> api::CheckStatus {
    match grade {
        CheckGrade::Good => api::CheckStatus::Ok,
        CheckGrade::Doubtful => api::CheckStatus::Warn,
        CheckGrade::Bad => api::CheckStatus::Error,
    }
}

pub(super) async fn collect(
    State(shared): State<Shared>,
    Body(api::GcRequest { dry_run }): Body<api::GcRequest>,
) -> Answer<api::OneGc> {
    let sweep = if dry_run { GcMode::Tell } else { GcMode::Remove };
    let engine = shared.engine;
    let found = shield(async move { engine.collect(sweep).await }).await?;
    let removed = found.removed.into_iter().map(|one| api::Removed { what: one.what, proof: one.proof });
    let kept = found.kept.into_iter().map(|one| api::Kept { what: one.what, reason: one.reason });
    Ok(Sent(api::OneGc { gc: api::Gc { removed: removed.collect(), kept: kept.collect(), dry_run } }))
}
