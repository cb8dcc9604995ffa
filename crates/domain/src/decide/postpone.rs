//! Runs that were interrupted for reasons outside their work: an agent's rate limit or an unavailable remote,
//! after which the plan waits, or an exhausted budget, about which a person is asked.

use super::begin::undecided;
use super::finish::waiting;
use super::route::{same_run, wrong_stage};
use crate::outcome::{Decided, TransitionBuilder};
use crate::stage::Common;
use crate::{
    Context, DecisionKind, Delay, Event, POSTPONED_MAX, POSTPONED_MS_MAX, Phase, Postponed, Question,
    RateLimit, Refusal, Remains, RemoteAway, RestartReason, RunId, State, StoredPlan, Turn,
};

/// `*/processing` → `*/queued`, due when the temporary condition has passed.
pub(super) fn postpone(
    snapshot: &StoredPlan,
    run: &RunId,
    delay: Delay,
    context: &Context,
) -> Result<Decided, Refusal> {
    same_run(snapshot, run)?;
    match delay {
        Delay::RateLimit(limit) => limited(snapshot, run, limit, context),
        Delay::Remote { away, waited } => unreachable_remote(snapshot, run, away, waited, context),
    }
}

/// `apply/processing`, and `apply/queued` that could not start → `apply/queued`, due after a wait that grows
/// each time. An intent stays open: the end of that landing is determined when the remote is reachable again.
fn unreachable_remote(
    snapshot: &StoredPlan,
    run: &RunId,
    away: RemoteAway,
    waited: u32,
    context: &Context,
) -> Result<Decided, Refusal> {
    let plan = &snapshot.plan;
    let times = plan.postponed.as_ref().map_or(0, Postponed::remote_times);
    match (plan.stage.phase(), plan.stage.state()) {
        (Phase::Apply, State::Processing) => {}
        // The first commit of this command took effect, but its response was lost.
        (Phase::Apply, State::Queued) if times == waited + 1 => return Ok(Decided::Already),
        (Phase::Apply, State::Queued) if plan.gate.is_none() => {}
        (Phase::Strategize | Phase::Execute | Phase::Apply, _) => {
            return Err(wrong_stage(snapshot, "postpone"));
        }
    }
    let times = times + 1;
    let until = RemoteAway::over_at(context.now, times);
    let postponed = Postponed { until, run: run.clone(), agent: String::new(), times, remote: Some(away) };
    let mut draft =
        TransitionBuilder::after(snapshot, context).event(Event::LandingPostponed(postponed.clone()));
    draft.plan.postponed = Some(postponed);
    Ok(draft.stage(Common::Queued).done())
}

/// `strategize/processing` and `execute/processing` → `*/queued`, due when the limit ends; `*/waiting` if
/// that takes too long or happened too often.
fn limited(
    snapshot: &StoredPlan,
    run: &RunId,
    limit: RateLimit,
    context: &Context,
) -> Result<Decided, Refusal> {
    let plan = &snapshot.plan;
    match (plan.stage.phase(), plan.stage.state()) {
        (Phase::Strategize | Phase::Execute, State::Processing) => {}
        (Phase::Strategize | Phase::Execute, State::Queued)
            if plan.postponed.as_ref().is_some_and(|postponed| postponed.run == *run) =>
        {
            return Ok(Decided::Already);
        }
        (Phase::Strategize | Phase::Execute, State::Waiting) if asked(snapshot, DecisionKind::RateLimit) => {
            return Ok(Decided::Already);
        }
        (Phase::Strategize | Phase::Execute | Phase::Apply, _) => {
            return Err(wrong_stage(snapshot, "postpone"));
        }
    }
    let times = plan.postponed.as_ref().map_or(0, |postponed| postponed.times) + 1;
    let until = limit.over_at(context.now, times);
    let postponed = Postponed { until, run: run.clone(), agent: limit.agent, times, remote: None };
    let mut draft = TransitionBuilder::after(snapshot, context).event(Event::RateLimited(postponed.clone()));
    draft.plan.interruption = None;
    // The next run continues from the work so far, because the rate limit is unrelated to the work.
    if let Some(work) = limit.work.restart() {
        draft.plan.restart_from(work.clone(), RestartReason::RateLimit);
    }
    if times > POSTPONED_MAX || until > context.now.plus_ms(POSTPONED_MS_MAX) {
        let mut draft = waiting(draft, Question::rate_limit(&postponed), context);
        draft.plan.unjudged = limit.work.is_result();
        return Ok(draft.done());
    }
    draft.plan.unjudged = limit.work.is_result();
    draft.plan.postponed = Some(postponed);
    // A subplan gives up its turn while it waits, and gets another one when the limit has ended.
    if let Some(place) = &mut draft.plan.place {
        place.turn = Turn::InLine;
    }
    Ok(draft.stage(Common::Queued).done())
}

/// `*/queued` that is not due yet → due now.
pub(super) fn end_postponement(snapshot: &StoredPlan, context: &Context) -> Option<Decided> {
    let postponed = snapshot.plan.postponed.as_ref()?;
    if snapshot.plan.stage.state() != State::Queued || postponed.until <= context.now {
        return None;
    }
    let mut draft = TransitionBuilder::after(snapshot, context);
    draft.plan.postponed = None;
    Some(draft.event(Event::Retried).done())
}

/// `strategize` and `execute`, queued or processing → `*/waiting`, because the budget is exhausted.
pub(super) fn exhaust(
    snapshot: &StoredPlan,
    run: Option<&RunId>,
    work: &Remains<String>,
    context: &Context,
) -> Result<Decided, Refusal> {
    let plan = &snapshot.plan;
    match (plan.stage.phase(), plan.stage.state()) {
        (Phase::Strategize | Phase::Execute, State::Processing) if run == plan.run.as_ref() => {}
        (Phase::Strategize | Phase::Execute, State::Processing) => {
            let given = run.cloned().ok_or_else(|| wrong_stage(snapshot, "exhaust"))?;
            return Err(Refusal::StaleRun { given, current: plan.run.clone() });
        }
        (Phase::Strategize | Phase::Execute, State::Queued) if plan.gate.is_none() => {}
        (Phase::Strategize | Phase::Execute, State::Queued) => return Err(undecided(snapshot, "exhaust")),
        (Phase::Strategize | Phase::Execute, State::Waiting)
            if run.is_none_or(|run| plan.run.as_ref() == Some(run))
                && asked(snapshot, DecisionKind::Budget) =>
        {
            return Ok(Decided::Already);
        }
        (Phase::Strategize | Phase::Execute, State::Waiting) => return Err(undecided(snapshot, "exhaust")),
        (Phase::Strategize | Phase::Execute | Phase::Apply, _) => {
            return Err(wrong_stage(snapshot, "exhaust"));
        }
    }
    let draft = TransitionBuilder::after(snapshot, context);
    let question = Question::budget(&draft.plan, work.restart().cloned());
    let mut draft = waiting(draft, question, context);
    draft.plan.unjudged = work.is_result();
    Ok(draft.done())
}

/// Returns true if the current run ended in a question of this kind. The whole question is not compared: a
/// retry after a lost response reads times and usage again, and so builds a different text.
fn asked(snapshot: &StoredPlan, kind: DecisionKind) -> bool {
    snapshot.pending.as_ref().is_some_and(|open| open.question.kind == kind && open.run == snapshot.plan.run)
}
