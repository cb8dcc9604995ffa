//! The routes of `/api/v1`.

use std::sync::Arc;

use axum::Router;
use axum::http::Method;
use axum::middleware::from_fn_with_state;
use axum::routing::{delete, get, post};
use drydock_api::Code;
use drydock_domain::{Authority, Token, TokenRole};
use drydock_engine::{Caller, Engine};

use super::extract::{ApiError, refused};
use super::keyed::idempotent;
use super::shown::PlanJsonCache;
use super::{backups, decisions, events, explain, logs, openapi, plans, registry, tokens, upkeep};

/// The prefix of every route.
pub(super) const ROOT: &str = "/api/v1";

/// The maximum size of a request body, checked by the code that reads it (`extract`).
pub(super) const BODY_MAX: usize = 4 * 1024 * 1024;

/// The state shared by all handlers.
#[derive(Clone)]
pub(super) struct AppState {
    pub(super) engine: Engine,
    pub(super) shown: Arc<PlanJsonCache>,
    by: Arc<str>,
    via: &'static str,
}

impl AppState {
    /// Returns the caller for the record: the name of the token, or the default name for requests without one.
    pub(super) fn caller(&self, token: Option<&Token>, expected: Option<i64>) -> Caller {
        let (by, authority) = match token {
            None => (self.by.to_string(), Authority::Person),
            Some(token) => (token.name.to_string(), authority(&token.role)),
        };
        Caller { by, via: self.via.to_owned(), authority, expected }
    }
}

fn authority(role: &TokenRole) -> Authority {
    match role {
        TokenRole::Human => Authority::Person,
        TokenRole::Operator => Authority::Operator,
        // These roles change nothing. If the table of rights admits one by mistake, the commands still refuse it.
        TokenRole::Agent { .. } | TokenRole::Reader => Authority::Agent,
    }
}

/// Returns the router on an engine. Requests without a token are recorded under the name `by`.
pub(crate) fn router(engine: Engine, by: &str, via: &'static str) -> Router {
    let shared = AppState { engine, shown: Arc::default(), by: by.into(), via };
    // Full paths instead of a nested router, and no layer around routes that only read: each layer, and a nested
    // router is one, costs every request a clone of everything behind it.
    looking()
        .merge(changing().layer(from_fn_with_state(shared.clone(), idempotent)))
        .method_not_allowed_fallback(other_method)
        .fallback(unknown)
        .with_state(shared)
}

fn at(path: &str) -> String {
    format!("{ROOT}{path}")
}

/// The routes that only read.
fn looking() -> Router<AppState> {
    Router::new()
        .route(&at("/openapi.json"), get(openapi::document))
        .route(&at("/projects"), get(registry::projects))
        .route(&at("/projects/{name}"), get(registry::project))
        .route(&at("/actions"), get(registry::actions))
        .route(&at("/actions/{name}"), get(registry::action))
        .route(&at("/invariants"), get(registry::invariants))
        .route(&at("/agents"), get(upkeep::agents))
        .route(&at("/plans"), get(plans::list))
        .route(&at("/plans/{id}"), get(plans::show))
        .route(&at("/plans/{id}/diff"), get(plans::diff))
        .route(&at("/plans/{id}/tree"), get(plans::tree))
        .route(&at("/plans/{id}/why"), get(plans::why))
        .route(&at("/plans/{id}/explain"), get(explain::explain))
        .route(&at("/plans/{id}/checkpoints"), get(plans::checkpoints))
        .route(&at("/plans/{id}/log"), get(logs::read))
        .route(&at("/plans/{id}/logs"), get(logs::list))
        .route(&at("/backups"), get(backups::list))
        .route(&at("/backups/{plan}/{number}"), get(backups::show))
        .route(&at("/decisions"), get(decisions::list))
        .route(&at("/decisions/{id}"), get(decisions::show))
        .route(&at("/changesets"), get(events::changesets))
        .route(&at("/changesets/{id}"), get(events::changeset))
        .route(&at("/events"), get(events::list))
        .route(&at("/events/last"), get(events::last))
        .route(&at("/locks"), get(upkeep::locks))
        .route(&at("/tokens"), get(tokens::list))
        .route(&at("/doctor"), get(upkeep::doctor))
}

