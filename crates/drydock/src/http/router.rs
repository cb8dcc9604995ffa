//! The routes of `/api/v1`.

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{delete, get, post};
use drydock_api::{Code, Problem};
use drydock_engine::{Caller, Engine};

use super::extract::Refused;
use super::{decisions, events, plans, registry, upkeep};

/// How large a request may be.
const BODY_MAX: usize = 4 * 1024 * 1024;

/// What every handler works with.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) engine: Engine,
    by: Arc<str>,
}

impl Shared {
    /// Returns who asks, for the record.
    pub(super) fn caller(&self, expected: Option<i64>) -> Caller {
        Caller { by: self.by.to_string(), expected }
    }
}

/// Returns the router on an engine; `by` is who its requests count as.
pub(crate) fn router(engine: Engine, by: &str) -> Router {
    let api = Router::new()
        .route("/projects", get(registry::projects).post(registry::project_add))
        .route("/projects/{name}", get(registry::project).delete(registry::project_remove))
        .route("/actions", get(registry::actions).post(registry::action_create))
        .route("/actions/{name}", get(registry::action).delete(registry::action_remove))
        .route("/invariants", get(registry::invariants).post(registry::invariant_add))
        .route("/invariants/{name}", delete(registry::invariant_remove))
        .route("/agents", get(upkeep::agents))
        .route("/agents/{name}/check", post(upkeep::agent_check))
        .route("/plans", get(plans::list).post(plans::make))
        .route("/plans/{id}", get(plans::show))
        .route("/plans/{id}/diff", get(plans::diff))
        .route("/plans/{id}/tree", get(plans::tree))
        .route("/plans/{id}/why", get(plans::why))
        .route("/plans/{id}/checkpoints", get(plans::checkpoints))
        .route("/plans/{id}/strategize", post(plans::strategize))
        .route("/plans/{id}/execute", post(plans::execute))
        .route("/plans/{id}/apply", post(plans::apply))
        .route("/plans/{id}/cancel", post(plans::cancel))
        .route("/plans/{id}/retry", post(plans::retry))
        .route("/plans/{id}/revert", post(plans::revert))
        .route("/plans/{id}/prompt", post(plans::prompt))
        .route("/plans/{id}/takeover", post(plans::take_over))
        .route("/decisions", get(decisions::list))
        .route("/decisions/{id}", get(decisions::show))
        .route("/decisions/{id}/resolve", post(decisions::resolve))
        .route("/changesets", get(events::changesets))
        .route("/changesets/{id}", get(events::changeset))
        .route("/events", get(events::list))
        .route("/locks", get(upkeep::locks))
        .route("/locks/{id}/break", post(upkeep::lock_break))
        .route("/doctor", get(upkeep::doctor))
        .route("/gc", post(upkeep::collect))
        .fallback(unknown);
    Router::new()
        .nest("/api/v1", api)
        .fallback(unknown)
        .layer(DefaultBodyLimit::max(BODY_MAX))
        .with_state(Shared { engine, by: by.into() })
}

async fn unknown() -> Refused {
    Refused(Box::new(
        Problem::new(Code::NotFound, "there is no such route").hint("routes begin with /api/v1"),
    ))
}
