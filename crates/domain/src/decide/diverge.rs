//! A branch and its remote that went apart: the failure, its question and the state that asks are one transition, and
//! so is the answer with its effect (S4.5, S4.9).

use super::begin::undecided;
use super::fan::wind_up;
use super::finish::{errored, waiting};
use super::route::wrong_stage;
use crate::outcome::{Decided, Draft};
use crate::stage::Common;
use crate::{
    Authority, CommitLine, Context, Decision, DecisionKind, Divergence, Event, OnDivergence, Phase, Refusal,
    Snapshot, State, SyncOutcome, TakeUp,
};

/// Any stage that is not terminal → `*/errored` or `*/waiting`, as the policy says. While another question is open that
/// one stays, and the divergence is asked about after it (N5). A gate asks about a phase that the divergence fails, so a
/// person whose sync finds the divergence withdraws the gate with it (S4.5).
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
    // Every recovery has its own pin, so the same pin is the same divergence reported again.
    if asked_about(snapshot, divergence) {
        return Ok(Decided::Already);
    }
    let outcome = divergence.outcome().clone();
    let draft = Draft::after(snapshot, context).event(Event::Synced(outcome.clone()));
    let Some(open) = snapshot.plan.pending_decision() else {
        return Ok(ask_about(draft, divergence, context).done());
    };
    if context.authority == Authority::Person && snapshot.plan.gate.as_ref() == Some(open) {
        let reason = "the branch diverged, which asks another question";
        let draft = draft.withdraw(snapshot.pending.as_ref(), reason);
        return Ok(ask_about(draft, divergence, context).done());
    }
    let text = format!("the branch diverged; that is asked about once decision {open} is answered");
    let mut draft = draft.event(Event::Alert { priority: "high", text });
    // Of those that moved nothing the latest is enough.
    if divergence.policy() == OnDivergence::Pause {
        draft = draft.forget_unreconciled();
    }
    draft.plan.queued_divergences.push(outcome);
    let open = snapshot.pending.as_ref().filter(|open| open.question.kind == DecisionKind::Divergence);
    Ok(match open {
        Some(open) => {
            let question = open.question.clone().learning(&divergence.outcome().summary());
            draft.amend(open, question).done()
        }
        None => draft.done(),
    })
}

/// Says whether this very divergence is asked about, or will be.
fn asked_about(snapshot: &Snapshot, divergence: &Divergence) -> bool {
    let details = divergence.details();
    let same = |open: &Decision| {
        ["outcome", "backup_ref", "backup_commit"]
            .iter()
            .all(|key| open.question.details[*key] == details[*key])
    };
    snapshot.pending.as_ref().is_some_and(|open| open.question.kind == DecisionKind::Divergence && same(open))
        || snapshot.plan.queued_divergences.contains(divergence.outcome())
}

/// Asks about a divergence, and stops the plan for it as the policy says.
pub(crate) fn ask_about<'a>(mut draft: Draft<'a>, divergence: &Divergence, context: &Context) -> Draft<'a> {
    let question = divergence.question(&draft.plan);
    draft.plan.phase_completed_at = None;
    draft.plan.take_up = None;
    match divergence.policy() {
        OnDivergence::Recover => errored(draft, divergence.failure(), Some(question), context),
        OnDivergence::Pause => waiting(draft, question, context),
    }
}

/// `*/waiting` for a divergence that is gone: its question stays open with that fact, and a person closes it (N5).
pub(super) fn reconcile(
    snapshot: &Snapshot,
    outcome: &SyncOutcome,
    context: &Context,
) -> Result<Decided, Refusal> {
    match snapshot.plan.stage.state() {
        State::Waiting => {}
        State::Queued => return Ok(Decided::Already),
        State::Errored => return Err(undecided(snapshot, "reconcile")),
        State::Processing | State::Complete | State::Cancelled | State::Applied | State::Constrained => {
            return Err(wrong_stage(snapshot, "reconcile"));
        }
    }
    let asked = snapshot.pending.as_ref().filter(|open| open.question.kind == DecisionKind::Divergence);
    let Some(open) = asked else { return Err(undecided(snapshot, "reconcile")) };
    let question = open.question.clone().together(&outcome.summary());
    if question == open.question {
        return Ok(Decided::Already);
    }
    Ok(Draft::after(snapshot, context).amend(open, question).done())
}

