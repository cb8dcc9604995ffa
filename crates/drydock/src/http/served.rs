//! Everything served over TCP, from the outside in: security headers, the check of `Host` and `Origin`, the page,
//! request counters, authentication, the routes. The page calls the routes through the same authentication as every
//! client. Requests below `/api/v1` go directly to the routes without matching the paths of the page.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use drydock_engine::Engine;
use tower::{ServiceExt, service_fn};

use super::auth::{Authenticator, authenticated};
use super::cookie::Cookie;
use super::guard::{Hosts, allowed};
use super::listen::HttpService;
use super::meter::RequestMetrics;
use super::router::{ROOT, other_method, router};
use super::streams::{StreamCounter, TokenStreams};
use super::strict::with_security_headers;
use super::vitals::{self, HealthState};
use super::{openapi, welcome};
use crate::config::TokenPolicy;
use crate::page::{PageGuard, page};

/// The conditions on which a server accepts requests.
#[derive(Debug, Clone)]
pub(crate) struct ServerPolicy {
    pub(crate) tokens: TokenPolicy,
    /// The hosts by which a request may address this server.
    pub(crate) hosts: Hosts,
    /// The session cookie of browsers.
    pub(crate) cookie: Cookie,
    pub(crate) reach: Exposure,
}

/// Which machines can reach a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exposure {
    /// Only this machine.
    ThisMachine,
    /// Other machines too.
    Others,
}

/// The service, and the background work that it needs.
pub(crate) struct TcpService {
    front: Arc<Front>,
    engine: Engine,
    streams: TokenStreams,
}

impl TcpService {
    /// Returns the service on an engine, on these terms.
    pub(crate) fn new(engine: &Engine, terms: ServerPolicy) -> Self {
        let (streams, readers, requests) =
            (TokenStreams::default(), StreamCounter::default(), RequestMetrics::default());
        let door = Authenticator {
            engine: engine.clone(),
            tokens: terms.tokens,
            cookie: terms.cookie.clone(),
            streams: streams.clone(),
            readers: readers.clone(),
            reach: terms.reach,
            requests: requests.clone(),
        };
        let vitals = HealthState { engine: engine.clone(), requests: requests.clone(), readers };
        let routes = router(engine.clone(), "http", "http")
            .merge(welcome::routes(engine.clone(), terms.cookie.clone()))
            .merge(vitals::routes(vitals))
            .merge(openapi::reference())
            .method_not_allowed_fallback(other_method);
        let gate = PageGuard { tokens: terms.tokens, cookie: terms.cookie };
        let routes = authenticated(routes, door);
        let page = page(routes.clone(), requests, gate);
        let front = Arc::new(Front { hosts: terms.hosts, routes, page });
        Self { front, engine: engine.clone(), streams }
    }

    /// Returns the service for connections.
    pub(crate) fn service(&self) -> impl HttpService {
        let front = Arc::clone(&self.front);
        service_fn(move |request| {
            let front = Arc::clone(&front);
            async move { Ok(front.answer(request).await) }
        })
    }

    /// Closes streams whose tokens have ended, until the engine stops.
    pub(crate) async fn mind(&self) {
        self.streams.close_revoked(&self.engine).await;
    }
}

/// The first stop of every request. It is a plain function without layers because each layer would cost every request
/// a clone of everything behind it.
struct Front {
    hosts: Hosts,
    /// The routes behind authentication.
    routes: Router,
    /// The page, which forwards unknown paths to the routes.
    page: Router,
}

impl Front {
    async fn answer(&self, request: Request) -> Response {
        let response = match allowed(&request, &self.hosts) {
            Ok(()) => {
                let answering =
                    if request.uri().path().starts_with(ROOT) { &self.routes } else { &self.page };
                answering.clone().oneshot(request).await.unwrap_or_else(|never| match never {})
            }
            Err(refused) => refused.into_response(),
        };
        with_security_headers(response)
    }
}
