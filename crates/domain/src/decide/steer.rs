//! Commands that people send to a plan: answer, retry, revert, cancel, prompt.

use super::begin::undecided;
use super::diverge::{start_from, start_judging};
use super::fan::{about_subplans, cancel_all, drop_lost, fanned_out, retry_lost, settle_conflict};
use super::kept;
use super::postpone::end_postponement;
use super::route::wrong_stage;
use crate::outcome::{Decided, TransitionBuilder};
use crate::stage::Common;
use crate::{
    Answer, Authority, Context, Decision, DecisionKind, Event, Grant, OptionEffect, Phase, Question, Refusal,
    RestartReason, State, StoredPlan,
};

/// Maximum number of times that a plan may go back to Strategize.
pub const REVERSIONS_MAX: u32 = 3;

/// Answers the open decision. Approving a gate is a separate command, which carries the facts needed to
/// continue.
pub(super) fn resolve(snapshot: &StoredPlan, answer: Answer, context: &Context) -> Result<Decided, Refusal> {
    let Some(decision) = snapshot.pending.as_ref().filter(|pending| pending.id == answer.decision) else {
        return Err(Refusal::DecisionClosed(answer.decision));
    };
    let Some(option) = decision.question.options.iter().find(|option| option.id == answer.option) else {
        return Err(Refusal::UnknownOption {
            decision: answer.decision,
            option: answer.option,
            offered: decision.question.options.iter().map(|option| option.id.clone()).collect(),
        });
    };
    let says_nothing = answer.note.as_ref().is_none_or(|note| note.trim().is_empty());
    if says_nothing && decision.question.needs_note(&option.id) {
        return Err(Refusal::EmptyAnswer(answer.decision));
    }
    let draft =
        TransitionBuilder::after(snapshot, context).resolve(decision, &answer.option, answer.note.clone());
    let draft = settled(draft, decision.question.kind);
    about_subplans(snapshot, &option.effect)?;
    match &option.effect {
        OptionEffect::Approve => Err(wrong_stage(snapshot, "approve")),
        OptionEffect::Requeue => Ok(requeue(snapshot, draft, decision, &answer)),
        OptionEffect::WaitUntil(postponed) => {
            let mut draft = draft;
            draft.plan.postponed = Some(postponed.clone());
            Ok(requeue(snapshot, draft, decision, &answer))
        }
        OptionEffect::SetBudget { budget, work } => {
            let mut draft = draft;
            draft.plan.budget = *budget;
            // The answer is about the budget only, so a finished result is still judged first.
            if let Some(work) = work {
                draft.plan.restart_from(work.clone(), RestartReason::Budget);
            }
            Ok(draft.stage(Common::Queued).event(Event::Resumed).done())
        }
        OptionEffect::Grant { terms, work, replaces } => {
            let mut draft = draft;
            let (terms, by, at) = (terms.clone(), context.by.clone(), context.now);
            draft.plan.grants.push(Grant { terms, by, at, run: None });
            match work {
                None => Ok(requeue(snapshot, draft, decision, &answer)),
                Some(work) => Ok(resumed(snapshot, draft, (decision, &answer), work, replaces.as_ref())),
            }
        }
        OptionEffect::StartFrom { commit, replaces } => {
            Ok(resumed(snapshot, draft, (decision, &answer), commit, replaces.as_ref()))
        }
        OptionEffect::Review { commit, replaces } => {
            let start = (commit.clone(), RestartReason::Review);
            Ok(start_judging(snapshot, draft, start, replaces.clone()))
        }
        OptionEffect::Join(how) => {
            let draft = draft.stage(Common::Queued).event(Event::Resumed);
            Ok(settle_conflict(draft, how).done())
        }
        OptionEffect::RetryLost => Ok(retry_lost(draft.stage(Common::Queued).event(Event::Retried)).done()),
        OptionEffect::DropLost => {
            let draft = draft.stage(Common::Queued).event(Event::Resumed);
            Ok(drop_lost(draft, context).done())
        }
        OptionEffect::Revert => reverted(snapshot, draft, answer_text(decision, &answer)),
        OptionEffect::Cancel => cancelled(snapshot, draft, cancel_reason(decision, &answer)),
    }
}

