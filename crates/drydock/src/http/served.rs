//! All that is served over TCP, from the outside in: strict headers, from where one may ask, the page, counting, who
//! asks, the routes. The page asks the routes through the same door as everybody.

use axum::Router;
use drydock_engine::Engine;

use super::auth::{Door, authenticated};
use super::cookie::Cookie;
use super::guard::{Hosts, guarded};
use super::meter::Requests;
use super::router::{other_method, router};
use super::streams::{Readers, Streams};
use super::strict::strict;
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
#[derive(Clone)]
pub(crate) struct Served {
    /// The routes behind their doors.
    pub(crate) router: Router,
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
        let routes = page(authenticated(routes, door), requests, gate);
        let router = strict(guarded(routes, terms.hosts));
        Self { router, engine: engine.clone(), streams }
    }

    /// Ends streams whose tokens have ended, until the engine stops.
    pub(crate) async fn mind(&self) {
        self.streams.mind(&self.engine).await;
    }
}
