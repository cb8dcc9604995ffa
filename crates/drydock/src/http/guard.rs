//! Who may ask over TCP. There are no tokens yet and an action runs commands, so a web page that a browser shows must
//! not reach the router: browsers name the page in `Origin`, and a name that an attacker's server points at loopback
//! stands in `Host`. The router in this process needs no such guard.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use axum::Router;
use axum::extract::Request;
use axum::http::header::{HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use drydock_api::Code;

use super::extract::{Refused, refused};

/// Returns the router behind the guard: every route, and every address that is no route.
pub(crate) fn guarded(router: Router) -> Router {
    router.layer(from_fn(guard))
}

async fn guard(request: Request, next: Next) -> Response {
    match allowed(&request) {
        Ok(()) => next.run(request).await,
        Err(refused) => refused.into_response(),
    }
}

fn allowed(request: &Request) -> Result<(), Refused> {
    if request.headers().contains_key(ORIGIN) {
        let hint = "ask with a program that is no web page, such as `drydock --server` or curl";
        return Err(refused(Code::Forbidden, "web pages may not ask here", hint));
    }
    let mut hosts = request.headers().get_all(HOST).iter();
    let named = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().ok().and_then(|host| host.parse().ok()),
        (None, _) | (Some(_), Some(_)) => None,
    };
    let local = named.as_ref().is_some_and(is_loopback);
    if local && request.uri().authority().is_none_or(is_loopback) {
        return Ok(());
    }
    let text = "the request does not name this machine as its host";
    Err(refused(Code::Forbidden, text, "address it as 127.0.0.1, [::1] or localhost"))
}

fn is_loopback(authority: &Authority) -> bool {
    let host = authority.host();
    let address = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(inner) => inner.parse::<Ipv6Addr>().map(IpAddr::from),
        None => host.parse::<Ipv4Addr>().map(IpAddr::from),
    };
    !authority.as_str().contains('@')
        && (host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;
    use axum::http::request::Builder;
    use axum::routing::post;
    use tower::ServiceExt;

    async fn status(request: Builder) -> u16 {
        let router = guarded(Router::new().route("/", post(async || "done")));
        let request = request.method("POST").body(Body::empty()).unwrap();
        router.oneshot(request).await.unwrap().status().as_u16()
    }

    /// Breaks when a page in somebody's browser can have commands run on their machine.
    #[tokio::test]
    async fn a_web_page_is_refused_whatever_its_origin() {
        for origin in ["https://evil.example", "null", "http://127.0.0.1:7717"] {
            let request = Request::builder().uri("/").header(HOST, "127.0.0.1:7717").header(ORIGIN, origin);
            assert_eq!(status(request).await, 403, "{origin}");
        }
    }

    /// Breaks when a name that an attacker lets point at loopback is taken for this machine.
    #[tokio::test]
    async fn only_requests_to_this_machine_by_its_own_names_are_answered() {
        for host in ["127.0.0.1:7717", "127.8.9.1", "[::1]:7717", "localhost", "LOCALHOST:1"] {
            assert_eq!(status(Request::builder().uri("/").header(HOST, host)).await, 200, "{host}");
        }
        let foreign = ["evil.example:7717", "127.0.0.1.nip.io", "localhost.evil.example", "0.0.0.0", ""];
        for host in foreign.into_iter().chain(["[::2]:1", "::1", "127.0.0.1@evil.example", "me@127.0.0.1"]) {
            assert_eq!(status(Request::builder().uri("/").header(HOST, host)).await, 403, "{host}");
        }
        let absolute = Request::builder().uri("http://evil.example/").header(HOST, "127.0.0.1");
        assert_eq!(status(absolute).await, 403);
        let twice = Request::builder().uri("/").header(HOST, "127.0.0.1").header(HOST, "evil.example");
        assert_eq!(status(twice).await, 403);
        assert_eq!(status(Request::builder().uri("/")).await, 403, "no host at all");
    }
}
