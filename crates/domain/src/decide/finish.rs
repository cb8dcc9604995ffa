//! Ends of a run: it completes, fails, asks a question, or is taken over from a holder that is gone.

use super::begin::undecided;
use super::route::{same_run, wrong_stage};
use crate::outcome::{Decided, TransitionBuilder};
use crate::stage::Common;
use crate::{
    Complete, Completion, Context, DecisionKind, Event, Failure, INTERRUPTIONS_MAX, InterruptedRun, Phase,
    Progress, Question, Refusal, Remains, RestartReason, ReviewOpinion, ReviewResult, ReviewerSpec, RunId,
    Stage, State, StoredPlan, TakeOverCause, Turn, Validation, ValidationResult,
};

/// `strategize/processing` and `execute/processing` → `*/complete`, with a gate if the profile requires one.
pub(super) fn complete(
    snapshot: &StoredPlan,
    run: &RunId,
    completion: Completion,
    context: &Context,
) -> Result<Decided, Refusal> {
    same_run(snapshot, run)?;
    let mut draft = TransitionBuilder::after(snapshot, context);
    let (phase, next) = match (&snapshot.plan.stage, completion) {
        (Stage::Strategize(Progress::Processing), Completion::Strategized { choices, fanout }) => {
            draft.plan.choices = choices;
            draft.plan.fanout = fanout;
            draft.plan.stage = Stage::Strategize(Progress::Reached(Complete));
            (Phase::Strategize, Phase::Execute)
        }
        (Stage::Execute(Progress::Processing), Completion::Executed { head, validations, reviews }) => {
            let failed = unvalidated(&snapshot.plan.spec.validations, validations);
            if !failed.is_empty() {
                return Err(Refusal::Unvalidated(failed));
            }
            let missing = unreviewed(&snapshot.plan.spec.agents.reviewers, &head, &reviews);
            if !missing.is_empty() {
                return Err(Refusal::Unreviewed(missing));
            }
            draft.plan.head_commit = Some(head);
            draft.plan.head_run = Some(run.clone());
            draft.plan.reexamines = false;
            draft.plan.stage = Stage::Execute(Progress::Reached(Complete));
            (Phase::Execute, Phase::Apply)
        }
        (Stage::Strategize(Progress::Reached(Complete)), Completion::Strategized { .. })
        | (Stage::Execute(Progress::Reached(Complete)), Completion::Executed { .. }) => {
            return Ok(Decided::Already);
        }
        (
            Stage::Strategize(_) | Stage::Execute(_) | Stage::Apply(_),
            Completion::Strategized { .. } | Completion::Executed { .. },
        ) => return Err(wrong_stage(snapshot, "complete")),
    };
    Ok(completed(snapshot, draft, phase, next, context).done())
}

/// Records the end of a phase, with a gate if the profile requires one before the next phase.
pub(super) fn completed<'a>(
    snapshot: &StoredPlan,
    mut draft: TransitionBuilder<'a>,
    phase: Phase,
    next: Phase,
    context: &Context,
) -> TransitionBuilder<'a> {
    draft.plan.phase_completed_at = Some(context.now);
    draft.plan.postponed = None;
    draft.plan.clear_interruption();
    let draft = draft.event(Event::Completed(phase));
    let profile = &snapshot.plan.spec.profile;
    if !profile.asks_before(next) {
        return draft;
    }
    let mut draft = draft.open(Question::gate(next, &snapshot.plan.spec));
    draft.plan.gate = Some(context.fresh_decision.clone());
    draft
}

/// Returns the required validations that did not pass, including those that were never run.
fn unvalidated(asked: &[Validation], seen: Vec<ValidationResult>) -> Vec<ValidationResult> {
    let missing: Vec<_> = asked
        .iter()
        .filter(|one| one.required && seen.iter().all(|run| run.name != one.name))
        .map(|one| ValidationResult {
            name: one.name.clone(),
            required: true,
            passed: false,
            text: "it was not run".to_owned(),
        })
        .collect();
    let required =
        |run: &ValidationResult| run.required || asked.iter().any(|one| one.required && one.name == run.name);
    seen.into_iter().filter(|run| !run.passed && required(run)).chain(missing).collect()
}

/// Returns the critical reviewers that have not acknowledged exactly this commit.
fn unreviewed(asked: &[ReviewerSpec], head: &str, said: &[ReviewResult]) -> Vec<String> {
    let acknowledged = |one: &&ReviewerSpec| {
        said.iter().any(|run| {
            run.agent == one.agent && run.commit == head && run.opinion == ReviewOpinion::Acknowledged
        })
    };
    asked.iter().filter(|one| one.critical && !acknowledged(one)).map(|one| one.agent.clone()).collect()
}

/// `*/processing` → `*/errored`, with a decision if only a person can decide how to continue.
pub(super) fn fail(
    snapshot: &StoredPlan,
    run: &RunId,
    failure: Failure,
    question: Option<Question>,
    context: &Context,
) -> Result<Decided, Refusal> {
    same_run(snapshot, run)?;
    match snapshot.plan.stage.state() {
        State::Processing => {}
        State::Errored if question.as_ref().is_none_or(|asked| asks(snapshot, asked)) => {
            return Ok(Decided::Already);
        }
        State::Errored => return Err(undecided(snapshot, "fail")),
        State::Queued
        | State::Waiting
        | State::Complete
        | State::Cancelled
        | State::Applied
        | State::Constrained => return Err(wrong_stage(snapshot, "fail")),
    }
    Ok(errored(TransitionBuilder::after(snapshot, context), failure, question, context).done())
}

