//! A branch and its remote that went apart: the failure, its question and the state that asks are one transition, and
//! so is the answer with its effect (S4.5, S4.9).

use super::begin::undecided;
use super::fan::wind_up;
use super::finish::{asks, errored, waiting};
use super::route::wrong_stage;
use crate::outcome::{Decided, Draft};
use crate::stage::Common;
use crate::{
    Context, DecisionKind, Divergence, Event, OnDivergence, Phase, Refusal, Snapshot, State, TakeUp,
};

/// Any stage that is not terminal → `*/errored` or `*/waiting`, as the policy says.
pub(super) fn diverge(
    snapshot: &Snapshot,
    divergence: &Divergence,
    context: &Context,
) -> Result<Decided, Refusal> {
    if snapshot.plan.stage.is_terminal() {
        return Err(wrong_stage(snapshot, "diverge"));
    }
    // What a landing came to is found out first; only then is the branch of any interest.
    if snapshot.plan.intent.is_some() {
        return Err(Refusal::IntentOpen);
    }
    // Every recovery has its own pin, so an equal question is the same divergence reported again.
    let question = divergence.question(&snapshot.plan);
    if asks(snapshot, &question) {
        return Ok(Decided::Already);
    }
    let mut draft = Draft::after(snapshot, context)
        .withdraw(snapshot.pending.as_ref(), "the branch diverged, which asks another question")
        .event(Event::Synced(divergence.outcome().clone()));
    draft.plan.phase_completed_at = None;
    draft.plan.take_up = None;
    Ok(match divergence.policy() {
        OnDivergence::Recover => errored(draft, divergence.failure(), Some(question), context).done(),
        OnDivergence::Pause => waiting(draft, question, context).done(),
    })
}

/// `*/waiting` for a divergence that is gone → `*/queued`; its question is withdrawn. What was set aside by a reset
/// is another matter: only a person can say that they know of it.
pub(super) fn reconcile(snapshot: &Snapshot, context: &Context) -> Result<Decided, Refusal> {
    match snapshot.plan.stage.state() {
        State::Waiting => {}
        State::Queued => return Ok(Decided::Already),
        State::Errored => return Err(undecided(snapshot, "reconcile")),
        State::Processing | State::Complete | State::Cancelled | State::Applied | State::Constrained => {
            return Err(wrong_stage(snapshot, "reconcile"));
        }
    }
    match snapshot.pending.as_ref().map(|pending| pending.question.kind) {
        Some(DecisionKind::Divergence) => {}
        Some(
            DecisionKind::Gate
            | DecisionKind::Agent
            | DecisionKind::ApplyOutcome
            | DecisionKind::Validation
            | DecisionKind::Review
            | DecisionKind::RateLimit
            | DecisionKind::Conflict
            | DecisionKind::Subplans
            | DecisionKind::Budget,
        )
        | None => {
            return Err(undecided(snapshot, "reconcile"));
        }
    }
    let draft = Draft::after(snapshot, context)
        .withdraw(snapshot.pending.as_ref(), "branch and remote are together again");
    Ok(draft.stage(Common::Queued).event(Event::Resumed).done())
}

/// Execute, and an Apply that did not land → `execute/queued`, to go on from an earlier state of the work. A question
/// is answered by that, except one about commits that left the branch.
pub(super) fn roll_back(snapshot: &Snapshot, commit: String, context: &Context) -> Result<Decided, Refusal> {
    let plan = &snapshot.plan;
    match (plan.stage.phase(), plan.stage.state()) {
        (Phase::Execute, State::Queued)
            if plan.work_from.as_ref() == Some(&commit) && plan.gate.is_none() =>
        {
            return Ok(Decided::Already);
        }
        (Phase::Execute, State::Queued | State::Waiting | State::Complete | State::Errored)
        | (Phase::Apply, State::Queued | State::Waiting | State::Errored | State::Constrained) => {}
        (Phase::Strategize | Phase::Execute | Phase::Apply, _) => {
            return Err(wrong_stage(snapshot, "roll back"));
        }
    }
    let handed_over = plan.stage.phase() == Phase::Apply || plan.stage.state() == State::Complete;
    if plan.place.is_some() && handed_over {
        return Err(wrong_stage(snapshot, "roll back"));
    }
    if plan.intent.is_some() {
        return Err(Refusal::IntentOpen);
    }
    if snapshot.pending.as_ref().is_some_and(|open| open.question.kind == DecisionKind::Divergence) {
        return Err(undecided(snapshot, "roll back"));
    }
    let mut draft =
        Draft::after(snapshot, context).withdraw(snapshot.pending.as_ref(), "the plan was rolled back");
    // What Execute completed was sent to the remote; it is replaced, and not joined again.
    draft.plan.replaces = plan.head_commit.clone().or_else(|| plan.replaces.clone());
    draft.plan.head_commit = None;
    draft.plan.head_run = None;
    draft.plan.take_up(commit.clone(), TakeUp::RollBack);
    let mut draft = wind_up(draft, "the plan above it was rolled back");
    // What the pieces came to is no longer what the work begins with.
    draft.plan.fanout = None;
    Ok(draft.enter(Phase::Execute.queued()).event(Event::RolledBack { commit }).done())
}

/// Starts the phase anew on a commit, as a person answered. In Apply only what Execute judged can land: another
/// commit goes through Execute first.
pub(super) fn start_from(
    snapshot: &Snapshot,
    mut draft: Draft<'_>,
    (commit, why): (String, TakeUp),
    replaces: Option<String>,
) -> Decided {
    let judged = snapshot.plan.head_commit.as_ref() == Some(&commit);
    let event = match snapshot.plan.stage.failure() {
        Some(_) => Event::Retried,
        None => Event::Resumed,
    };
    draft.plan.take_up(commit, why);
    draft.plan.replaces = replaces;
    let draft = match snapshot.plan.stage.phase() {
        Phase::Apply if !judged => {
            draft.plan.head_commit = None;
            draft.plan.head_run = None;
            draft.enter(Phase::Execute.queued())
        }
        Phase::Strategize | Phase::Execute | Phase::Apply => draft.stage(Common::Queued),
    };
    draft.event(event).done()
}
