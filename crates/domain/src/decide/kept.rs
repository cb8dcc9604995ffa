//! Work of a failed run of Execute: it is kept, never lands automatically, and a retry continues from it
//! (N1).

use super::begin::undecided;
use super::route::wrong_stage;
use crate::outcome::{Decided, TransitionBuilder};
use crate::stage::Common;
use crate::{Context, Event, Phase, Plan, Refusal, RestartReason, State, StoredPlan};

/// Returns the commit with the work of the failed run.
pub(super) fn work(plan: &Plan) -> Option<&str> {
    plan.stage.failure().filter(|_| plan.stage.phase() == Phase::Execute)?.work.as_deref()
}

/// `execute/errored` → `execute/queued`, from the commit at which the plan's work began. The failed run's
/// work is kept as a checkpoint.
pub(super) fn start_over(snapshot: &StoredPlan, context: &Context) -> Result<Decided, Refusal> {
    let plan = &snapshot.plan;
    if took_effect(plan, RestartReason::StartOver) && plan.work_from.as_deref() == Some(plan.began_at()) {
        return Ok(Decided::Already);
    }
    failed(snapshot, "start over")?;
    let mut draft = TransitionBuilder::after(snapshot, context);
    draft.plan.restart_from(snapshot.plan.began_at().to_owned(), RestartReason::StartOver);
    draft.plan.reexamines = false;
    Ok(draft.stage(Common::Queued).event(Event::StartedOver).done())
}

/// `execute/errored` → `execute/queued` on the work of the failed run. The next run has no writer: it
/// validates and reviews that work. Invariants and gates apply as usual.
pub(super) fn accept(snapshot: &StoredPlan, context: &Context) -> Result<Decided, Refusal> {
    if took_effect(&snapshot.plan, RestartReason::Accepted) && snapshot.plan.reexamines {
        return Ok(Decided::Already);
    }
    failed(snapshot, "accept")?;
    let Some(commit) = work(&snapshot.plan).map(str::to_owned) else {
        return Err(wrong_stage(snapshot, "accept"));
    };
    let mut draft = TransitionBuilder::after(snapshot, context);
    draft.plan.restart_from(commit.clone(), RestartReason::Accepted);
    draft.plan.reexamines = true;
    Ok(draft.stage(Common::Queued).event(Event::Accepted { commit }).done())
}

/// Returns true if an earlier command of this kind queued or started Execute: the command is a repetition.
fn took_effect(plan: &Plan, why: RestartReason) -> bool {
    let goes_on = match plan.stage.state() {
        State::Queued | State::Processing => plan.stage.phase() == Phase::Execute,
        State::Waiting
        | State::Complete
        | State::Errored
        | State::Cancelled
        | State::Applied
        | State::Constrained => false,
    };
    goes_on && plan.take_up_why == why
}

/// Refuses every stage except a failed Execute without an open decision.
fn failed(snapshot: &StoredPlan, command: &'static str) -> Result<(), Refusal> {
    let plan = &snapshot.plan;
    match (plan.stage.phase(), plan.stage.state()) {
        (_, State::Waiting | State::Errored) if plan.pending_decision().is_some() => {
            Err(undecided(snapshot, command))
        }
        (Phase::Execute, State::Errored) => Ok(()),
        (Phase::Strategize | Phase::Execute | Phase::Apply, _) => Err(wrong_stage(snapshot, command)),
    }
}
