//! Divergence of a branch and its remote. The failure, its question and the new state are one transition, and
//! so are the answer and its effect (S4.5, S4.9).

use super::begin::undecided;
use super::fan::cancel_all;
use super::finish::{errored, waiting};
use super::route::wrong_stage;
use crate::outcome::{Decided, TransitionBuilder};
use crate::stage::Common;
use crate::{
    Authority, CommitLine, Context, Decision, DecisionKind, Divergence, Event, OnDivergence, Phase, Refusal,
    RestartReason, State, StoredPlan, SyncOutcome,
};

/// Any stage that is not terminal → `*/errored` or `*/waiting`, depending on the policy. If another decision
/// is open, it stays open, and the divergence is asked about afterwards (N5). A gate is about a phase that
/// the divergence fails. So if a person's sync finds the divergence, the gate is withdrawn in the same
/// transition (S4.5).
pub(super) fn diverge(
    snapshot: &StoredPlan,
    divergence: &Divergence,
    context: &Context,
) -> Result<Decided, Refusal> {
    if snapshot.plan.stage.is_terminal() {
        return Err(wrong_stage(snapshot, "diverge"));
    }
    // The end of the landing must be known first; until then the branch does not matter.
    if snapshot.plan.intent.is_some() {
        return Err(Refusal::IntentOpen);
    }
    // Every recovery has its own backup, so the same backup means that the same divergence is reported again.
    if asked_about(snapshot, divergence) {
        return Ok(Decided::Already);
    }
    let outcome = divergence.outcome().clone();
    let draft = TransitionBuilder::after(snapshot, context).event(Event::Synced(outcome.clone()));
    let Some(open) = snapshot.plan.pending_decision() else {
        return Ok(ask_about(draft, divergence, context).done());
    };
    if context.authority == Authority::Person && snapshot.plan.gate.as_ref() == Some(open) {
        let reason = "the branch diverged; another question replaces this one";
        let draft = draft.withdraw(snapshot.pending.as_ref(), reason);
        return Ok(ask_about(draft, divergence, context).done());
    }
    let text = format!("the branch diverged; the question about it follows the answer to decision {open}");
    let mut draft = draft.event(Event::Alert { priority: "high", text });
    // Of the queued divergences that moved nothing, only the latest is kept.
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

/// Returns true if this divergence is already asked about or queued.
fn asked_about(snapshot: &StoredPlan, divergence: &Divergence) -> bool {
    let details = divergence.details();
    let same = |open: &Decision| {
        ["outcome", "backup_ref", "backup_commit"]
            .iter()
            .all(|key| open.question.details[*key] == details[*key])
    };
    snapshot.pending.as_ref().is_some_and(|open| open.question.kind == DecisionKind::Divergence && same(open))
        || snapshot.plan.queued_divergences.contains(divergence.outcome())
}

/// Asks about a divergence, and stops the plan as its policy requires.
pub(crate) fn ask_about<'a>(
    mut draft: TransitionBuilder<'a>,
    divergence: &Divergence,
    context: &Context,
) -> TransitionBuilder<'a> {
    let question = divergence.question();
    draft.plan.phase_completed_at = None;
    draft.plan.take_up = None;
    match divergence.policy() {
        OnDivergence::Recover => errored(draft, divergence.failure(), Some(question), context),
        OnDivergence::Pause => waiting(draft, question, context),
    }
}

/// `*/waiting` for a divergence that no longer exists: its decision stays open, gets that fact added, and a
/// person closes it (N5).
pub(super) fn reconcile(
    snapshot: &StoredPlan,
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
    Ok(TransitionBuilder::after(snapshot, context).amend(open, question).done())
}

/// Checks whether the branch may be synced now. Records nothing.
pub(super) fn sync(snapshot: &StoredPlan) -> Result<Decided, Refusal> {
    match snapshot.plan.stage.state() {
        State::Queued | State::Waiting | State::Complete | State::Errored | State::Constrained => {
            Ok(Decided::Already)
        }
        State::Processing | State::Applied | State::Cancelled => Err(wrong_stage(snapshot, "sync")),
    }
}

