//! Health of the server for monitoring: liveness, readiness, and metrics (Prometheus text format 0.0.4).

use std::fmt::{Display, Write};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use drydock_engine::{CommitStats, Engine};
use drydock_store::Counts;

use super::extract::ApiError;
use super::meter::{RequestLabels, RequestMetrics, RequestStats};
use super::streams::StreamCounter;

const TEXT: &str = "text/plain; charset=utf-8";
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";
/// How long the store may take to answer before the server is not ready.
const STORE_TIME: Duration = Duration::from_secs(2);

/// The sources of health and metrics.
#[derive(Clone)]
pub(super) struct HealthState {
    pub(super) engine: Engine,
    pub(super) requests: RequestMetrics,
    pub(super) readers: StreamCounter,
}

pub(super) fn routes(vitals: HealthState) -> Router {
    Router::new()
        .route("/healthz", get(alive))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .with_state(vitals)
}

/// A server that answers is alive.
async fn alive() -> Response {
    ([(CONTENT_TYPE, TEXT)], "alive\n").into_response()
}

/// A server is ready if it is not stopping and its store answers.
async fn ready(State(vitals): State<HealthState>) -> Response {
    let answer = |status, text: &'static str| (status, [(CONTENT_TYPE, TEXT)], text).into_response();
    if vitals.engine.stopping().is_cancelled() {
        return answer(StatusCode::SERVICE_UNAVAILABLE, "stopping\n");
    }
    match tokio::time::timeout(STORE_TIME, vitals.engine.store().event_newest()).await {
        Ok(Ok(_)) => answer(StatusCode::OK, "ready\n"),
        Ok(Err(error)) => {
            tracing::warn!(error = %drydock_domain::error_chain(&error), "not ready: the store does not respond");
            answer(StatusCode::SERVICE_UNAVAILABLE, "the store does not respond\n")
        }
        Err(_) => answer(StatusCode::SERVICE_UNAVAILABLE, "the store does not respond in time\n"),
    }
}

async fn metrics(State(vitals): State<HealthState>) -> Result<Response, ApiError> {
    let counts = vitals.engine.store().counts().await?;
    let text = told(&counts, &vitals.engine.metered(), &vitals.requests.read(), vitals.readers.count());
    Ok(([(CONTENT_TYPE, METRICS)], text).into_response())
}

fn told(
    counts: &Counts,
    metered: &CommitStats,
    requests: &[(RequestLabels, RequestStats)],
    readers: usize,
) -> String {
    let mut text = String::new();
    let mut head = |name: &str, kind: &str, help: &str, lines: &[(String, f64)]| {
        let mut line =
            |line: &dyn Display| writeln!(text, "{line}").expect("writing to a String cannot fail");
        line(&format_args!("# HELP {name} {help}"));
        line(&format_args!("# TYPE {name} {kind}"));
        for (labels, value) in lines {
            line(&format_args!("{name}{labels} {value}"));
        }
    };
    let one = |value: f64| vec![(String::new(), value)];
    let by_state: Vec<_> =
        counts.plans.iter().map(|(state, count)| (format!("{{state=\"{state}\"}}"), *count as f64)).collect();
    head("drydock_plans", "gauge", "Plans in the store, by state.", &by_state);
    let running = counts.plans.get("processing").copied().unwrap_or_default();
    head("drydock_runs_active", "gauge", "Active runs on all machines.", &one(running as f64));
    head("drydock_decisions_open", "gauge", "Open decisions.", &one(counts.open_decisions as f64));
    head(
        "drydock_outbox_effects",
        "gauge",
        "Effects in the outbox, claimed or not.",
        &one(counts.effects as f64),
    );
    let overdue = Duration::from_micros(u64::try_from(counts.overdue_us).unwrap_or_default()).as_secs_f64();
    head("drydock_outbox_overdue_seconds", "gauge", "Wait time of the oldest due effect.", &one(overdue));
    head("drydock_locks_held", "gauge", "Held locks.", &one(counts.locks as f64));
    head("drydock_locks_stale", "gauge", "Held locks that have expired.", &one(counts.stale_locks as f64));
    head("drydock_event_readers", "gauge", "Open event streams of this process.", &one(readers as f64));
    let came = [("committed", metered.committed), ("refused", metered.refused), ("failed", metered.failed)];
    let came = came.map(|(outcome, count)| (format!("{{outcome=\"{outcome}\"}}"), count as f64));
    head("drydock_transitions_total", "counter", "Commands decided by this process, by outcome.", &came);
    let kinds = |value: fn(&RequestStats) -> f64| -> Vec<_> {
        let line = |(kind, counted): &(RequestLabels, RequestStats)| {
            let RequestLabels { method, route, status } = kind;
            let labels = format!("{{method=\"{method}\",route=\"{route}\",status=\"{status}\"}}");
            (labels, value(counted))
        };
        requests.iter().map(line).collect()
    };
    let (count, spent) = (kinds(|one| one.count as f64), kinds(|one| one.spent.as_secs_f64()));
    head("drydock_http_requests_total", "counter", "HTTP requests.", &count);
    head("drydock_http_request_seconds_total", "counter", "Time to the start of the response.", &spent);
    text + &histogram(metered)
}

fn histogram(metered: &CommitStats) -> String {
    let name = "drydock_commit_seconds";
    let mut text = format!("# HELP {name} Duration of commits.\n# TYPE {name} histogram\n");
    let mut line = |label: &str, value: &dyn Display| {
        writeln!(text, "{name}{label} {value}").expect("writing to a String cannot fail");
    };
    for (end, count) in &metered.within {
        line(&format!("_bucket{{le=\"{}\"}}", end.as_secs_f64()), count);
    }
    line("_bucket{le=\"+Inf\"}", &metered.committed);
    line("_sum", &metered.spent.as_secs_f64());
    line("_count", &metered.committed);
    text
}
