//! What a browser gets before it has shown that a page of ours asks: an empty page with the script, which then fetches
//! the same address with the half of the session that only pages of our origin have. The cookie alone, which a browser
//! sends to every port of the host, is answered with this and with nothing else.

use axum::extract::{Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::shell::{self, Opens};
use super::trouble::sign_in;
use crate::config::Tokens;
use crate::http::{Cookie, PAGE};

/// What a view needs to know before it is made.
#[derive(Debug, Clone)]
pub(crate) struct Gate {
    /// Whether a request needs a token.
    pub(crate) tokens: Tokens,
    /// What browsers are signed in with.
    pub(crate) cookie: Cookie,
}

/// A browser for which nothing is opened yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unopened {
    /// It shows a cookie, of whatever worth; its script has yet to ask.
    Arriving,
    /// It shows nothing; its script may have something all the same, as when a link of another site led here.
    Stranger,
    /// Its script asked, and is not known.
    Refused,
}

impl Unopened {
    /// Says what a browser is by what it shows.
    pub(crate) fn of(headers: &HeaderMap, cookie: &Cookie) -> Self {
        match (headers.contains_key(PAGE), cookie.shown(headers)) {
            (true, _) => Unopened::Refused,
            (false, Some(_)) => Unopened::Arriving,
            (false, None) => Unopened::Stranger,
        }
    }
}

impl IntoResponse for Unopened {
    fn into_response(self) -> Response {
        match self {
            Unopened::Arriving => shell::opening(Opens::View).into_response(),
            Unopened::Stranger => (StatusCode::UNAUTHORIZED, shell::opening(Opens::View)).into_response(),
            Unopened::Refused => sign_in("You are not signed in here, or your sign-in has run out."),
        }
    }
}

/// Answers whoever opens a link.
pub(crate) fn welcome() -> Response {
    shell::opening(Opens::Link).into_response()
}

/// Makes a view only for those who show more than a cookie, where that is needed.
pub(super) async fn opened(State(gate): State<Gate>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    let is_bare = !headers.contains_key(PAGE) && !headers.contains_key(AUTHORIZATION);
    match gate.tokens {
        Tokens::Required if is_bare && matches!(*request.method(), Method::GET | Method::HEAD) => {
            Unopened::of(headers, &gate.cookie).into_response()
        }
        Tokens::Required | Tokens::Optional => next.run(request).await,
    }
}
