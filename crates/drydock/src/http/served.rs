//! All that is served over TCP, from the outside in: strict headers, from where one may ask, the page, counting, who
//! asks, the routes. The page asks the routes through the same door as everybody. What is asked of the routes goes to
//! them without a look at the addresses of the page.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use drydock_engine::Engine;
use tower::{ServiceExt, service_fn};

use super::auth::{Door, authenticated};
use super::cookie::Cookie;
use super::guard::{Hosts, allowed};
use super::listen::Answering;
use super::meter::Requests;
use super::router::{ROOT, other_method, router};
use super::streams::{Readers, Streams};
use super::strict::dressed;
use super::vitals::{self, Vitals};
use super::{openapi, welcome};
use crate::config::Tokens;
use crate::page::{Gate, page};

/// What a server asks of those who ask it.
#[derive(Debug, Clone)]
pub(crate) struct Terms {
    /// Whether a request needs a token.
    pub(crate) tokens: Tokens,
    /// By which hosts a request may address us.
    pub(crate) hosts: Hosts,
    /// What browsers are signed in with.
    pub(crate) cookie: Cookie,
    /// Who can reach us.
    pub(crate) reach: Reach,
}

/// Who can reach a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Programs on this machine.
    ThisMachine,
    /// Others too.
    Others,
}

/// What is served, and what must be kept going while it is.
pub(crate) struct Served {
    front: Arc<Front>,
    engine: Engine,
    streams: Streams,
}

impl Served {
    /// Returns everything on an engine, on these terms.
    pub(crate) fn new(engine: &Engine, terms: Terms) -> Self {
        let (streams, readers, requests) = (Streams::default(), Readers::default(), Requests::default());
        let door = Door {
            engine: engine.clone(),
            tokens: terms.tokens,
            cookie: terms.cookie.clone(),
            streams: streams.clone(),
            readers: readers.clone(),
            reach: terms.reach,
            requests: requests.clone(),
        };
        let vitals = Vitals { engine: engine.clone(), requests: requests.clone(), readers };
        let routes = router(engine.clone(), "http", "http")
            .merge(welcome::routes(engine.clone(), terms.cookie.clone()))
            .merge(vitals::routes(vitals))
            .merge(openapi::reference())
            .method_not_allowed_fallback(other_method);
        let gate = Gate { tokens: terms.tokens, cookie: terms.cookie };
        let routes = authenticated(routes, door);
        let page = page(routes.clone(), requests, gate);
        let front = Arc::new(Front { hosts: terms.hosts, routes, page });
        Self { front, engine: engine.clone(), streams }
    }

    /// Returns what answers requests.
    pub(crate) fn service(&self) -> impl Answering {
        let front = Arc::clone(&self.front);
        service_fn(move |request| {
            let front = Arc::clone(&front);
            async move { Ok(front.answer(request).await) }
        })
    }

    /// Ends streams whose tokens have ended, until the engine stops.
    pub(crate) async fn mind(&self) {
        self.streams.mind(&self.engine).await;
    }
}

/// What every request meets first. No layers: each would cost every request a copy of all that lies behind it.
struct Front {
    hosts: Hosts,
    /// The routes behind their door.
    routes: Router,
    /// The page, which asks the routes for what it does not know.
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
        dressed(response)
    }
}