/// Closes the subject of the question, for kinds where every answer does so.
fn settled(draft: TransitionBuilder<'_>, kind: DecisionKind) -> TransitionBuilder<'_> {
    match kind {
        // The repository does not show how the landing ended, so the person's answer ends it.
        DecisionKind::ApplyOutcome => draft.drop_intent(),
        // A later divergence that moved nothing is settled too; if it still exists, the sync before the next
        // run finds it again.
        DecisionKind::Divergence => draft.forget_unreconciled(),
        DecisionKind::Gate
        | DecisionKind::Agent
        | DecisionKind::Permission
        | DecisionKind::Validation
        | DecisionKind::Review
        | DecisionKind::RateLimit
        | DecisionKind::Conflict
        | DecisionKind::Subplans
        | DecisionKind::Budget => draft,
    }
}

/// Queues the phase from a commit, with the answer as feedback.
fn resumed(
    snapshot: &StoredPlan,
    mut draft: TransitionBuilder<'_>,
    (decision, answer): (&Decision, &Answer),
    commit: &str,
    replaces: Option<&String>,
) -> Decided {
    draft.plan.feedback.push(answer_text(decision, answer));
    let (why, needs_writer) = match decision.question.kind {
        DecisionKind::Divergence => (RestartReason::Answer, true),
        DecisionKind::Validation | DecisionKind::Review => (RestartReason::Work, true),
        // The only commit that a gate offers is the one to start over from.
        DecisionKind::Gate => (RestartReason::StartOver, true),
        DecisionKind::Agent
        | DecisionKind::Permission
        | DecisionKind::ApplyOutcome
        | DecisionKind::Conflict
        | DecisionKind::Subplans
        | DecisionKind::RateLimit
        | DecisionKind::Budget => (RestartReason::Work, false),
    };
    draft.plan.reexamines &= !needs_writer;
    start_from(snapshot, draft, (commit.to_owned(), why), replaces.cloned())
}

fn requeue(
    snapshot: &StoredPlan,
    mut draft: TransitionBuilder<'_>,
    decision: &Decision,
    answer: &Answer,
) -> Decided {
    draft.plan.feedback.push(answer_text(decision, answer));
    if answer.note.is_some() {
        draft.plan.guide_next_run();
    }
    draft.plan.phase_completed_at = None;
    let event = match snapshot.plan.stage.failure() {
        Some(_) => Event::Retried,
        None => Event::Resumed,
    };
    draft.stage(Common::Queued).event(event).done()
}

/// Returns the answer as text for the agent: for the agent's own question, the label that the person chose.
/// No decision depends on this text.
fn answer_text(decision: &Decision, answer: &Answer) -> String {
    let Question { kind, text, options, .. } = &decision.question;
    let label = options.iter().find(|option| option.id == answer.option).map(|option| option.label.as_str());
    let chosen = match (kind, label) {
        (DecisionKind::Agent, _) if decision.question.needs_note(&answer.option) => None,
        (DecisionKind::Agent, Some(label)) if !label.trim().is_empty() => Some(label),
        (_, _) => Some(answer.option.as_str()),
    };
    match (chosen, &answer.note) {
        (Some(chosen), Some(note)) => format!("{text} — {chosen}: {note}"),
        (Some(chosen), None) => format!("{text} — {chosen}"),
        (None, note) => format!("{text} — {}", note.as_deref().unwrap_or_default()),
    }
}

/// Returns the reason for cancelling by an answer. The question itself is stored with its decision.
fn cancel_reason(decision: &Decision, answer: &Answer) -> String {
    let answered = format!("{} question answered with {}", decision.question.kind.name(), answer.option);
    match &answer.note {
        Some(note) => format!("{answered}: {note}"),
        None => answered,
    }
}

/// `*/errored` and `apply/constrained` → the same phase, queued. Ends the postponement of a postponed phase.
pub(super) fn retry(snapshot: &StoredPlan, context: &Context) -> Result<Decided, Refusal> {
    if let Some(hurried) = end_postponement(snapshot, context) {
        return Ok(hurried);
    }
    match snapshot.plan.stage.state() {
        State::Errored | State::Constrained => {}
        // Queued after a start: the retry, or another command that queues a failed phase, has already taken
        // effect.
        State::Queued if snapshot.plan.phase_started_at.is_some() => return Ok(Decided::Already),
        State::Waiting => return Err(undecided(snapshot, "retry")),
        State::Queued | State::Processing | State::Complete | State::Cancelled | State::Applied => {
            return Err(wrong_stage(snapshot, "retry"));
        }
    }
    let mut draft = TransitionBuilder::after(snapshot, context);
    if let Some(work) = kept::work(&snapshot.plan) {
        draft.plan.restart_from(work.to_owned(), RestartReason::Retry);
    }
    let draft = match (snapshot.plan.pending_decision(), &snapshot.pending) {
        (None, _) => draft,
        // A retry also answers the question about a result that was sent back too often.
        (Some(_), Some(open)) if open.question.kind == DecisionKind::Validation => {
            draft.withdraw(Some(open), "the phase is retried")
        }
        (Some(_), Some(open))
            if open.question.kind == DecisionKind::Subplans
                && open.question.options.iter().any(|option| option.effect == OptionEffect::RetryLost) =>
        {
            fanned_out(snapshot, "retry the subplans of")?;
            retry_lost(draft.withdraw(Some(open), "the failed subplans are retried"))
        }
        (Some(decision), _) => {
            return Err(Refusal::Undecided { command: "retry", decision: decision.clone() });
        }
    };
    Ok(draft.stage(Common::Queued).event(Event::Retried).done())
}

/// `execute/*`, `apply/constrained`, `apply/errored` → `strategize/queued`, at most [`REVERSIONS_MAX`] times.
pub(super) fn revert(snapshot: &StoredPlan, reason: String, context: &Context) -> Result<Decided, Refusal> {
    let draft = TransitionBuilder::after(snapshot, context)
        .withdraw(snapshot.pending.as_ref(), "the plan went back to strategize");
    reverted(snapshot, draft, reason)
}

fn reverted(
    snapshot: &StoredPlan,
    mut draft: TransitionBuilder<'_>,
    reason: String,
) -> Result<Decided, Refusal> {
    let plan = &snapshot.plan;
    match (plan.stage.phase(), plan.stage.state()) {
        (Phase::Execute, State::Cancelled) => return Err(wrong_stage(snapshot, "revert")),
        // The result belongs to the parent: siblings may have started from it, or it is about to land.
        (Phase::Execute, State::Complete) | (Phase::Apply, _) if plan.place.is_some() => {
            return Err(wrong_stage(snapshot, "revert"));
        }
        (Phase::Execute, _) | (Phase::Apply, State::Constrained | State::Errored) => {}
        (Phase::Strategize, State::Queued) if plan.reversions > 0 => return Ok(Decided::Already),
        (Phase::Strategize | Phase::Apply, _) => return Err(wrong_stage(snapshot, "revert")),
    }
    if draft.plan.intent.is_some() {
        return Err(Refusal::IntentOpen);
    }
    if plan.reversions >= REVERSIONS_MAX {
        return Err(Refusal::TooManyReversions { max: REVERSIONS_MAX });
    }
    draft.plan.reversions += 1;
    draft.plan.head_commit = None;
    draft.plan.head_run = None;
    draft.plan.work_from = None;
    draft.plan.take_up = None;
    draft.plan.reexamines = false;
    draft.plan.choices = Vec::new();
    let mut draft = cancel_all(draft, "the plan went back to strategize");
    draft.plan.fanout = None;
    draft.plan.feedback.push(reason.clone());
    let count = draft.plan.reversions;
    Ok(draft.enter(Phase::Strategize.queued()).event(Event::Reverted { reason, count }).done())
}

/// Any stage that is not terminal → cancelled.
pub(super) fn cancel(snapshot: &StoredPlan, reason: String, context: &Context) -> Result<Decided, Refusal> {
    let draft = TransitionBuilder::after(snapshot, context)
        .withdraw(snapshot.pending.as_ref(), "the plan was cancelled");
    cancelled(snapshot, draft, reason)
}

/// Like [`cancel`], for a subplan that is no longer needed, with the authority that ended its parent.
pub(super) fn cancel_below(
    snapshot: &StoredPlan,
    reason: String,
    ended_by: Authority,
    context: &Context,
) -> Result<Decided, Refusal> {
    let draft = TransitionBuilder::after(snapshot, context)
        .ended_by(ended_by)
        .withdraw(snapshot.pending.as_ref(), "its parent plan ended");
    cancelled(snapshot, draft, reason)
}

fn cancelled(
    snapshot: &StoredPlan,
    mut draft: TransitionBuilder<'_>,
    reason: String,
) -> Result<Decided, Refusal> {
    match snapshot.plan.stage.state() {
        State::Cancelled => return Ok(Decided::Already),
        State::Applied => return Err(wrong_stage(snapshot, "cancel")),
        State::Queued
        | State::Processing
        | State::Waiting
        | State::Complete
        | State::Errored
        | State::Constrained => {}
    }
    if draft.plan.intent.is_some() {
        return Err(Refusal::IntentOpen);
    }
    draft.plan.take_up = None;
    let draft = cancel_all(draft, "its parent plan was cancelled");
    Ok(draft.stage(Common::Cancelled { reason: reason.clone() }).event(Event::Cancelled(reason)).done())
}

/// Adds guidance for later runs; the stage stays the same.
pub(super) fn prompt(snapshot: &StoredPlan, text: String, context: &Context) -> Result<Decided, Refusal> {
    if snapshot.plan.stage.is_terminal() {
        return Err(wrong_stage(snapshot, "prompt"));
    }
    let mut draft = TransitionBuilder::after(snapshot, context);
    draft.plan.feedback.push(text.clone());
    // The process that takes a run over determines whether the run had a finished result and was guided after it.
    if draft.plan.stage.state() != State::Processing {
        draft.plan.guide_next_run();
    }
    Ok(draft.event(Event::Prompted(text)).done())
}
