//! Routes for projects, actions and invariants.

use std::path::PathBuf;

use axum::extract::State;
use drydock_api as api;
use drydock_domain::{InvariantScope, Name, OnDivergence, Validation};
use drydock_engine::{InvariantInput, OverridePolicy, ProjectInput};
use serde_json::{Value, json};

use super::extract::{ApiError, ApiResult, JsonBody, JsonResponse, Path, Query, invalid};
use super::router::AppState;
use super::view;

/// The maximum length of a validation name that is derived from its command.
const NAME_MADE_MAX: usize = 40;

pub(super) async fn projects(State(shared): State<AppState>) -> ApiResult<api::Projects> {
    let projects = shared.engine.store().project_list().await?.into_iter().map(view::project).collect();
    Ok(JsonResponse(api::Projects { projects, next: None }))
}

pub(super) async fn project(State(shared): State<AppState>, Path(name): Path) -> ApiResult<api::OneProject> {
    Ok(JsonResponse(api::OneProject { project: view::project(shared.engine.project(&name).await?) }))
}

pub(super) async fn project_add(
    State(shared): State<AppState>,
    JsonBody(new): JsonBody<api::NewProject>,
) -> ApiResult<api::OneProject> {
    let validations = validations(new.validations)?;
    let project = ProjectInput {
        name: new.name,
        repo: PathBuf::from(new.repo),
        target: new.target,
        remote: new.remote,
        on_divergence: new.on_divergence.map(policy),
        validations,
    };
    let project = shared.engine.project_add(project).await?;
    Ok(JsonResponse(api::OneProject { project: view::project(project) }))
}

fn policy(asked: api::OnDivergence) -> OnDivergence {
    match asked {
        api::OnDivergence::Recover => OnDivergence::Recover,
        api::OnDivergence::Pause => OnDivergence::Pause,
    }
}

/// Parses validations. If several share a name derived from their commands, they are numbered. A duplicate name given
/// by a user is refused because a report could not show which of them failed.
fn validations(given: Vec<api::NewValidation>) -> Result<Vec<Validation>, ApiError> {
    let hint = "give each validation a unique name of letters and digits";
    let mut read: Vec<Validation> = Vec::new();
    for one in given {
        let is_free = |name: &Name| read.iter().all(|known| known.name != *name);
        let parse = |name: &str| name.parse::<Name>().map_err(|error| invalid(error.to_string(), hint));
        let name = match &one.name {
            Some(name) => {
                let name = parse(name)?;
                if !is_free(&name) {
                    return Err(invalid(format!("two validations have the name {name}"), hint));
                }
                name
            }
            None => {
                let (made, mut number) = (name_of(&one.command), 1);
                let mut name = parse(&made)?;
                while !is_free(&name) {
                    number += 1;
                    name = parse(&format!("{made}-{number}"))?;
                }
                name
            }
        };
        let required = one.required.unwrap_or(true);
        read.push(Validation { name, command: one.command, required, timeout_s: None });
    }
    Ok(read)
}

/// Derives a name from a command: its words joined, or a default word if none remains.
fn name_of(command: &str) -> String {
    let letters = |character: char| if character.is_ascii_alphanumeric() { character } else { '-' };
    let name: String = command.chars().map(letters).take(NAME_MADE_MAX).collect();
    let name = name.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-");
    if name.is_empty() { "validation".to_owned() } else { name }
}

pub(super) async fn project_remove(State(shared): State<AppState>, Path(name): Path) -> ApiResult<Value> {
    shared.engine.project_remove(&name).await?;
    Ok(JsonResponse(json!({})))
}

pub(super) async fn actions(State(shared): State<AppState>) -> ApiResult<api::Actions> {
    let actions = shared.engine.store().action_list().await?.into_iter().map(view::action).collect();
    Ok(JsonResponse(api::Actions { actions, next: None }))
}

