//! Signing in: the one link is traded for a cookie, and the browser sent on to an address without a secret.

use axum::Router;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::http::header::{ALLOW, LOCATION, SET_COOKIE};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use drydock_api::{self as api, Code};
use drydock_engine::Engine;
use serde::Deserialize;

use super::cookie::Cookie;
use super::extract::{Refused, refused};
use crate::page::sign_in;

/// What a link has.
#[derive(Deserialize)]
struct Arrival {
    once: Option<String>,
}

/// Returns the route that links lead to.
pub(super) fn routes(engine: Engine, cookie: Cookie) -> Router {
    Router::new().route(api::WELCOME, get(welcome).head(glance)).with_state((engine, cookie))
}

async fn welcome(
    State((engine, cookie)): State<(Engine, Cookie)>,
    Query(arrival): Query<Arrival>,
) -> Result<Response, Refused> {
    let Some(once) = arrival.once else { return Ok(sign_in("No link brought you here.")) };
    Ok(match engine.link_redeem(&once).await? {
        Some((_, secret)) => {
            let set = cookie.set(secret.reveal(), Engine::SESSION_LIFE);
            (StatusCode::SEE_OTHER, [(SET_COOKIE, set), (LOCATION, "/".parse().expect("a plain path"))])
                .into_response()
        }
        None => sign_in("This link was used before, or is older than ten minutes."),
    })
}

/// Answers programs that look at a link before a person opens it, and uses nothing up.
async fn glance() -> Response {
    let problem = refused(Code::MethodNotAllowed, "a link is opened with GET", "open it in a browser");
    ([(ALLOW, "GET")], problem).into_response()
}
