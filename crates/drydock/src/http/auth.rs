//! Authenticates requests over TCP by a bearer token or by a browser's session, and checks the caller's role against
//! the table of rights. If tokens are optional, a request without a token counts as one of the person at this
//! machine; an invalid bearer token is refused even then. The secret is read only here and is not copied into a log,
//! an error or an answer.
//!
//! A browser sends its cookie no matter which page makes the request, and also to other servers on other ports of our
//! host. So the cookie is only half of a session. The other half is in the header [`PAGE`], and only pages of our own
//! origin know it.

use std::sync::Arc;

use axum::RequestExt;
use axum::Router;
use axum::extract::{MatchedPath, RawPathParams, Request, State};
use axum::http::header::{ACCEPT, AUTHORIZATION, COOKIE, ORIGIN};
use axum::http::{HeaderMap, HeaderName, Method};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use drydock_api::Code;
use drydock_domain::{Token, TokenKind, TokenRole};
use drydock_engine::{Engine, TokenCheck};

use super::cookie::Cookie;
use super::extract::{ApiError, refused};
use super::meter::RequestMetrics;
use super::rights::{Right, may, refusal, right};
use super::served::Exposure;
use super::streams::{StreamCounter, TokenStreams};
use crate::config::TokenPolicy;
use crate::page::SignedOut;

/// The header in which our pages send the second half of their session. Pages of other origins do not know its value.
pub(crate) const PAGE: HeaderName = HeaderName::from_static("x-drydock-page");

/// Authenticates requests over TCP, and counts requests and open streams.
#[derive(Clone)]
pub(super) struct Authenticator {
    pub(super) engine: Engine,
    pub(super) tokens: TokenPolicy,
    pub(super) cookie: Cookie,
    pub(super) streams: TokenStreams,
    pub(super) readers: StreamCounter,
    pub(super) reach: Exposure,
    pub(super) requests: RequestMetrics,
}

/// Returns the router behind authentication. Requests are counted.
pub(super) fn authenticated(router: Router, door: Authenticator) -> Router {
    router.layer(from_fn_with_state(Arc::new(door), enter))
}

async fn enter(State(door): State<Arc<Authenticator>>, request: Request, next: Next) -> Response {
    // One layer for both: each layer costs every request a clone of everything behind it.
    door.requests.counted(request, |request| door.answered(request, next)).await
}

/// Returns true if a browser asks for a page to show to a person.
fn is_for_people(request: &Request) -> bool {
    let accepted = request.headers().get(ACCEPT).and_then(|accept| accept.to_str().ok());
    request.method() == Method::GET && accepted.is_some_and(|accepted| accepted.contains("text/html"))
}

/// How fresh the check of a token must be.
#[derive(Debug, Clone, Copy)]
enum TokenFreshness {
    /// A cached check is good enough: the request only reads.
    AMomentAgo,
    /// Check in the store: the request changes something, manages tokens, or its route is in no table.
    Now,
}

impl TokenFreshness {
    fn of(right: Option<Right>) -> Self {
        match right {
            Some(Right::Look | Right::LookAtPlan) => TokenFreshness::AMomentAgo,
            Some(Right::Enter | Right::Measure | Right::Operate | Right::Decide | Right::Vouch) | None => {
                TokenFreshness::Now
            }
        }
    }
}

impl Authenticator {
    async fn answered(&self, request: Request, next: Next) -> Response {
        let unopened = is_for_people(&request).then(|| SignedOut::of(request.headers(), &self.cookie));
        match self.admitted(request).await {
            Ok(request) => {
                let token =
                    request.extensions().get::<Token>().map(|token| (token.id.clone(), token.role.clone()));
                let response = self.readers.counted(next.run(request).await);
                match token {
                    Some((token, role)) => {
                        let mut response = self.streams.bound(&token, response);
                        // For the page, which calls the router in this process; this is not sent over the wire.
                        response.extensions_mut().insert(role);
                        response
                    }
                    None => response,
                }
            }
            Err(refused) => {
                // The path is not logged because a user may have put a secret into it.
                tracing::info!(code = %refused.0.code, reason = %refused.0, "request refused");
                match (&refused.0.code, unopened) {
                    (Code::Unauthorized, Some(unopened)) => unopened.into_response(),
                    (_, _) => refused.into_response(),
                }
            }
        }
    }

