//! The first answer to a browser that has not sent the second half of its session: an empty page with the script. The
//! script requests the same URL again with the half that only pages of our origin know. The cookie alone gets nothing
//! else, because a browser sends it to every port of the host.

use axum::extract::{Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::shell::{self, Opens};
use super::trouble::sign_in;
use crate::config::TokenPolicy;
use crate::http::{Cookie, PAGE};

/// The settings that decide whether a view is rendered.
#[derive(Debug, Clone)]
pub(crate) struct PageGuard {
    pub(crate) tokens: TokenPolicy,
    /// The session cookie of browsers.
    pub(crate) cookie: Cookie,
}

/// A browser that is not signed in yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SignedOut {
    /// It sends a cookie, which has not been checked. Its script has not sent the other half yet.
    Arriving,
    /// It sends no cookie, e.g. after a link on another site. Its script may still have a session.
    Stranger,
    /// Its script sent a session that is not valid.
    Refused,
}

impl SignedOut {
    /// Classifies a browser by the headers it sends.
    pub(crate) fn of(headers: &HeaderMap, cookie: &Cookie) -> Self {
        match (headers.contains_key(PAGE), cookie.shown(headers)) {
            (true, _) => SignedOut::Refused,
            (false, Some(_)) => SignedOut::Arriving,
            (false, None) => SignedOut::Stranger,
        }
    }
}

impl IntoResponse for SignedOut {
    fn into_response(self) -> Response {
        match self {
            SignedOut::Arriving => shell::opening(Opens::View).into_response(),
            SignedOut::Stranger => (StatusCode::UNAUTHORIZED, shell::opening(Opens::View)).into_response(),
            SignedOut::Refused => sign_in("You are not signed in, or your session has expired."),
        }
    }
}

/// Answers a browser that opens a sign-in link.
pub(crate) fn welcome() -> Response {
    shell::opening(Opens::Link).into_response()
}

/// Renders a view only for requests with more than a cookie, if tokens are required.
pub(super) async fn opened(State(gate): State<PageGuard>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let is_bare = !headers.contains_key(PAGE) && !headers.contains_key(AUTHORIZATION);
    match gate.tokens {
        TokenPolicy::Required if is_bare && matches!(*request.method(), Method::GET | Method::HEAD) => {
            SignedOut::of(headers, &gate.cookie).into_response()
        }
        TokenPolicy::Required | TokenPolicy::Optional => next.run(request).await,
    }
}
