//! Projects, actions and invariants.

use std::path::PathBuf;

use axum::extract::{Path, State};
use drydock_api as api;
use drydock_domain::{InvariantScope, Validation};
use drydock_engine::{Lockable, NewInvariant, NewProject};
use serde_json::{Value, json};

use super::extract::{Answer, Body, Query, Refused, Sent, invalid};
use super::router::Shared;
use super::view;

/// How long the name of a validation made from its command is at the most.
const NAME_MADE_MAX: usize = 40;

pub(super) async fn projects(State(shared): State<Shared>) -> Answer<api::Projects> {
    let projects = shared.engine.store().project_list().await?.into_iter().map(view::project).collect();
    Ok(Sent(api::Projects { projects, next: None }))
}

pub(super) async fn project(
    State(shared): State<Shared>,
    Path(name): Path<String>,
) -> Answer<api::OneProject> {
    Ok(Sent(api::OneProject { project: view::project(shared.engine.project(&name).await?) }))
}

pub(super) async fn project_add(
    State(shared): State<Shared>,
    Body(new): Body<api::NewProject>,
) -> Answer<api::OneProject> {
    let mut validations = Vec::new();
    for (number, one) in new.validations.into_iter().enumerate() {
        let name = one.name.unwrap_or_else(|| name_of(&one.command, number));
        let name = name.parse().map_err(|error| invalid(format!("{error}")))?;
        let required = one.required.unwrap_or(true);
        validations.push(Validation { name, command: one.command, required, timeout_s: None });
    }
    let project = NewProject {
        name: new.name,
        repo: PathBuf::from(new.repo),
        target: new.target,
        remote: new.remote,
        validations,
    };
    let project = shared.engine.project_add(project).await?;
    Ok(Sent(api::OneProject { project: view::project(project) }))
}

/// Makes a name from a command: its words joined, or a number when nothing is left of it.
fn name_of(command: &str, number: usize) -> String {
    let letters = |character: char| if character.is_ascii_alphanumeric() { character } else { '-' };
    let name: String = command.chars().map(letters).take(NAME_MADE_MAX).collect();
    let name = name.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-");
    if name.is_empty() { format!("validation-{}", number + 1) } else { name }
}

pub(super) async fn project_remove(State(shared): State<Shared>, Path(name): Path<String>) -> Answer<Value> {
    shared.engine.project_remove(&name).await?;
    Ok(Sent(json!({})))
}

pub(super) async fn actions(State(shared): State<Shared>) -> Answer<api::Actions> {
    let actions = shared.engine.store().action_list().await?.into_iter().map(view::action).collect();
    Ok(Sent(api::Actions { actions, next: None }))
}

pub(super) async fn action(State(shared): State<Shared>, Path(name): Path<String>) -> Answer<api::OneAction> {
    Ok(Sent(api::OneAction { action: view::action(shared.engine.action(&name).await?) }))
}

pub(super) async fn action_create(
    State(shared): State<Shared>,
    Body(new): Body<api::NewAction>,
) -> Answer<api::OneAction> {
    let action =
        shared.engine.action_create(&new.toml).await.map_err(|error| in_file(error.into(), new.file))?;
    Ok(Sent(api::OneAction { action: view::action(action) }))
}

/// Says in which file the fault is.
fn in_file(mut refused: Refused, file: Option<String>) -> Refused {
    if let (Some(file), api::Code::Invalid) = (file, &refused.0.code) {
        refused.0.detail = format!("{file}: {}", refused.0.detail);
    }
    refused
}

pub(super) async fn action_remove(State(shared): State<Shared>, Path(name): Path<String>) -> Answer<Value> {
    shared.engine.action_remove(&name).await?;
    Ok(Sent(json!({})))
}

pub(super) async fn invariants(
    State(shared): State<Shared>,
    Query(query): Query<api::InvariantQuery>,
) -> Answer<api::Invariants> {
    let invariants = match query.effective {
        None => shared.engine.store().invariant_list(None).await?,
        Some(given) => {
            let plan = shared.engine.plan(&given).await?;
            shared.engine.invariants_effective(&plan).await?
        }
    };
    Ok(Sent(api::Invariants {
        invariants: invariants.into_iter().map(view::invariant).collect(),
        next: None,
    }))
}

pub(super) async fn invariant_add(
    State(shared): State<Shared>,
    Body(new): Body<api::NewInvariant>,
) -> Answer<api::OneInvariant> {
    let scope = scope(&shared, new.scope).await?;
    let lock = if new.locked { Lockable::Locked } else { Lockable::Open };
    let rule = NewInvariant {
        name: new.name,
        cel: new.cel,
        command: new.command,
        text: new.text,
        at: new.at.iter().map(view::phase_asked).collect(),
    };
    let invariant = shared.engine.invariant_add(rule, scope, lock).await?;
    Ok(Sent(api::OneInvariant { invariant: view::invariant(invariant) }))
}

pub(super) async fn invariant_remove(
    State(shared): State<Shared>,
    Path(name): Path<String>,
    Query(query): Query<api::ScopeQuery>,
) -> Answer<Value> {
    let scope = scope(&shared, query.scope).await?;
    shared.engine.invariant_remove(&name, &scope).await?;
    Ok(Sent(json!({})))
}

/// Reads a scope; the id of a plan may be a beginning.
async fn scope(shared: &Shared, text: Option<String>) -> Result<InvariantScope, Refused> {
    let Some(text) = text else { return Ok(InvariantScope::Global) };
    match text.strip_prefix("plan:") {
        Some(given) => Ok(InvariantScope::Plan(shared.engine.plan(given).await?.id)),
        None => text.parse().map_err(|error| invalid(format!("{error}"))),
    }
}
