//! Ends of Apply. An intent is recorded before the target moves, so that after a crash the repository shows
//! how the landing ended. The steps that record or end a landing also need the project's lock.

use super::route::{same_run, wrong_stage};
use crate::outcome::{Decided, TransitionBuilder};
use crate::{
    Context, Event, Intent, Landed, LandingProof, Progress, Refusal, RunId, Settled, Stage, State, StoredPlan,
};

/// Records that the target is about to move; the plan stays `apply/processing`.
pub(super) fn intend(
    snapshot: &StoredPlan,
    run: &RunId,
    intent: Intent,
    context: &Context,
) -> Result<Decided, Refusal> {
    same_run(snapshot, run)?;
    processing(snapshot, "intend")?;
    match &snapshot.plan.intent {
        Some(open) if *open == intent => return Ok(Decided::Already),
        Some(_) => return Err(Refusal::IntentOpen),
        None => {}
    }
    let mut draft = TransitionBuilder::after(snapshot, context).under_project();
    draft.plan.intent = Some(intent.clone());
    Ok(draft.event(Event::ApplyIntended(intent)).done())
}

/// Drops an intent whose landing did not happen.
pub(super) fn drop_intent(snapshot: &StoredPlan, context: &Context) -> Result<Decided, Refusal> {
    if snapshot.plan.intent.is_none() {
        return Ok(Decided::Already);
    }
    if snapshot.plan.stage.is_terminal() {
        return Err(wrong_stage(snapshot, "forgo"));
    }
    Ok(TransitionBuilder::after(snapshot, context).under_project().drop_intent().done())
}

/// `apply/processing` → `apply/applied`.
pub(super) fn land(
    snapshot: &StoredPlan,
    run: &RunId,
    landed: Landed,
    context: &Context,
) -> Result<Decided, Refusal> {
    let Landed { commit, proof, warning } = landed;
    same_run(snapshot, run)?;
    if snapshot.plan.stage.state() == State::Applied && snapshot.plan.landed_commit.as_ref() == Some(&commit)
    {
        return Ok(Decided::Already);
    }
    processing(snapshot, "land")?;
    let intended = snapshot.plan.intent.as_ref().is_some_and(|intent| intent.to == commit);
    match proof {
        LandingProof::Found => {}
        LandingProof::Intended if intended => {}
        LandingProof::Intended => return Err(wrong_stage(snapshot, "land")),
    }
    let mut draft = TransitionBuilder::after(snapshot, context).under_project();
    draft.plan.intent = None;
    draft.plan.postponed = None;
    draft.plan.landing_warning = warning;
    draft.plan.landed_commit = Some(commit.clone());
    draft.plan.phase_completed_at = Some(context.now);
    draft.plan.stage = Stage::Apply(Progress::Reached(Settled::Applied { commit: commit.clone() }));
    Ok(draft.event(Event::Applied { commit }).done())
}

/// `apply/processing` → `apply/constrained`; no branch was moved.
pub(super) fn constrain(
    snapshot: &StoredPlan,
    run: &RunId,
    reasons: Vec<String>,
    context: &Context,
) -> Result<Decided, Refusal> {
    same_run(snapshot, run)?;
    if snapshot.plan.stage.state() == State::Constrained {
        return Ok(Decided::Already);
    }
    processing(snapshot, "constrain")?;
    if snapshot.plan.intent.is_some() {
        return Err(Refusal::IntentOpen);
    }
    let mut draft = TransitionBuilder::after(snapshot, context);
    draft.plan.postponed = None;
    draft.plan.stage = Stage::Apply(Progress::Reached(Settled::Constrained { reasons: reasons.clone() }));
    Ok(draft.event(Event::Constrained(reasons)).done())
}

fn processing(snapshot: &StoredPlan, command: &'static str) -> Result<(), Refusal> {
    match &snapshot.plan.stage {
        Stage::Apply(Progress::Processing) => Ok(()),
        Stage::Strategize(_) | Stage::Execute(_) | Stage::Apply(_) => Err(wrong_stage(snapshot, command)),
    }
}
