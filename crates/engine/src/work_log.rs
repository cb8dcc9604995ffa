//! The log of the workers: one line for each phase that is claimed, started and ended. `serve` and `worker`
//! print it by default, so it has its own target.

use drydock_domain::{Effect, Plan, RunId};
use drydock_store::EffectClaim;
use tokio::time::Instant;

use crate::error::EngineError;

/// The target of these lines.
pub const WORK: &str = "drydock::work";

/// Logs the claim of a worker. Turns for subplans and gates are frequent and do no work of their own, so they are
/// logged at debug level.
pub(crate) fn claimed(claim: &EffectClaim) {
    let (plan, attempts) = (&claim.plan, claim.attempts);
    match claim.effect {
        Effect::DrivePhase(phase) => {
            tracing::info!(target: WORK, plan = %plan, phase = phase.name(), attempts, "claimed");
        }
        Effect::Tend | Effect::AdvanceToExecute | Effect::AdvanceToApply => {
            tracing::debug!(target: WORK, plan = %plan, effect = ?claim.effect, attempts, "claimed");
        }
    }
}

/// A run that was started; logs its end.
pub(crate) struct StartedRun {
    plan: String,
    run: String,
    phase: &'static str,
    since: Instant,
}

/// Logs that a run was started.
pub(crate) fn started(plan: &Plan, run: &RunId) -> StartedRun {
    let phase = plan.stage.phase().name();
    let project = plan.spec.project.as_str();
    tracing::info!(target: WORK, plan = %plan.id, phase, run = %run, project, "started");
    StartedRun { plan: plan.id.to_string(), run: run.to_string(), phase, since: Instant::now() }
}

impl StartedRun {
    /// Logs how the run ended.
    pub(crate) fn ended(self, driven: &Result<Plan, EngineError>) {
        let StartedRun { plan, run, phase, since } = self;
        let took_ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
        match driven {
            Ok(ended) => {
                let (now_in, state) = (ended.stage.phase().name(), ended.stage.state().name());
                tracing::info!(target: WORK, plan, phase, run, took_ms, now_in, state, "ended");
            }
            Err(error) => {
                let error = drydock_domain::error_chain(error);
                tracing::warn!(target: WORK, plan, phase, run, took_ms, error, "ended without a result");
            }
        }
    }
}
