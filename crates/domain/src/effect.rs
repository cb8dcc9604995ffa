//! What must happen next to a plan that no person holds back. The outbox keeps it, so that it is a function of
//! the stored stage and cannot be forgotten by whoever committed the stage.

use serde::{Deserialize, Serialize};

use crate::{Complete, Fanout, Next, Phase, Plan, Progress, Settled, Stage, Turn};

/// Work that the store hands out to whoever claims it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Start the queued phase, or take it over from an owner that is gone, and bring it to its end.
    DrivePhase(Phase),
    /// Look after the plan's subplans.
    Tend,
    /// Go on to Execute without asking.
    AdvanceToExecute,
    /// Go on to Apply without asking.
    AdvanceToApply,
}

impl Effect {
    /// Returns the next phase that an automatic advance leads to.
    pub fn advance(self) -> Option<Next> {
        match self {
            Effect::DrivePhase(_) | Effect::Tend => None,
            Effect::AdvanceToExecute => Some(Next::Execute),
            Effect::AdvanceToApply => Some(Next::Apply),
        }
    }

    /// Returns the phase that this brings a plan nearer to the end of. Effects nearest to landing are done first: the
    /// base of a plan that waits to land grows old, and its worktree stays.
    pub fn phase(self) -> Phase {
        match self {
            Effect::DrivePhase(phase) => phase,
            Effect::Tend | Effect::AdvanceToExecute => Phase::Execute,
            Effect::AdvanceToApply => Phase::Apply,
        }
    }
}

/// Returns what must happen next to this plan without a person, if anything.
pub fn due(plan: &Plan) -> Option<Effect> {
    if !plan.winding.is_empty() {
        return Some(Effect::Tend);
    }
    if plan.gate.is_some() {
        return None;
    }
    if let Some(place) = &plan.place {
        let in_line = place.turn == Turn::InLine && plan.stage.phase() != Phase::Apply;
        // Its parent calls it, and takes up what it has done.
        if in_line || matches!(plan.stage, Stage::Execute(Progress::Reached(Complete))) {
            return None;
        }
    }
    match &plan.stage {
        Stage::Execute(Progress::Queued) if plan.is_tending() => Some(Effect::Tend),
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