/// Says whether the branch may be brought together with its remote now; nothing is recorded by that.
pub(super) fn sync(snapshot: &Snapshot) -> Result<Decided, Refusal> {
    match snapshot.plan.stage.state() {
        State::Queued | State::Waiting | State::Complete | State::Errored | State::Constrained => {
            Ok(Decided::Already)
        }
        State::Processing | State::Applied | State::Cancelled => Err(wrong_stage(snapshot, "sync")),
    }
}

/// `execute/complete` and `apply/queued` → `execute/queued`: a sync took in commits that were not judged. The next run has
/// no writer. The approval was of another head, so the gate is asked again after that run.
pub(super) fn reexamine(
    snapshot: &Snapshot,
    tip: String,
    commits: Vec<CommitLine>,
    context: &Context,
) -> Result<Decided, Refusal> {
    let plan = &snapshot.plan;
    match (plan.stage.phase(), plan.stage.state()) {
        (Phase::Execute, State::Queued) if plan.reexamines && plan.work_from.as_ref() == Some(&tip) => {
            return Ok(Decided::Already);
        }
        // The result of a subplan is its parent's.
        (Phase::Execute, State::Complete) | (Phase::Apply, State::Queued) if plan.place.is_none() => {}
        (Phase::Strategize | Phase::Execute | Phase::Apply, _) => {
            return Err(wrong_stage(snapshot, "reexamine"));
        }
    }
    if plan.intent.is_some() {
        return Err(Refusal::IntentOpen);
    }
    // Only a person closes a question that a person was asked.
    if plan.pending_decision().is_some() && context.authority != Authority::Person {
        return Err(undecided(snapshot, "reexamine"));
    }
    let mut draft = Draft::after(snapshot, context).withdraw(
        snapshot.pending.as_ref(),
        "others changed the branch, so it is judged and asked about again",
    );
    let from = draft.plan.head_commit.take();
    draft.plan.head_run = None;
    draft.plan.take_up = None;
    draft.plan.work_from = Some(tip.clone());
    draft.plan.reexamines = true;
    let event = Event::Reexamined { from, to: tip, commits };
    Ok(draft.enter(Phase::Execute.queued()).event(event).done())
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
    draft.plan.reexamines = false;
    draft.plan.take_up(commit.clone(), TakeUp::RollBack);
    let mut draft = wind_up(draft, "the plan above it was rolled back");
    // What the pieces came to is no longer what the work begins with.
    draft.plan.fanout = None;
    Ok(draft.enter(Phase::Execute.queued()).event(Event::RolledBack { commit }).done())
}

/// Starts the phase again on a commit without a writer: validations and reviewers judge it as it is.
pub(super) fn start_judging(
    snapshot: &Snapshot,
    mut draft: Draft<'_>,
    (commit, why): (String, TakeUp),
    replaces: Option<String>,
) -> Decided {
    let event = match snapshot.plan.stage.failure() {
        Some(_) => Event::Retried,
        None => Event::Resumed,
    };
    draft.plan.take_up(commit, why);
    draft.plan.replaces = replaces;
    draft.plan.reexamines = true;
    draft.stage(Common::Queued).event(event).done()
}

/// Starts the phase anew on a commit, as a person answered. A run without a writer is followed by another such run, unless
/// the caller says otherwise. In Apply only what Execute judged can land: another
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
    // The answer says where the next run starts.
    draft.plan.interruption = None;
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
