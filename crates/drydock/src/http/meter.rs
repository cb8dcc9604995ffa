//! Requests as they are counted: by method, route and status, and how long they took. What is counted is the route and
//! not the address, so there are few kinds of it and no secret among them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use drydock_engine::TRACE;
use tokio::time::Instant;
use tracing::field::Empty;
use tracing::{Instrument, Span};

use crate::telemetry::continued;

/// The requests of this process so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Requests(Arc<Mutex<BTreeMap<Kind, Counted>>>);

/// A kind of request.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Kind {
    pub(super) method: String,
    pub(super) route: String,
    pub(super) status: u16,
}

/// How many there were, and how long they took together.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counted {
    pub(super) count: u64,
    pub(super) spent: Duration,
}

impl Requests {
    /// Returns what was counted, in order.
    pub(super) fn read(&self) -> Vec<(Kind, Counted)> {
        let counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        counted.iter().map(|(kind, counted)| (kind.clone(), *counted)).collect()
    }
}

/// Returns the router with its requests counted and told to the log.
pub(super) fn metered(router: Router, requests: Requests) -> Router {
    router.layer(from_fn_with_state(requests, count))
}

/// Returns a router whose own routes are counted, and not what it passes on.
pub(crate) fn measured<S: Clone + Send + Sync + 'static>(router: Router<S>, requests: Requests) -> Router<S> {
    router.route_layer(from_fn_with_state(requests, count))
}

async fn count(State(requests): State<Requests>, request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().map_or("none", MatchedPath::as_str).to_owned();
    // A method that no route has could be any word; they are counted as one.
    let method = match request.method().as_str() {
        known @ ("GET" | "HEAD" | "POST" | "PUT" | "PATCH" | "DELETE" | "OPTIONS") => known.to_owned(),
        _ => "other".to_owned(),
    };
    let span = span(&method, &route);
    continued(&span, request.headers());
    let began = Instant::now();
    let response = next.run(request).instrument(span.clone()).await;
    let (spent, status) = (began.elapsed(), response.status().as_u16());
    span.record("http.response.status_code", status);
    if status >= 500 {
        span.record("otel.status_code", "ERROR");
    }
    tracing::info!(method, route, status, duration_us = spent.as_micros(), "answered");
    let mut counted = requests.0.lock().unwrap_or_else(PoisonError::into_inner);
    let entry = counted.entry(Kind { method, route, status }).or_default();
    entry.count += 1;
    entry.spent += spent;
    response
}

/// Returns the span of a request for a trace, named as the conventions of OpenTelemetry have it.
fn span(method: &str, route: &str) -> Span {
    tracing::info_span!(
        target: TRACE,
        "request",
        otel.name = format!("{method} {route}"),
        otel.kind = "server",
        otel.status_code = Empty,
        http.request.method = method,
        http.route = route,
        http.response.status_code = Empty,
    )
}