/// The routes that change something.
fn changing() -> Router<AppState> {
    Router::new()
        .route(&at("/projects"), post(registry::project_add))
        .route(&at("/projects/{name}"), delete(registry::project_remove))
        .route(&at("/actions"), post(registry::action_create))
        .route(&at("/actions/{name}"), delete(registry::action_remove))
        .route(&at("/invariants"), post(registry::invariant_add))
        .route(&at("/invariants/{name}"), delete(registry::invariant_remove))
        .route(&at("/agents/{name}/check"), post(upkeep::agent_check))
        .route(&at("/plans"), post(plans::make))
        .route(&at("/plans/{id}/strategize"), post(plans::strategize))
        .route(&at("/plans/{id}/execute"), post(plans::execute))
        .route(&at("/plans/{id}/apply"), post(plans::apply))
        .route(&at("/plans/{id}/cancel"), post(plans::cancel))
        .route(&at("/plans/{id}/retry"), post(plans::retry))
        .route(&at("/plans/{id}/accept"), post(plans::accept))
        .route(&at("/plans/{id}/revert"), post(plans::revert))
        .route(&at("/plans/{id}/prompt"), post(plans::prompt))
        .route(&at("/plans/{id}/takeover"), post(plans::take_over))
        .route(&at("/plans/{id}/rollback"), post(plans::roll_back))
        .route(&at("/plans/{id}/sync"), post(backups::sync))
        .route(&at("/plans/{id}/strategy/adopt"), post(backups::adopt))
        .route(&at("/backups/prune"), post(backups::prune))
        .route(&at("/backups/{plan}/{number}"), delete(backups::delete))
        .route(&at("/backups/{plan}/{number}/restore"), post(backups::restore))
        .route(&at("/decisions/{id}/resolve"), post(decisions::resolve))
        .route(&at("/locks/{id}/break"), post(upkeep::lock_break))
        .route(&at("/tokens"), post(tokens::create))
        .route(&at("/tokens/link"), post(tokens::link))
        .route(&at("/tokens/{id}/revoke"), post(tokens::revoke))
        .route(&at("/gc"), post(upkeep::collect))
}

async fn unknown() -> ApiError {
    refused(Code::NotFound, "unknown route", "routes start with /api/v1")
}

/// Answers a request to an existing route with another method.
pub(crate) async fn other_method(method: Method) -> ApiError {
    let text = format!("this route does not accept {method}");
    refused(Code::MethodNotAllowed, text, "the Allow header of the response lists the accepted methods")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, StoreLocation};
    use axum::body::Body;
    use axum::http::Request;
    use axum::http::header::{ALLOW, CONTENT_TYPE};
    use drydock_api::Problem;
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    const PROBLEM: &str = Problem::MEDIA_TYPE;

    /// Breaks if a client that parses problems gets plain text, or the form of a web page is accepted as a request.
    #[tokio::test]
    async fn what_cannot_be_carried_out_is_answered_with_a_problem_and_a_next_step() {
        let folder = tempfile::tempdir().unwrap();
        let place = StoreLocation::Default(folder.path().join("drydock.db"));
        let router =
            router(crate::embedded::engine(&place, Config::default()).await.unwrap(), "test", "test");
        let json = "application/json";
        for (method, path, media, body, status, code) in [
            ("DELETE", "/api/v1/plans", json, "", 405, "method_not_allowed"),
            ("GET", "/api/v1/plans/%FF", json, "", 400, "unparsable"),
            ("GET", "/api/v1/moon", json, "", 404, "not_found"),
            ("GET", "/", json, "", 404, "not_found"),
            ("GET", "/api/v1/plans?limit=x", json, "", 422, "invalid"),
            ("GET", "/api/v1/plans?limit=0", json, "", 422, "invalid"),
            ("GET", "/api/v1/decisions?limit=0", json, "", 422, "invalid"),
            ("GET", "/api/v1/events?limit=0", json, "", 422, "invalid"),
            ("POST", "/api/v1/gc", "text/plain", "{\"dry_run\":true}", 400, "unparsable"),
            ("POST", "/api/v1/gc", json, "{\"dry_run\"", 400, "unparsable"),
            ("POST", "/api/v1/gc", json, "{\"dry_run\":7}", 422, "invalid"),
        ] {
            let request = Request::builder().method(method).uri(path).header(CONTENT_TYPE, media);
            let answer = router.clone().oneshot(request.body(Body::from(body)).unwrap()).await.unwrap();
            let (head, body) = answer.into_parts();
            assert_eq!(head.status, status, "{method} {path} {media}");
            assert_eq!(head.headers[CONTENT_TYPE], PROBLEM, "{method} {path}");
            assert_eq!(head.headers.contains_key(ALLOW), status == 405, "{method} {path}");
            let body = body.collect().await.unwrap().to_bytes();
            let problem: Problem = serde_json::from_slice(&body).unwrap();
            assert_eq!(problem.code.text(), code, "{method} {path} {problem}");
            assert!(problem.hint.is_some(), "{method} {path} {problem}");
        }
        let typed = Request::builder().method("POST").uri("/api/v1/gc");
        let typed = typed.header(CONTENT_TYPE, "application/json; charset=utf-8");
        let typed = typed.body(Body::from("{\"dry_run\":true}")).unwrap();
        assert_eq!(router.oneshot(typed).await.unwrap().status(), 200);
    }
}