    /// Admits a request and stores its token in the request's extensions, so that handlers can record the caller.
    async fn admitted(&self, mut request: Request) -> Result<Request, ApiError> {
        let route = request.extensions().get::<MatchedPath>();
        let right = route.and_then(|route| right(request.method(), route.as_str()));
        match (right, self.reach) {
            (Some(Right::Enter), _) | (Some(Right::Measure), Exposure::ThisMachine) => return Ok(request),
            (Some(_) | None, _) => {}
        }
        let trust = TokenFreshness::of(right);
        let Some(token) = self.token(trust, request.method(), request.headers()).await? else {
            return Ok(request);
        };
        // Only the rights of an agent depend on the plan in the path.
        let named = match token.role {
            TokenRole::Agent { .. } => request.extract_parts::<RawPathParams>().await.ok(),
            TokenRole::Human | TokenRole::Operator | TokenRole::Reader => None,
        };
        let plan = named.as_ref().and_then(|named| named.iter().find(|(name, _)| *name == "id"));
        if !may(&token.role, right, plan.map(|(_, plan)| plan)) {
            let text = format!(
                "{} (token {} has role {})",
                refusal(&token.role, right),
                token.name,
                token.role.name()
            );
            return Err(refused(Code::Forbidden, text, "ask a person, or use a token with another role"));
        }
        for secret in [AUTHORIZATION, COOKIE, PAGE] {
            request.headers_mut().remove(secret);
        }
        request.extensions_mut().insert(token);
        Ok(request)
    }

    /// Returns the token of a request, or none if tokens are optional and the request has none.
    async fn token(
        &self,
        trust: TokenFreshness,
        method: &Method,
        headers: &HeaderMap,
    ) -> Result<Option<Token>, ApiError> {
        if let Some(text) = bearer(headers)? {
            let recognised = match trust {
                TokenFreshness::AMomentAgo => self.engine.token_recall(text, TokenKind::Bearer).await?,
                TokenFreshness::Now => self.engine.token_recognise(text, TokenKind::Bearer).await?,
            };
            return known(recognised).map(Some);
        }
        let session = match (self.cookie.shown(headers), page(headers)) {
            (Some(cookie), Some(page)) => Some(known(match trust {
                TokenFreshness::AMomentAgo => self.engine.session_recall(cookie, page).await?,
                TokenFreshness::Now => self.engine.session_recognise(cookie, page).await?,
            })),
            (Some(_), None) => {
                Some(Err(unauthorized("the session cookie was sent without the page's half of the session")))
            }
            (None, _) => None,
        };
        match (session, self.tokens) {
            (Some(Ok(token)), _) => from_our_page(method, headers).map(|()| Some(token)),
            // A browser keeps sending a cookie that has expired. If tokens are optional, such a request counts as one
            // without a token.
            (Some(Err(_)) | None, TokenPolicy::Optional) => Ok(None),
            (Some(Err(refused)), TokenPolicy::Required) => Err(refused),
            (None, TokenPolicy::Required) => Err(unauthorized("the request has no token")),
        }
    }
}

fn known(recognised: TokenCheck) -> Result<Token, ApiError> {
    match recognised {
        TokenCheck::Bearer(token) => Ok(token),
        TokenCheck::Expired => Err(unauthorized("the token has expired")),
        TokenCheck::Revoked => Err(unauthorized("the token was revoked")),
        TokenCheck::RunOver => Err(unauthorized("the token belongs to a run that has ended")),
        TokenCheck::Unknown => Err(unauthorized("the token is unknown")),
    }
}

/// Returns the half of a session that our pages send in a header.
fn page(headers: &HeaderMap) -> Option<&str> {
    headers.get(PAGE).and_then(|page| page.to_str().ok())
}

/// Refuses a change from a browser that sends no `Origin`. The guard has already compared `Origin` with our own.
fn from_our_page(method: &Method, headers: &HeaderMap) -> Result<(), ApiError> {
    let looks = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
    if looks || headers.contains_key(ORIGIN) {
        return Ok(());
    }
    let hint = "send the page's Origin with the session, or use a bearer token";
    Err(refused(Code::Forbidden, "the request has no Origin, so it is not from a page of this server", hint))
}

/// Returns the bearer token of a request, and an error if there is more than one.
fn bearer(headers: &HeaderMap) -> Result<Option<&str>, ApiError> {
    let mut given = headers.get_all(AUTHORIZATION).iter();
    let value = match (given.next(), given.next()) {
        (None, _) => return Ok(None),
        (Some(value), None) => value.to_str().unwrap_or_default(),
        (Some(_), Some(_)) => "",
    };
    let token = value.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    let token = token.map(|(_, token)| token.trim()).filter(|token| !token.is_empty());
    token.map(Some).ok_or_else(|| unauthorized("the Authorization header is not one bearer token"))
}

