//! What a trace shows of the engine: each run of a phase, and in it transitions, agents, validations and the landing.
//! Spans carry ids and configured names, never what somebody wrote. They have a target of their own: a log leaves
//! them out, and whoever collects traces takes them and nothing else.

use drydock_domain::{Plan, PlanId, RunId};
use tracing::Span;
use tracing::field::Empty;

use crate::error::EngineError;

/// The target of all spans that are meant for traces.
pub const TRACE: &str = "drydock::trace";

/// Returns the span of a run; which one it is comes with [`began`].
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

/// Says in the span around it which run has begun.
pub(crate) fn began(plan: &Plan, run: &RunId) {
    let (span, phase) = (Span::current(), plan.stage.phase().name());
    span.record("drydock.run", run.as_str());
    span.record("drydock.phase", phase);
}

/// Says in the span of a run how it ended.
pub(crate) fn ended(span: &Span, driven: &Result<Plan, EngineError>) {
    let state = driven.as_ref().map_or("unfinished", |plan| plan.stage.state().name());
    span.record("drydock.state", state);
    if matches!(state, "unfinished" | "errored") {
        span.record("otel.status_code", "ERROR");
    }
}

/// Returns the span of a transition.
pub(crate) fn transition(plan: &PlanId, command: &'static str) -> Span {
    tracing::info_span!(
        target: TRACE,
        "transition",
        drydock.plan = %plan,
        drydock.command = command,
        drydock.outcome = Empty,
    )
}

/// Returns the span of an agent at work.
pub(crate) fn agent(name: &str, role: &'static str) -> Span {
    tracing::info_span!(target: TRACE, "agent", drydock.agent = name, drydock.role = role)
}

/// Returns the span of a validation.
pub(crate) fn validation(name: &str) -> Span {
    tracing::info_span!(target: TRACE, "validation", drydock.validation = name)
}

/// Returns the span of moving the target.
pub(crate) fn landing() -> Span {
    tracing::info_span!(target: TRACE, "landing")
}