/// `execute/complete` and `apply/queued` → `execute/queued`: a sync added commits that were not validated and
/// reviewed. The next run has no writer. The approval was for another head, so the gate is asked again after
/// that run.
pub(super) fn reexamine(
    snapshot: &StoredPlan,
    tip: String,
    commits: Vec<CommitLine>,
    context: &Context,
) -> Result<Decided, Refusal> {
    let plan = &snapshot.plan;
    match (plan.stage.phase(), plan.stage.state()) {
        (Phase::Execute, State::Queued) if plan.reexamines && plan.work_from.as_ref() == Some(&tip) => {
            return Ok(Decided::Already);
        }
        // The result of a subplan belongs to its parent.
        (Phase::Execute, State::Complete) | (Phase::Apply, State::Queued) if plan.place.is_none() => {}
        (Phase::Strategize | Phase::Execute | Phase::Apply, _) => {
            return Err(wrong_stage(snapshot, "reexamine"));
        }
    }
    if plan.intent.is_some() {
        return Err(Refusal::IntentOpen);
    }
    // Only a person's authority closes an open decision.
    if plan.pending_decision().is_some() && context.authority != Authority::Person {
        return Err(undecided(snapshot, "reexamine"));
    }
    let mut draft = TransitionBuilder::after(snapshot, context).withdraw(
        snapshot.pending.as_ref(),
        "the branch was changed by others; its new content is validated and reviewed first",
    );
    let from = draft.plan.head_commit.take();
    draft.plan.head_run = None;
    draft.plan.take_up = None;
    draft.plan.work_from = Some(tip.clone());
    draft.plan.reexamines = true;
    let event = Event::Reexamined { from, to: tip, commits };
    Ok(draft.enter(Phase::Execute.queued()).event(event).done())
}

/// Execute, and an Apply that did not land → `execute/queued`, to continue from an earlier state of the work.
/// This withdraws an open decision, except one about a divergence.
pub(super) fn roll_back(
    snapshot: &StoredPlan,
    commit: String,
    context: &Context,
) -> Result<Decided, Refusal> {
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
    let mut draft = TransitionBuilder::after(snapshot, context)
        .withdraw(snapshot.pending.as_ref(), "the plan was rolled back");
    // The result of Execute was pushed to the remote. The branch replaces it there instead of being merged
    // with it again.
    draft.plan.replaces = plan.head_commit.clone().or_else(|| plan.replaces.clone());
    draft.plan.head_commit = None;
    draft.plan.head_run = None;
    draft.plan.reexamines = false;
    draft.plan.restart_from(commit.clone(), RestartReason::RollBack);
    let mut draft = cancel_all(draft, "its parent plan was rolled back");
    // The work no longer starts from the results of the subplans.
    draft.plan.fanout = None;
    Ok(draft.enter(Phase::Execute.queued()).event(Event::RolledBack { commit }).done())
}

/// Starts the phase again on a commit without a writer: validations and reviewers check it unchanged.
pub(super) fn start_judging(
    snapshot: &StoredPlan,
    mut draft: TransitionBuilder<'_>,
    (commit, why): (String, RestartReason),
    replaces: Option<String>,
) -> Decided {
    let event = match snapshot.plan.stage.failure() {
        Some(_) => Event::Retried,
        None => Event::Resumed,
    };
    draft.plan.restart_from(commit, why);
    draft.plan.replaces = replaces;
    draft.plan.reexamines = true;
    draft.stage(Common::Queued).event(event).done()
}

/// Starts the phase again from a commit that a person chose. A run without a writer is followed by another
/// such run, unless the caller changes that. In Apply, only a commit that Execute validated and reviewed can
/// land; another commit goes through Execute first.
pub(super) fn start_from(
    snapshot: &StoredPlan,
    mut draft: TransitionBuilder<'_>,
    (commit, why): (String, RestartReason),
    replaces: Option<String>,
) -> Decided {
    let judged = snapshot.plan.head_commit.as_ref() == Some(&commit);
    let event = match snapshot.plan.stage.failure() {
        Some(_) => Event::Retried,
        None => Event::Resumed,
    };
    // The answer determines where the next run starts.
    draft.plan.clear_interruption();
    draft.plan.restart_from(commit, why);
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
