//! Routes for sync, for adopting a strategy draft, and for backups.

use axum::extract::State;
use drydock_api as api;
use drydock_engine::{GcMode, NamedBackupPolicy, ProjectBackup, shield};
use serde_json::Value;

use super::extract::{ApiResult, JsonBody, JsonResponse, Path, Query, RequestCaller};
use super::plans::{about, offered};
use super::router::AppState;
use super::view;

pub(super) async fn sync(
    State(shared): State<AppState>,
    Path(id): Path,
    RequestCaller(caller): RequestCaller,
) -> ApiResult<api::Synced> {
    let plan = shared.engine.plan(&id).await?.id;
    let (engine, authority) = (shared.engine.clone(), caller.authority);
    let id = plan.clone();
    let synced = match shield(async move { engine.sync(&plan, &caller).await }).await {
        Ok(synced) => synced,
        Err(error) => return Err(about(&shared.engine, &id, error, authority).await),
    };
    let plan = offered(&shared.engine, synced.plan, authority).await?;
    let mut details = match synced.outcome.to_json() {
        Value::Object(details) => details,
        _ => serde_json::Map::new(),
    };
    for stated in ["outcome", "standing", "text"] {
        details.remove(stated);
    }
    Ok(JsonResponse(api::Synced {
        sync: api::Sync {
            outcome: synced.outcome.name().to_owned(),
            standing: synced.outcome.standing().name().to_owned(),
            text: synced.outcome.summary(),
            hint: Some(synced.outcome.hint().to_owned()),
            details,
        },
        plan,
        decision: synced.decision.map(view::decision),
    }))
}

pub(super) async fn adopt(
    State(shared): State<AppState>,
    Path(id): Path,
    RequestCaller(caller): RequestCaller,
) -> ApiResult<api::OnePlan> {
    let plan = shared.engine.plan(&id).await?.id;
    let (engine, authority) = (shared.engine.clone(), caller.authority);
    let id = plan.clone();
    let plan = match shield(async move { engine.adopt(&plan, &caller).await }).await {
        Ok(plan) => plan,
        Err(error) => return Err(about(&shared.engine, &id, error, authority).await),
    };
    Ok(JsonResponse(api::OnePlan { plan: offered(&shared.engine, plan, authority).await? }))
}

pub(super) async fn list(
    State(shared): State<AppState>,
    Query(query): Query<api::BackupQuery>,
) -> ApiResult<api::Backups> {
    let plan = match query.plan {
        Some(given) => Some(shared.engine.plan(&given).await?.id),
        None => None,
    };
    let backups = shared.engine.backups(plan.as_ref()).await?;
    let (found, unseen) = (backups.found.into_iter().map(backup).collect(), backups.unseen);
    Ok(JsonResponse(api::Backups { backups: found, next: None, unseen }))
}

/// The plan and the number at the end of a backup's ref.
type BackupPath = Path<(String, String)>;

pub(super) async fn show(
    State(shared): State<AppState>,
    Path((plan, number)): BackupPath,
) -> ApiResult<api::OneBackup> {
    let found = shared.engine.backup(&format!("{plan}/{number}")).await?;
    Ok(JsonResponse(api::OneBackup { backup: backup(found) }))
}

pub(super) async fn restore(
    State(shared): State<AppState>,
    Path((plan, number)): BackupPath,
    JsonBody(api::RestoreBackup { branch }): JsonBody<api::RestoreBackup>,
) -> ApiResult<api::RestoredBackup> {
    let engine = shared.engine;
    let name = format!("{plan}/{number}");
    let restored = shield(async move { engine.backup_restore(&name, branch.as_deref()).await }).await?;
    Ok(JsonResponse(api::RestoredBackup { backup: backup(restored.backup), branch: restored.branch }))
}

pub(super) async fn delete(
    State(shared): State<AppState>,
    Path((plan, number)): BackupPath,
    Query(api::DeleteBackup { discard }): Query<api::DeleteBackup>,
    RequestCaller(caller): RequestCaller,
) -> ApiResult<api::OneBackup> {
    let engine = shared.engine;
    let name = format!("{plan}/{number}");
    let named = if discard { NamedBackupPolicy::Discard } else { NamedBackupPolicy::IfNeedless };
    let removed = shield(async move { engine.backup_delete(&name, named, &caller).await }).await?;
    Ok(JsonResponse(api::OneBackup { backup: backup(removed) }))
}

pub(super) async fn prune(
    State(shared): State<AppState>,
    JsonBody(asked): JsonBody<api::PruneBackups>,
) -> ApiResult<api::PrunedBackups> {
    let plan = match asked.plan {
        Some(given) => Some(shared.engine.plan(&given).await?.id),
        None => None,
    };
    let sweep = if asked.dry_run { GcMode::Tell } else { GcMode::Remove };
    let engine = shared.engine;
    let (removed, kept) = shield(async move { engine.backup_prune(plan.as_ref(), sweep).await }).await?;
    let all = |these: Vec<ProjectBackup>| these.into_iter().map(backup).collect();
    Ok(JsonResponse(api::PrunedBackups { removed: all(removed), kept: all(kept) }))
}

fn backup(backup: ProjectBackup) -> api::Backup {
    let commit = |one: drydock_domain::CommitLine| api::Commit {
        id: one.id,
        subject: one.subject,
        author: one.author,
    };
    api::Backup {
        reference: backup.name,
        commit: backup.commit,
        project: backup.project,
        plan: backup.plan,
        run: backup.run,
        reason: backup.reason,
        commits: backup.commits.into_iter().map(commit).collect(),
        uncommitted: backup.uncommitted,
        created_at: view::time(backup.created_at),
        needed: backup.needed,
    }
}
