//! Who asks over TCP: a bearer token says it, and the table of rights says what they may. Without a token a request
//! counts as that of the person at this machine, where that is allowed; a token that does not count never does. The
//! secret is looked at here and goes no further: not into a log, an error or an answer.

use axum::RequestExt;
use axum::Router;
use axum::extract::{MatchedPath, RawPathParams, Request, State};
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use drydock_api::Code;
use drydock_domain::Token;
use drydock_engine::{Engine, Recognised};

use super::extract::{Refused, refused};
use super::rights::{may, refusal, right};
use super::router::ROOT;
use crate::config::Tokens;

/// The door that requests over TCP come through.
#[derive(Clone)]
struct Door {
    engine: Engine,
    tokens: Tokens,
}

/// Returns the router behind the door. Requests that need no token at all belong outside of it.
pub(crate) fn authenticated(router: Router, engine: Engine, tokens: Tokens) -> Router {
    router.layer(from_fn_with_state(Door { engine, tokens }, enter))
}

async fn enter(State(door): State<Door>, request: Request, next: Next) -> Response {
    match door.admitted(request).await {
        Ok(request) => next.run(request).await,
        Err(refused) => {
            // Without the address, in which somebody may have put what belongs in a header.
            tracing::info!(code = %refused.0.code, reason = %refused.0, "refused at the door");
            refused.into_response()
        }
    }
}

impl Door {
    /// Lets a request pass, with its token beside it for whoever records what is done.
    async fn admitted(&self, mut request: Request) -> Result<Request, Refused> {
        let token = match (bearer(request.headers())?, self.tokens) {
            (None, Tokens::Optional) => return Ok(request),
            (None, Tokens::Required) => return Err(unauthorized("no token came with the request")),
            (Some(text), _) => self.recognised(text).await?,
        };
        let route =
            request.extensions().get::<MatchedPath>().and_then(|path| path.as_str().strip_prefix(ROOT));
        let right = route.and_then(|route| right(request.method(), route));
        let named = request.extract_parts::<RawPathParams>().await.ok();
        let plan = named.as_ref().and_then(|named| named.iter().find(|(name, _)| *name == "id"));
        if !may(&token.role, right, plan.map(|(_, plan)| plan)) {
            let text = format!(
                "{} (the token {} is of role {})",
                refusal(&token.role, right),
                token.name,
                token.role.name()
            );
            return Err(refused(Code::Forbidden, text, "ask a person, or use a token of another role"));
        }
        request.headers_mut().remove(AUTHORIZATION);
        request.extensions_mut().insert(token);
        Ok(request)
    }

    async fn recognised(&self, text: &str) -> Result<Token, Refused> {
        match self.engine.token_recognise(text).await? {
            Recognised::Bearer(token) => Ok(token),
            Recognised::Expired => Err(unauthorized("the token has expired")),
            Recognised::Revoked => Err(unauthorized("the token was revoked")),
            Recognised::RunOver => Err(unauthorized("the token is of a run that is over")),
            Recognised::Unknown => Err(unauthorized("the token is not known here")),
        }
    }
}

/// Reads the one token of a request.
fn bearer(headers: &HeaderMap) -> Result<Option<&str>, Refused> {
    let mut given = headers.get_all(AUTHORIZATION).iter();
    let value = match (given.next(), given.next()) {
        (None, _) => return Ok(None),
        (Some(value), None) => value.to_str().unwrap_or_default(),
        (Some(_), Some(_)) => "",
    };
    let token = value.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    let token = token.map(|(_, token)| token.trim()).filter(|token| !token.is_empty());
    token.map(Some).ok_or_else(|| unauthorized("the request names who asks in a way that is not spoken here"))
}

fn unauthorized(text: &str) -> Refused {
    let hint = "send `Authorization: Bearer TOKEN`, or set DRYDOCK_TOKEN; `drydock token create` makes one";
    refused(Code::Unauthorized, text, hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, StorePlace};
    use crate::http::rights::tests::routes;
    use crate::http::router;
    use axum::body::Body;
    use axum::http::Method;
    use drydock_domain::Role;
    use drydock_engine::{NewRole, NewToken};
    use tower::ServiceExt;

    async fn desk(tokens: Tokens) -> (tempfile::TempDir, Engine, Router) {
        let folder = tempfile::tempdir().unwrap();
        let place = StorePlace::Default(folder.path().join("drydock.db"));
        let engine = crate::embedded::engine(&place, Config::default()).await.unwrap();
        let router = authenticated(router(engine.clone(), "http", "http"), engine.clone(), tokens);
        (folder, engine, router)
    }

    async fn token(engine: &Engine, name: &str, role: NewRole) -> String {
        let new = NewToken { name: name.to_owned(), role, life: None };
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

    /// Breaks when the door lets a role do what the table does not, on any route, or keeps it from what it may do.
    #[tokio::test]
    async fn each_role_may_do_what_the_table_says_on_every_route() {
        let (_folder, engine, router) = desk(Tokens::Required).await;
        for (name, asked, role) in
            [("o", NewRole::Operator, Role::Operator), ("r", NewRole::Reader, Role::Reader)]
        {
            let secret = token(&engine, name, asked).await;
            for (method, path) in routes() {
                let at = path.replace(['{', '}'], "");
                let seen = status(&router, method, &at, &[&format!("Bearer {secret}")]).await;
                let allowed = may(&role, right(method, path), None);
                assert_eq!(seen != 403, allowed, "{} {method} {at}: {seen}", role.name());
            }
        }
        for (method, path) in routes() {
            assert_eq!(
                status(&router, method, &path.replace(['{', '}'], ""), &[]).await,
                401,
                "{method} {path}"
            );
        }
    }

    /// Breaks when something that is no token that counts is taken for one, or for none where none is needed.
    #[tokio::test]
    async fn what_is_no_token_is_refused_even_where_none_is_needed() {
        let (_folder, engine, router) = desk(Tokens::Optional).await;
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
