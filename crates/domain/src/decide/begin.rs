//! How a plan and its phases begin: use, start, and going on to the next phase.

use super::route::wrong_stage;
use crate::outcome::{Decided, Draft, Transition};
use crate::stage::Common;
use crate::{
    Advance, Approval, Changes, Context, Decision, Event, NewPlan, Next, Phase, Plan, Progress, Question,
    Refusal, Snapshot, Stage, Start, State,
};

/// Returns the transition that makes a plan: `strategize/queued`, with a gate when the profile asks before it.
pub fn create(new: NewPlan, context: &Context) -> Transition {
    let asks = new.spec.profile.asks_before(Phase::Strategize);
    let profile = new.spec.profile.name.clone();
    let plan = Plan {
        root: new.id.clone(),
        id: new.id,
        stage: Phase::Strategize.queued(),
        revision: 1,
        run: None,
        runs: 0,
        parent: None,
        gate: asks.then(|| context.fresh_decision.clone()),
        base_commit: new.base_commit,
        head_commit: None,
        landed_commit: None,
        intent: None,
        choices: Vec::new(),
        feedback: Vec::new(),
        reversions: 0,
        created_at: context.now,
        updated_at: context.now,
        phase_started_at: None,
        phase_completed_at: None,
        spec: new.spec,
    };
    let task = plan.spec.task.clone();
    let draft = Draft::of(plan, context).event(Event::Created { task });
    let draft = if asks { draft.open(Question::gate(Phase::Strategize, &profile)) } else { draft };
    draft.into_transition()
}

/// `*/queued` → `*/processing`, with a new run.
pub(super) fn start(snapshot: &Snapshot, start: Start, context: &Context) -> Result<Decided, Refusal> {
    let plan = &snapshot.plan;
    match plan.stage.state() {
        State::Queued => {}
        State::Processing if plan.run.as_ref() == Some(&start.run) => return Ok(Decided::Already),
        State::Waiting => return Err(undecided(snapshot, "start")),
        State::Processing
        | State::Complete
        | State::Errored
        | State::Cancelled
        | State::Applied
        | State::Constrained => return Err(wrong_stage(snapshot, "start")),
    }
    let phase = plan.stage.phase();
    if phase == Phase::Strategize && !start.enforcement.blocking().is_empty() {
        return Err(Refusal::Blocked(start.enforcement));
    }
    let mut draft = pass_gate(snapshot, "start", Approval::Profile, Draft::after(snapshot, context))?;
    if phase == Phase::Strategize {
        draft.plan.base_commit = start.base;
        draft = draft.event(Event::InvariantEnforced(start.enforcement));
    }
    draft.plan.run = Some(start.run);
    draft.plan.runs += 1;
    draft.plan.phase_started_at.get_or_insert(context.now);
    Ok(draft.stage(Common::Processing).event(Event::Started(phase)).done())
}

/// Answers the gate of a queued phase; the phase stays queued, and a worker may start it now.
pub(super) fn approve(
    snapshot: &Snapshot,
    note: Option<String>,
    context: &Context,
) -> Result<Decided, Refusal> {
    match (snapshot.plan.stage.state(), open_gate(snapshot)) {
        (State::Queued, Some(gate)) => {
            Ok(Draft::after(snapshot, context).resolve(gate, Question::APPROVE, note).done())
        }
        (State::Queued | State::Processing, None) => Ok(Decided::Already),
        (State::Waiting, _) => Err(undecided(snapshot, "approve")),
        (
            State::Processing
            | State::Complete
            | State::Errored
            | State::Cancelled
            | State::Applied
            | State::Constrained,
            _,
        ) => Err(wrong_stage(snapshot, "approve")),
    }
}

/// `strategize/complete` → `execute/queued` and `execute/complete` → `apply/queued`.
pub(super) fn advance(snapshot: &Snapshot, advance: Advance, context: &Context) -> Result<Decided, Refusal> {
    let to = advance.to.phase();
    match (&snapshot.plan.stage, advance.to) {
        (Stage::Strategize(Progress::Reached(_)), Next::Execute)
        | (Stage::Execute(Progress::Reached(_)), Next::Apply) => {}
        (stage, _) if stage.phase() == to && took_effect(stage.state()) => return Ok(Decided::Already),
        (stage, _) if stage.state() == State::Waiting => return Err(undecided(snapshot, to.name())),
        (Stage::Strategize(_) | Stage::Execute(_) | Stage::Apply(_), Next::Execute | Next::Apply) => {
            return Err(wrong_stage(snapshot, to.name()));
        }
    }
    if !advance.enforcement.blocking().is_empty() {
        return Err(Refusal::Blocked(advance.enforcement));
    }
    let nothing = advance.to == Next::Apply && advance.changes == Changes::Nothing;
    if nothing && !snapshot.plan.spec.allow_empty {
        return Err(Refusal::NothingChanged);
    }
    let draft = Draft::after(snapshot, context).event(Event::InvariantEnforced(advance.enforcement));
    let draft = pass_gate(snapshot, to.name(), advance.approval, draft)?;
    Ok(draft.enter(to.queued()).event(Event::Advanced(to)).done())
}

/// Says whether going on to a phase that is now in this state was done before.
fn took_effect(state: State) -> bool {
    match state {
        State::Queued | State::Processing | State::Complete => true,
        State::Waiting | State::Errored | State::Cancelled | State::Applied | State::Constrained => false,
    }
}

/// Answers the open gate when a person asks, and refuses when nobody does.
fn pass_gate<'a>(
    snapshot: &Snapshot,
    command: &'static str,
    approval: Approval,
    draft: Draft<'a>,
) -> Result<Draft<'a>, Refusal> {
    match (open_gate(snapshot), approval) {
        (None, Approval::Person { .. } | Approval::Profile) => Ok(draft),
        (Some(gate), Approval::Person { note }) => Ok(draft.resolve(gate, Question::APPROVE, note)),
        (Some(gate), Approval::Profile) => Err(Refusal::Undecided { command, decision: gate.id.clone() }),
    }
}

fn open_gate(snapshot: &Snapshot) -> Option<&Decision> {
    snapshot.pending.as_ref().filter(|pending| snapshot.plan.gate.as_ref() == Some(&pending.id))
}

/// The refusal of a command that a waiting plan cannot take before its answer.
pub(super) fn undecided(snapshot: &Snapshot, command: &'static str) -> Refusal {
    match snapshot.plan.pending_decision() {
        Some(decision) => Refusal::Undecided { command, decision: decision.clone() },
        None => wrong_stage(snapshot, command),
    }
}