pub(super) async fn action(State(shared): State<AppState>, Path(name): Path) -> ApiResult<api::OneAction> {
    Ok(JsonResponse(api::OneAction { action: view::action(shared.engine.action(&name).await?) }))
}

pub(super) async fn action_create(
    State(shared): State<AppState>,
    JsonBody(new): JsonBody<api::NewAction>,
) -> ApiResult<api::OneAction> {
    let action =
        shared.engine.action_create(&new.toml).await.map_err(|error| in_file(error.into(), new.file))?;
    Ok(JsonResponse(api::OneAction { action: view::action(action) }))
}

/// Adds the name of the file that contains the error.
fn in_file(mut refused: ApiError, file: Option<String>) -> ApiError {
    if let (Some(file), api::Code::Invalid) = (file, &refused.0.code) {
        refused.0.detail = format!("{file}: {}", refused.0.detail);
    }
    refused
}

pub(super) async fn action_remove(State(shared): State<AppState>, Path(name): Path) -> ApiResult<Value> {
    shared.engine.action_remove(&name).await?;
    Ok(JsonResponse(json!({})))
}

pub(super) async fn invariants(
    State(shared): State<AppState>,
    Query(query): Query<api::InvariantQuery>,
) -> ApiResult<api::Invariants> {
    let invariants = match query.effective {
        None => shared.engine.store().invariant_list(None).await?,
        Some(given) => {
            let plan = shared.engine.plan(&given).await?;
            shared.engine.invariants_effective(&plan).await?
        }
    };
    Ok(JsonResponse(api::Invariants {
        invariants: invariants.into_iter().map(view::invariant).collect(),
        next: None,
    }))
}

pub(super) async fn invariant_add(
    State(shared): State<AppState>,
    JsonBody(new): JsonBody<api::NewInvariant>,
) -> ApiResult<api::OneInvariant> {
    let scope = scope(&shared, new.scope).await?;
    let lock = if new.locked { OverridePolicy::Locked } else { OverridePolicy::Open };
    let rule = InvariantInput {
        name: new.name,
        cel: new.cel,
        command: new.command,
        text: new.text,
        at: new.at.iter().map(view::phase_asked).collect(),
    };
    let invariant = shared.engine.invariant_add(rule, scope, lock).await?;
    Ok(JsonResponse(api::OneInvariant { invariant: view::invariant(invariant) }))
}

pub(super) async fn invariant_remove(
    State(shared): State<AppState>,
    Path(name): Path,
    Query(query): Query<api::ScopeQuery>,
) -> ApiResult<Value> {
    let scope = scope(&shared, query.scope).await?;
    shared.engine.invariant_remove(&name, &scope).await?;
    Ok(JsonResponse(json!({})))
}

/// Parses a scope. A plan id may be a unique prefix.
async fn scope(shared: &AppState, text: Option<String>) -> Result<InvariantScope, ApiError> {
    let Some(text) = text else { return Ok(InvariantScope::Global) };
    match text.strip_prefix("plan:") {
        Some(given) => Ok(InvariantScope::Plan(shared.engine.plan(given).await?.id)),
        None => text
            .parse()
            .map_err(|error| invalid(format!("{error}"), "use global, project:NAME, action:NAME or plan:ID")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks if two commands with the same beginning get the same name, so that a report cannot show which of them
    /// failed.
    #[test]
    fn validations_that_would_be_called_the_same_are_numbered() {
        let command = |command: &str| api::NewValidation { command: command.into(), ..Default::default() };
        let given = ["make test", "make: test", "!!", "make test"].map(command).to_vec();
        let Ok(read) = validations(given) else { panic!("they were refused") };
        let names: Vec<_> = read.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["make-test", "make-test-2", "validation", "make-test-3"]);
        let named = || api::NewValidation { name: Some("a".into()), ..command("true") };
        assert!(validations(vec![named(), named()]).is_err());
    }
}
