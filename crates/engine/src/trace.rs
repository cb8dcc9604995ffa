//! Trace spans of the engine: each run of a phase, and in it transitions, agents, validations and the
//! landing. Spans contain ids and configured names, never text that a person or an agent wrote. They have
//! their own target: logs exclude it, and trace exporters include only it.

use drydock_domain::{Plan, PlanId, RunId};
use tracing::Span;
use tracing::field::Empty;

use crate::error::EngineError;

/// The target of all trace spans.
pub const TRACE: &str = "drydock::trace";

/// Returns the span of a run; [`began`] adds the run's id.
pub(crate) fn run(plan: &PlanId) -> Span {
    tracing::info_span!(
        target: TRACE,
        "run",
        otel.status_code = Empty,
        drydock.plan = %plan,
        drydock.run = Empty,
        drydock.phase = Empty,
        drydock.state = Empty,
    )
}

/// Records the run's id and phase in the current span.
pub(crate) fn began(plan: &Plan, run: &RunId) {
    let (span, phase) = (Span::current(), plan.stage.phase().name());
    span.record("drydock.run", run.as_str());
    span.record("drydock.phase", phase);
}

/// Records the final state in the span of a run.
pub(crate) fn ended(span: &Span, driven: &Result<Plan, EngineError>) {
    let state = driven.as_ref().map_or("unfinished", |plan| plan.stage.state().name());
    span.record("drydock.state", state);
    if matches!(state, "unfinished" | "errored") {
        span.record("otel.status_code", "ERROR");
    }
}

pub(crate) fn transition(plan: &PlanId, command: &'static str) -> Span {
    tracing::info_span!(
        target: TRACE,
        "transition",
        drydock.plan = %plan,
        drydock.command = command,
        drydock.outcome = Empty,
    )
}

pub(crate) fn agent(name: &str, role: &'static str) -> Span {
    tracing::info_span!(target: TRACE, "agent", drydock.agent = name, drydock.role = role)
}

pub(crate) fn validation(name: &str) -> Span {
    tracing::info_span!(target: TRACE, "validation", drydock.validation = name)
}

pub(crate) fn landing() -> Span {
    tracing::info_span!(target: TRACE, "landing")
}