pub(super) fn errored<'a>(
    draft: TransitionBuilder<'a>,
    failure: Failure,
    question: Option<Question>,
    context: &Context,
) -> TransitionBuilder<'a> {
    let decision = question.is_some().then(|| context.fresh_decision.clone());
    let mut draft = draft;
    if failure.class.is_a_lesson() {
        draft.plan.feedback.push(format!("The previous run failed: {}", failure.text));
    }
    let draft = draft
        .stage(Common::Errored { failure: failure.clone(), decision: decision.clone() })
        .event(Event::Errored(failure, decision));
    match question {
        Some(question) => needing_work(draft, &question).open(question),
        None => draft,
    }
}

/// `*/processing` → `*/waiting`, with its decision.
pub(super) fn ask(
    snapshot: &StoredPlan,
    run: &RunId,
    question: Question,
    context: &Context,
) -> Result<Decided, Refusal> {
    same_run(snapshot, run)?;
    match snapshot.plan.stage.state() {
        State::Processing => {}
        State::Waiting if asks(snapshot, &question) => return Ok(Decided::Already),
        State::Waiting => return Err(undecided(snapshot, "ask")),
        State::Queued
        | State::Complete
        | State::Errored
        | State::Cancelled
        | State::Applied
        | State::Constrained => return Err(wrong_stage(snapshot, "ask")),
    }
    Ok(waiting(TransitionBuilder::after(snapshot, context), question, context).done())
}

/// Returns true if exactly this question is open. Accepting another one as already asked would lose this one.
pub(super) fn asks(snapshot: &StoredPlan, question: &Question) -> bool {
    snapshot.pending.as_ref().is_some_and(|pending| pending.question == *question)
}

pub(super) fn waiting<'a>(
    draft: TransitionBuilder<'a>,
    question: Question,
    context: &Context,
) -> TransitionBuilder<'a> {
    let decision = context.fresh_decision.clone();
    let draft = needing_work(draft, &question);
    draft.stage(Common::Waiting(decision.clone())).event(Event::Waiting(decision)).open(question)
}

/// Refused work needs a writer, so the run after the answer has one.
fn needing_work<'a>(mut draft: TransitionBuilder<'a>, question: &Question) -> TransitionBuilder<'a> {
    draft.plan.reexamines &= !matches!(question.kind, DecisionKind::Validation | DecisionKind::Review);
    draft
}

/// `*/processing` without a live holder → `*/queued`, with a gate if a person stopped it or if it was
/// interrupted too often. Any process that has acquired the plan's lock may send this: the lock proves that
/// the previous holder lost it. The next run starts from the checkpoint of the interrupted one.
pub(super) fn take_over(
    snapshot: &StoredPlan,
    cause: TakeOverCause,
    remains: Remains,
    context: &Context,
) -> Result<Decided, Refusal> {
    match snapshot.plan.stage.state() {
        State::Processing => {}
        // The process that gave the run back may retry after it lost the response to its commit.
        State::Queued if cause != TakeOverCause::OwnerGone => return Ok(Decided::Already),
        State::Waiting => return Err(undecided(snapshot, "takeover")),
        State::Queued
        | State::Complete
        | State::Errored
        | State::Cancelled
        | State::Applied
        | State::Constrained => {
            return Err(wrong_stage(snapshot, "takeover"));
        }
    }
    let event = Event::TakenOver(cause, remains.clone());
    let mut draft = TransitionBuilder::after(snapshot, context).stage(Common::Queued).event(event);
    let phase = draft.plan.stage.phase();
    // A landing restarts from its intent and its target, not from a checkpoint.
    if let (Phase::Strategize | Phase::Execute, Some(run)) = (phase, draft.plan.run.clone()) {
        if let Some(restart) = remains.restart() {
            draft.plan.restart_from(restart.commit.clone(), RestartReason::Interrupted);
        }
        let earlier = draft.plan.interruption.take();
        draft.plan.interruption = Some(InterruptedRun::after(earlier.as_ref(), run, cause, remains));
        draft.plan.unjudged = false;
    }
    let interruption = draft.plan.interruption.as_mut();
    let often = interruption.filter(|one| one.without_checkpoint >= INTERRUPTIONS_MAX);
    let question = match (cause, often) {
        (TakeOverCause::Stopped, _) => Question::stopped(phase, draft.plan.interruption.as_ref()),
        (TakeOverCause::OwnerGone | TakeOverCause::Interrupted, Some(often)) => {
            // A person's answer resets the counter.
            let times = std::mem::take(&mut often.without_checkpoint);
            Question::interrupted_often(times, &draft.plan)
        }
        (TakeOverCause::StoppedAbove, _) => {
            if let Some(place) = &mut draft.plan.place {
                place.turn = Turn::InLine;
            }
            return Ok(draft.done());
        }
        (TakeOverCause::OwnerGone | TakeOverCause::Interrupted, None) => return Ok(draft.done()),
    };
    let mut draft = draft.open(question);
    draft.plan.gate = Some(context.fresh_decision.clone());
    Ok(draft.done())
}
