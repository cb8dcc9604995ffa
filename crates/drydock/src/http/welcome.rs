//! Sign-in: the page behind a link exchanges the link for a session, once. Only the POST uses the link up, so
//! programs that fetch it for a preview do not. The half of the session that is not a cookie is only in the answer to
//! the page's own script, never in a URL.

use axum::Router;
use axum::extract::State;
use axum::http::header::{ALLOW, SET_COOKIE};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use drydock_api::{self as api, Code};
use drydock_engine::Engine;
use serde::{Deserialize, Serialize};

use super::cookie::Cookie;
use super::extract::{ApiError, JsonBody, JsonResponse, refused};
use crate::page::{sign_in, welcome};

/// The body of a sign-in request.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SignInRequest {
    once: String,
}

/// The half of the session that our page stores.
#[derive(Serialize)]
struct SignInReply<'a> {
    page: &'a str,
}

/// Returns the route of sign-in links.
pub(super) fn routes(engine: Engine, cookie: Cookie) -> Router {
    let route = get(async || welcome()).head(glance).post(enter);
    Router::new().route(api::WELCOME, route).with_state((engine, cookie))
}

async fn enter(
    State((engine, cookie)): State<(Engine, Cookie)>,
    JsonBody(arrival): JsonBody<SignInRequest>,
) -> Result<Response, ApiError> {
    Ok(match engine.link_redeem(&arrival.once).await? {
        Some((_, session)) => {
            let set = cookie.set(session.cookie.reveal(), Engine::SESSION_LIFE);
            ([(SET_COOKIE, set)], JsonResponse(SignInReply { page: session.page.reveal() })).into_response()
        }
        None if arrival.once.is_empty() => sign_in("Open this page with a sign-in link."),
        None => sign_in("This link was already used or has expired after ten minutes."),
    })
}

/// Answers HEAD requests from programs that check a link before a person opens it.
async fn glance() -> Response {
    let problem =
        refused(Code::MethodNotAllowed, "a sign-in link must be opened with GET", "open it in a browser");
    ([(ALLOW, "GET,POST")], problem).into_response()
}
