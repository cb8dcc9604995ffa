//! Routes to create, list and revoke tokens. A secret is only in the answer to its creation.

use std::time::Duration;

use axum::Extension;
use axum::extract::State;
use axum::http::HeaderValue;
use axum::http::header::CACHE_CONTROL;
use axum::response::{IntoResponse, Response};
use drydock_api as api;
use drydock_domain::{Token, TokenKind, TokenRole, TokenState};
use drydock_engine::{NewRole, Secret, TokenInput};

use super::extract::{ApiError, ApiResult, JsonBody, JsonResponse, Path, RequestCaller, invalid};
use super::router::AppState;
use super::view::time;

/// Marks an answer that must not be stored, neither by proxies nor by us.
pub(super) const NOT_KEPT: HeaderValue = HeaderValue::from_static("no-store");

pub(super) async fn list(State(shared): State<AppState>) -> ApiResult<api::Tokens> {
    let tokens = shared.engine.tokens().await?.into_iter().map(token).collect();
    Ok(JsonResponse(api::Tokens { tokens, next: None }))
}

pub(super) async fn create(
    State(shared): State<AppState>,
    asked_with: Option<Extension<Token>>,
    JsonBody(new): JsonBody<api::NewToken>,
) -> Result<Response, ApiError> {
    let role = match (new.role, new.run) {
        (api::Role::Human, None) => NewRole::Human,
        (api::Role::Operator, None) => NewRole::Operator,
        (api::Role::Reader, None) => NewRole::Reader,
        (api::Role::Agent, Some(run)) => NewRole::Agent(run),
        (api::Role::Agent, None) => {
            return Err(invalid("an agent's token belongs to a run", "set `run`"));
        }
        (api::Role::Human | api::Role::Operator | api::Role::Reader, Some(_)) => {
            return Err(invalid("only an agent's token belongs to a run", "remove `run`"));
        }
    };
    let life = new.expires_in_s.map(Duration::from_secs);
    let made_by = asked_with.map(|Extension(token)| token.id);
    let (made, secret) =
        shared.engine.token_create(TokenInput { name: new.name, role, life, made_by }).await?;
    let made = api::MadeToken { token: token(made), secret: secret.reveal().to_owned() };
    Ok(([(CACHE_CONTROL, NOT_KEPT)], JsonResponse(made)).into_response())
}

pub(super) async fn link(
    State(shared): State<AppState>,
    RequestCaller(caller): RequestCaller,
    asked_with: Option<Extension<Token>>,
    JsonBody(new): JsonBody<api::NewLink>,
) -> Result<Response, ApiError> {
    let label = new.name.unwrap_or(caller.by);
    let maker = asked_with.map(|Extension(token)| token.id);
    let (made, secret) = shared.engine.link_create(&label, maker.as_ref()).await?;
    let path = link_path(&secret);
    Ok(([(CACHE_CONTROL, NOT_KEPT)], JsonResponse(api::MadeLink { token: token(made), path }))
        .into_response())
}

/// Returns the path of a sign-in link.
pub(crate) fn link_path(secret: &Secret) -> String {
    format!("{}?once={}", api::WELCOME, secret.reveal())
}

pub(super) async fn revoke(State(shared): State<AppState>, Path(id): Path) -> ApiResult<api::RevokedToken> {
    let revoked = shared.engine.token_revoke(&id).await?;
    let (sessions_ended, tokens_ended) = (revoked.sessions_ended, revoked.tokens_ended);
    Ok(JsonResponse(api::RevokedToken { token: token(revoked.token), sessions_ended, tokens_ended }))
}

fn token(token: Token) -> api::Token {
    let (role, plan, run) = match token.role {
        TokenRole::Human => (api::Role::Human, None, None),
        TokenRole::Operator => (api::Role::Operator, None, None),
        TokenRole::Reader => (api::Role::Reader, None, None),
        TokenRole::Agent { plan, run } => (api::Role::Agent, Some(plan.to_string()), Some(run.to_string())),
    };
    api::Token {
        id: token.id.to_string(),
        name: token.name.to_string(),
        role,
        kind: match token.kind {
            TokenKind::Bearer => api::TokenKind::Bearer,
            TokenKind::Machine => api::TokenKind::Machine,
            TokenKind::Session => api::TokenKind::Session,
            TokenKind::Link => api::TokenKind::Link,
        },
        plan,
        run,
        state: match token.state {
            TokenState::Valid => api::TokenState::Valid,
            TokenState::Expired => api::TokenState::Expired,
            TokenState::Revoked => api::TokenState::Revoked,
        },
        created_at: time(token.created_at),
        expires_at: token.expires_at.map(time),
        last_used_at: token.last_used_at.map(time),
        revoked_at: token.revoked_at.map(time),
        made_by: token.made_by.map(|maker| maker.to_string()),
    }
}
