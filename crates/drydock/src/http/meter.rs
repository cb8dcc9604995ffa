//! Counts requests and their durations by method, route and status. The label is the route, not the path, so the
//! number of labels is small and none contains a secret.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::Method;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use drydock_engine::TRACE;
use tokio::time::Instant;
use tracing::field::Empty;
use tracing::{Instrument, Span};

use crate::telemetry::continued;

/// The requests of this process so far, by route, then by method and status.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestMetrics(Arc<Mutex<BTreeMap<String, OfRoute>>>);

type OfRoute = BTreeMap<(&'static str, u16), RequestStats>;

/// The labels of a counter.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RequestLabels {
    pub(super) method: &'static str,
    pub(super) route: String,
    pub(super) status: u16,
}

/// The number of requests and their total duration.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RequestStats {
    pub(super) count: u64,
    pub(super) spent: Duration,
}

impl RequestMetrics {
    /// Returns all counters in order.
    pub(super) fn read(&self) -> Vec<(RequestLabels, RequestStats)> {
        let counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> = counted
            .iter()
            .flat_map(|(route, of_route)| {
                let kind = |method, status| RequestLabels { method, route: route.clone(), status };
                of_route.iter().map(move |((method, status), counted)| (kind(*method, *status), *counted))
            })
            .collect();
        all.sort_by(|(one, _), (other, _)| one.cmp(other));
        all
    }
}

/// Returns a router that counts requests to its own routes, but not those that it forwards.
pub(crate) fn measured<S: Clone + Send + Sync + 'static>(
    router: Router<S>,
    requests: RequestMetrics,
) -> Router<S> {
    router.route_layer(from_fn_with_state(requests, count))
}

async fn count(State(requests): State<RequestMetrics>, request: Request, next: Next) -> Response {
    requests.counted(request, |request| next.run(request)).await
}

impl RequestMetrics {
    /// Counts and logs a request around the handler that answers it.
    pub(super) async fn counted<F>(&self, request: Request, answer: impl FnOnce(Request) -> F) -> Response
    where
        F: Future<Output = Response>,
    {
        let route = request.extensions().get::<MatchedPath>().cloned();
        let route = route.as_ref().map_or("none", MatchedPath::as_str);
        // Clients can send any word as a method, so unknown methods share one label.
        let method = match *request.method() {
            Method::GET => "GET",
            Method::HEAD => "HEAD",
            Method::POST => "POST",
            Method::PUT => "PUT",
            Method::PATCH => "PATCH",
            Method::DELETE => "DELETE",
            Method::OPTIONS => "OPTIONS",
            _ => "other",
        };
        let span = span(method, route);
        continued(&span, request.headers());
        let began = Instant::now();
        let response = answer(request).instrument(span.clone()).await;
        let (spent, status) = (began.elapsed(), response.status().as_u16());
        span.record("http.response.status_code", status);
        if status >= 500 {
            span.record("otel.status_code", "ERROR");
        }
        tracing::info!(method, route, status, duration_us = spent.as_micros(), "answered");
        self.add(method, route, status, spent);
        response
    }

    fn add(&self, method: &'static str, route: &str, status: u16, spent: Duration) {
        let mut counted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_route = match counted.get_mut(route) {
            Some(of_route) => of_route,
            None => counted.entry(route.to_owned()).or_default(),
        };
        let entry = of_route.entry((method, status)).or_default();
        entry.count += 1;
        entry.spent += spent;
    }
}

/// Returns the trace span of a request, named by the OpenTelemetry conventions.
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
