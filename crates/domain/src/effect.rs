//! Effects: the work that is due next for a plan that does not wait for a person. The effect is a function of
//! the stored stage, and the outbox stores it in the same commit. A crash after the commit therefore cannot
//! lose it.

use serde::{Deserialize, Serialize};

use crate::{Complete, Fanout, NextPhase, Phase, Plan, Progress, Settled, Stage, Turn};

/// Work that the store gives to the worker that claims it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Start the queued phase, or take it over from a holder that is gone, and run it to its end.
    DrivePhase(Phase),
    /// Schedule the plan's subplans.
    Tend,
    /// Continue with Execute without asking.
    AdvanceToExecute,
    /// Continue with Apply without asking.
    AdvanceToApply,
}

impl Effect {
    /// Returns the next phase of an automatic advance.
    pub fn advance(self) -> Option<NextPhase> {
        match self {
            Effect::DrivePhase(_) | Effect::Tend => None,
            Effect::AdvanceToExecute => Some(NextPhase::Execute),
            Effect::AdvanceToApply => Some(NextPhase::Apply),
        }
    }

    /// Returns the phase that this effect brings closer to its end. Effects closest to landing have priority:
    /// the base of a plan that waits to land becomes outdated, and its worktree occupies space.
    pub fn phase(self) -> Phase {
        match self {
            Effect::DrivePhase(phase) => phase,
            Effect::Tend | Effect::AdvanceToExecute => Phase::Execute,
            Effect::AdvanceToApply => Phase::Apply,
        }
    }
}

/// Returns the work that is due for this plan without a person, if any.
pub fn next_effect(plan: &Plan) -> Option<Effect> {
    if !plan.winding.is_empty() {
        return Some(Effect::Tend);
    }
    if plan.gate.is_some() {
        return None;
    }
    if let Some(place) = &plan.place {
        let in_line = place.turn == Turn::InLine && plan.stage.phase() != Phase::Apply;
        // The parent gives the subplan its turn, and joins its result.
        if in_line || matches!(plan.stage, Stage::Execute(Progress::Reached(Complete))) {
            return None;
        }
    }
    match &plan.stage {
        Stage::Execute(Progress::Queued) if plan.has_open_subplans() => Some(Effect::Tend),
        Stage::Apply(Progress::Queued) if plan.fanout.as_ref().is_some_and(Fanout::is_ready) => {
            Some(Effect::Tend)
        }
        Stage::Strategize(Progress::Queued | Progress::Processing) => {
            Some(Effect::DrivePhase(Phase::Strategize))
        }
        Stage::Execute(Progress::Queued | Progress::Processing) => Some(Effect::DrivePhase(Phase::Execute)),
        Stage::Apply(Progress::Queued | Progress::Processing) => Some(Effect::DrivePhase(Phase::Apply)),
        Stage::Strategize(Progress::Reached(Complete)) => Some(Effect::AdvanceToExecute),
        Stage::Execute(Progress::Reached(Complete)) => Some(Effect::AdvanceToApply),
        Stage::Strategize(Progress::Waiting(_) | Progress::Errored { .. } | Progress::Cancelled { .. })
        | Stage::Execute(Progress::Waiting(_) | Progress::Errored { .. } | Progress::Cancelled { .. })
        | Stage::Apply(
            Progress::Waiting(_)
            | Progress::Errored { .. }
            | Progress::Cancelled { .. }
            | Progress::Reached(Settled::Applied { .. } | Settled::Constrained { .. }),
        ) => None,
    }
}