fn unauthorized(text: &str) -> ApiError {
    let hint = "send `Authorization: Bearer TOKEN`, or set DRYDOCK_TOKEN; `drydock token create` creates a token, `drydock token link` a sign-in link for a browser";
    refused(Code::Unauthorized, text, hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, StoreLocation};
    use crate::http::cookie::ConnectionSecurity;
    use crate::http::rights::tests::routes;
    use crate::http::router;
    use crate::http::router::ROOT;
    use axum::body::Body;
    use drydock_engine::{NewRole, TokenInput};
    use tower::ServiceExt;

    async fn desk(tokens: TokenPolicy) -> (tempfile::TempDir, Engine, Router) {
        let folder = tempfile::tempdir().unwrap();
        let place = StoreLocation::Default(folder.path().join("drydock.db"));
        let engine = crate::embedded::engine(&place, Config::default()).await.unwrap();
        let (cookie, streams) = (Cookie::of(1, ConnectionSecurity::Plain), TokenStreams::default());
        let (readers, reach) = (StreamCounter::default(), Exposure::Others);
        let requests = RequestMetrics::default();
        let door =
            Authenticator { engine: engine.clone(), tokens, cookie, streams, readers, reach, requests };
        (folder, engine.clone(), authenticated(router(engine, "http", "http"), door))
    }

    async fn token(engine: &Engine, name: &str, role: NewRole) -> String {
        let new = TokenInput { name: name.to_owned(), role, life: None, made_by: None };
        engine.token_create(new).await.unwrap().1.reveal().to_owned()
    }

    async fn status(router: &Router, method: &Method, path: &str, headers: &[&str]) -> u16 {
        let mut request = Request::builder().method(method).uri(format!("{ROOT}{path}"));
        for value in headers {
            request = request.header(AUTHORIZATION, *value);
        }
        let request = request.body(Body::empty()).unwrap();
        router.clone().oneshot(request).await.unwrap().status().as_u16()
    }

    /// Breaks if authentication admits a role that the table of rights does not, on any route, or refuses one that it
    /// does.
    #[tokio::test]
    async fn each_role_may_do_what_the_table_says_on_every_route() {
        let (_folder, engine, router) = desk(TokenPolicy::Required).await;
        for (name, asked, role) in
            [("o", NewRole::Operator, TokenRole::Operator), ("r", NewRole::Reader, TokenRole::Reader)]
        {
            let secret = token(&engine, name, asked).await;
            for (method, path) in routes() {
                let at = path.replace(['{', '}'], "");
                let seen = status(&router, method, &at, &[&format!("Bearer {secret}")]).await;
                let allowed = may(&role, right(method, &format!("{ROOT}{path}")), None);
                assert_eq!(seen != 403, allowed, "{} {method} {at}: {seen}", role.name());
            }
        }
        for (method, path) in routes() {
            let open = right(method, &format!("{ROOT}{path}")) == Some(Right::Enter);
            let seen = status(&router, method, &path.replace(['{', '}'], ""), &[]).await;
            assert_eq!(seen == 401, !open, "{method} {path}: {seen}");
            assert!(!open || path == "/openapi.json", "{path} is open to all callers");
        }
    }

    /// Breaks if an invalid token is accepted, or is treated as no token where tokens are optional.
    #[tokio::test]
    async fn what_is_no_token_is_refused_even_where_none_is_needed() {
        let (_folder, engine, router) = desk(TokenPolicy::Optional).await;
        let good = format!("Bearer {}", token(&engine, "me", NewRole::Human).await);
        let get = async |headers: &[&str]| status(&router, &Method::GET, "/plans", headers).await;
        assert_eq!((get(&[]).await, get(&[&good]).await), (200, 200));
        assert_eq!(get(&[&good.replace("Bearer", "bearer")]).await, 200);
        let (twice, longer, basic) =
            ([good.as_str(), &good], format!("{good}x"), good.replace("Bearer", "Basic"));
        assert_eq!(get(&twice).await, 401);
        for wrong in [
            longer.as_str(),
            &basic,
            &good[..good.len() - 1],
            "Bearer",
            "Bearer ",
            "",
            &good[7..],
            "Bearer \u{e9}",
        ] {
            assert_eq!(get(&[wrong]).await, 401, "{wrong}");
        }
        assert_eq!(status(&router, &Method::GET, "/moon", &["Bearer x"]).await, 401);
        assert_eq!(status(&router, &Method::GET, "/moon", &[&good]).await, 404);
        assert_eq!(status(&router, &Method::DELETE, "/plans", &[&good]).await, 405);
    }
}
