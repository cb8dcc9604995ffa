//! Creates plans, starts runs, and advances plans to the next phase.

use std::collections::BTreeMap;

use serde_json::json;

use super::finish::completed;
use super::route::wrong_stage;
use crate::outcome::{Decided, Transition, TransitionBuilder};
use crate::stage::Common;
use crate::{
    Advance, Authority, Changes, Choice, Complete, Context, CreatePlan, DecisionKind, Enforcement, Event,
    Fanout, GrantScope, LandsOn, NextPhase, Obstacle, Phase, Plan, Progress, Question, Refusal,
    ResourceUsage, RestartReason, Stage, Start, State, StoredPlan, Turn,
};

/// Returns the transition that creates a plan: `strategize/queued`, with a gate if the profile requires one.
pub fn create(new: CreatePlan, context: &Context) -> Transition {
    create_alerting(new, None, context)
}

/// Like [`create`], with an alert in the same commit.
pub fn create_alerting(new: CreatePlan, alert: Option<String>, context: &Context) -> Transition {
    let asks = new.spec.profile.asks_before(Phase::Strategize);
    let mut plan = new_plan(new, context);
    plan.gate = asks.then(|| context.fresh_decision.clone());
    let (task, question) = (plan.spec.task.clone(), Question::gate(Phase::Strategize, &plan.spec));
    let mut draft = TransitionBuilder::of(plan, context).event(Event::Created { task });
    if asks {
        draft = draft.open(question);
    }
    if let Some(text) = alert {
        draft = draft.event(Event::Alert { priority: "low", text });
    }
    draft.into_transition()
}

/// Returns a new plan without decisions and without runs.
pub(crate) fn new_plan(new: CreatePlan, context: &Context) -> Plan {
    Plan {
        root: new.id.clone(),
        id: new.id,
        stage: Phase::Strategize.queued(),
        revision: 1,
        run: None,
        runs: 0,
        parent: None,
        place: None,
        fanout: None,
        winding: Vec::new(),
        ended_by_person: Vec::new(),
        queued_divergences: Vec::new(),
        gate: None,
        base_commit: new.base_commit,
        called_from: None,
        work_from: None,
        take_up: None,
        take_up_why: RestartReason::default(),
        replaces: None,
        reexamines: false,
        interruption: None,
        unjudged: false,
        postponed: None,
        budget: new.spec.budget,
        spent: ResourceUsage::default(),
        run_spent: ResourceUsage::default(),
        reserved: None,
        handed: BTreeMap::new(),
        head_commit: None,
        head_run: None,
        landed_commit: None,
        landing_warning: None,
        intent: None,
        choices: Vec::new(),
        feedback: Vec::new(),
        grants: Vec::new(),
        reversions: 0,
        created_at: context.now,
        updated_at: context.now,
        phase_started_at: None,
        phase_completed_at: None,
        spec: new.spec,
    }
}

/// `*/queued` → `*/processing`, with a new run.
pub(super) fn start(snapshot: &StoredPlan, start: Start, context: &Context) -> Result<Decided, Refusal> {
    let plan = &snapshot.plan;
    match plan.stage.state() {
        // A run id is used once. Otherwise reports of the ended run would be accepted for the new one.
        State::Queued if plan.run.as_ref() == Some(&start.run) => {
            return Err(Refusal::StaleRun { given: start.run, current: None });
        }
        State::Queued => {}
        State::Processing if plan.run.as_ref() == Some(&start.run) => return Ok(Decided::Already),
        State::Waiting | State::Errored => return Err(undecided(snapshot, "start")),
        State::Processing | State::Complete | State::Cancelled | State::Applied | State::Constrained => {
            return Err(wrong_stage(snapshot, "start"));
        }
    }
    let phase = plan.stage.phase();
    may_begin(plan)?;
    if phase == Phase::Strategize && !start.enforcement.blocking().is_empty() {
        return Err(Refusal::Blocked(start.enforcement));
    }
    let used_up = plan.budget.used_up(plan.used());
    if phase != Phase::Apply && !used_up.is_empty() {
        return Err(Refusal::BudgetSpent { used_up, decision: None });
    }
    let mut draft = pass_gate(snapshot, "start", Pass::Ungated, TransitionBuilder::after(snapshot, context))?;
    draft.plan.spent = draft.plan.used();
    draft.plan.run_spent = ResourceUsage::default();
    // The run reserves the rest of the budget until it ends, so that no share of it can be given to a subplan
    // meanwhile.
    let limited = phase != Phase::Apply && !draft.plan.budget.is_unlimited();
    draft.plan.reserved = limited.then(|| draft.plan.budget.left(draft.plan.spent));
    // Clears the result of an earlier run of this phase, which must not count as the result of the new one.
    match phase {
        Phase::Strategize => {
            draft.plan.base_commit = start.base;
            draft.plan.choices = Vec::new();
            draft.plan.fanout = None;
            draft = draft.event(Event::InvariantEnforced(start.enforcement));
        }
        Phase::Execute => {
            draft.plan.head_commit = None;
            draft.plan.head_run = None;
        }
        Phase::Apply => {}
    }
    draft.plan.work_from = start.from;
    draft.plan.take_up = None;
    draft.plan.replaces = start.replaces;
    // A one-time grant belongs to the first run that starts after the answer.
    draft.plan.grants.retain(|grant| grant.terms.scope == GrantScope::Plan || grant.run.is_none());
    for grant in draft.plan.grants.iter_mut().filter(|grant| grant.terms.scope == GrantScope::Once) {
        grant.run = Some(start.run.clone());
    }
    draft.plan.run = Some(start.run);
    draft.plan.runs += 1;
    draft.plan.phase_started_at.get_or_insert(context.now);
    Ok(draft.stage(Common::Processing).event(Event::Started(phase)).done())
}

/// Refuses a subplan that does not have its turn, and a plan whose subplans have not all ended.
fn may_begin(plan: &Plan) -> Result<(), Refusal> {
    let phase = plan.stage.phase();
    if let (Some(place), Some(parent)) = (&plan.place, &plan.parent)
        && place.turn == Turn::InLine
        && phase != Phase::Apply
    {
        return Err(Refusal::NotCalled { parent: parent.clone() });
    }
    let unsettled = plan.fanout.as_ref().is_some_and(|fanout| match phase {
        Phase::Strategize => false,
        Phase::Execute => fanout.is_open(),
        Phase::Apply => fanout.is_ready(),
    });
    if unsettled || !plan.winding.is_empty() { Err(Refusal::SubplansOpen) } else { Ok(()) }
}

/// A queued, failed or complete Strategize → `strategize/complete`, with the choices of a draft from its
/// worktree.
pub(super) fn adopt(
    snapshot: &StoredPlan,
    choices: Vec<Choice>,
    fanout: Option<Fanout>,
    context: &Context,
) -> Result<Decided, Refusal> {
    let plan = &snapshot.plan;
    let complete = match (&plan.stage, plan.stage.state()) {
        // Before its first run the phase has no worktree that could contain a draft.
        (Stage::Strategize(_), State::Queued) if plan.phase_started_at.is_none() && plan.gate.is_none() => {
            return Err(wrong_stage(snapshot, "adopt a strategy for"));
        }
        (Stage::Strategize(_), State::Queued | State::Errored) if plan.pending_decision().is_none() => false,
        (Stage::Strategize(_), State::Queued | State::Errored | State::Waiting) => {
            return Err(undecided(snapshot, "adopt a strategy for"));
        }
        (Stage::Strategize(_), State::Complete) if plan.choices == choices && plan.fanout == fanout => {
            return Ok(Decided::Already);
        }
        (Stage::Strategize(_), State::Complete) => true,
        (
            Stage::Strategize(_) | Stage::Execute(_) | Stage::Apply(_),
            State::Queued
            | State::Processing
            | State::Waiting
            | State::Complete
            | State::Errored
            | State::Cancelled
            | State::Applied
            | State::Constrained,
        ) => return Err(wrong_stage(snapshot, "adopt a strategy for")),
    };
    let mut draft =
        TransitionBuilder::after(snapshot, context).event(Event::StrategyAdopted { choices: choices.len() });
    draft.plan.choices = choices;
    draft.plan.fanout = fanout;
    if complete {
        return Ok(draft.done());
    }
    draft.plan.stage = Stage::Strategize(Progress::Reached(Complete));
    Ok(completed(snapshot, draft, Phase::Strategize, Phase::Execute, context).done())
}

/// Opens a gate before the next automatic step; the stage stays the same.
pub(super) fn ask_first(snapshot: &StoredPlan, met: Obstacle, context: &Context) -> Result<Decided, Refusal> {
    let plan = &snapshot.plan;
    if plan.gate.is_some() {
        return Ok(Decided::Already);
    }
    if met == Obstacle::StoppedAbove {
        return yield_turn(snapshot, context);
    }
    let next = match (&plan.stage, plan.stage.state()) {
        (stage, State::Queued) => stage.phase(),
        (Stage::Strategize(_), State::Complete) => Phase::Execute,
        (Stage::Execute(_), State::Complete) => Phase::Apply,
        (
            Stage::Strategize(_) | Stage::Execute(_) | Stage::Apply(_),
            State::Processing
            | State::Waiting
            | State::Complete
            | State::Errored
            | State::Cancelled
            | State::Applied
            | State::Constrained,
        ) => return Err(wrong_stage(snapshot, "hold back")),
    };
    let question = match met {
        Obstacle::Obstacle(reason) => Question::held_back(next, &reason),
        Obstacle::NothingChanged => Question::nothing_changed(),
        Obstacle::Stopped | Obstacle::StoppedAbove => Question::stopped(next, plan.interruption.as_ref()),
    };
    let mut draft = TransitionBuilder::after(snapshot, context).open(question);
    draft.plan.gate = Some(context.fresh_decision.clone());
    Ok(draft.done())
}

/// A subplan with a turn that is not running → waits for its turn again, because its parent was stopped.
fn yield_turn(snapshot: &StoredPlan, context: &Context) -> Result<Decided, Refusal> {
    let plan = &snapshot.plan;
    let Some(place) = plan.place.as_ref().filter(|_| plan.awaits_turn()) else {
        return Err(wrong_stage(snapshot, "hold back"));
    };
    if place.turn == Turn::InLine {
        return Ok(Decided::Already);
    }
    let mut draft = TransitionBuilder::after(snapshot, context);
    if let Some(place) = &mut draft.plan.place {
        place.turn = Turn::InLine;
    }
    Ok(draft.event(Event::Subplan { what: "stepped_back", details: json!({}) }).done())
}

/// Answers the gate of a queued phase. The phase stays queued, and a worker may start it now. If the
/// invariants block the phase, the plan and its gate stay unchanged (S0.1).
pub(super) fn approve(
    snapshot: &StoredPlan,
    note: Option<String>,
    enforcement: Enforcement,
    context: &Context,
) -> Result<Decided, Refusal> {
    match snapshot.plan.stage.state() {
        State::Queued => {
            let draft = TransitionBuilder::after(snapshot, context);
            let draft = pass_gate(snapshot, "approve", Pass::by(context, note), draft)?;
            if !enforcement.blocking().is_empty() {
                return Err(Refusal::Blocked(enforcement));
            }
            Ok(if snapshot.plan.gate.is_some() { draft.done() } else { Decided::Already })
        }
        State::Processing => Ok(Decided::Already),
        State::Waiting | State::Errored => Err(undecided(snapshot, "approve")),
        State::Complete | State::Cancelled | State::Applied | State::Constrained => {
            Err(wrong_stage(snapshot, "approve"))
        }
    }
}

/// `strategize/complete` → `execute/queued` and `execute/complete` → `apply/queued`.
pub(super) fn advance(
    snapshot: &StoredPlan,
    advance: Advance,
    context: &Context,
) -> Result<Decided, Refusal> {
    let to = advance.to.phase();
    match (&snapshot.plan.stage, advance.to) {
        (Stage::Strategize(Progress::Reached(_)), NextPhase::Execute)
        | (Stage::Execute(Progress::Reached(_)), NextPhase::Apply) => {}
        (stage, _) if stage.phase() == to && took_effect(stage.state()) => return Ok(Decided::Already),
        (stage, _) if matches!(stage.state(), State::Waiting | State::Errored) => {
            return Err(undecided(snapshot, to.name()));
        }
        (
            Stage::Strategize(_) | Stage::Execute(_) | Stage::Apply(_),
            NextPhase::Execute | NextPhase::Apply,
        ) => {
            return Err(wrong_stage(snapshot, to.name()));
        }
    }
    may_land(&snapshot.plan, advance.to, context)?;
    if !advance.enforcement.blocking().is_empty() {
        return Err(Refusal::Blocked(advance.enforcement));
    }
    // Changes in other projects also count as changes.
    let elsewhere = snapshot.plan.fanout.as_ref().is_some_and(Fanout::is_done_elsewhere);
    let nothing = advance.to == NextPhase::Apply && advance.changes == Changes::Nothing && !elsewhere;
    if nothing && !snapshot.plan.spec.allow_empty {
        return Err(Refusal::NothingChanged);
    }
    let draft =
        TransitionBuilder::after(snapshot, context).event(Event::InvariantEnforced(advance.enforcement));
    let draft = pass_gate(snapshot, to.name(), Pass::by(context, advance.note), draft)?;
    Ok(draft.enter(to.queued()).event(Event::Advanced(to)).done())
}

/// Refuses to apply a subplan, because its parent joins its result. A subplan of another project lands when
/// its parent does, and only the engine may request that.
fn may_land(plan: &Plan, to: NextPhase, context: &Context) -> Result<(), Refusal> {
    let (Some(place), Some(parent), NextPhase::Apply) = (&plan.place, &plan.parent, to) else {
        return Ok(());
    };
    match (place.lands, context.authority) {
        (LandsOn::ByItself, Authority::Engine) => Ok(()),
        (LandsOn::WithParent, _)
        | (LandsOn::ByItself, Authority::Person | Authority::Operator | Authority::Agent) => {
            Err(Refusal::NotCalled { parent: parent.clone() })
        }
    }
}

/// How a command treats an open gate.
enum Pass {
    /// A person sends the command that the gate blocks, which answers the gate.
    Answering {
        /// Recorded with the answer, and as feedback for the agents.
        note: Option<String>,
    },
    /// An open gate refuses the command.
    Ungated,
}

impl Pass {
    fn by(context: &Context, note: Option<String>) -> Pass {
        match context.authority {
            Authority::Person => Pass::Answering { note },
            Authority::Operator | Authority::Agent | Authority::Engine => Pass::Ungated,
        }
    }
}

/// Returns true if a plan in this state of the requested phase has already been advanced to it.
fn took_effect(state: State) -> bool {
    match state {
        State::Queued | State::Processing | State::Complete | State::Applied => true,
        State::Waiting | State::Errored | State::Cancelled | State::Constrained => false,
    }
}

/// Answers the open gate if a person sends the command, otherwise refuses it. A gate whose decision was not
/// read with the plan stays closed.
fn pass_gate<'a>(
    snapshot: &StoredPlan,
    command: &'static str,
    pass: Pass,
    mut draft: TransitionBuilder<'a>,
) -> Result<TransitionBuilder<'a>, Refusal> {
    let note = match (&snapshot.plan.gate, pass) {
        (None, Pass::Ungated) => return Ok(draft),
        (Some(gate), Pass::Ungated) => {
            return Err(Refusal::Undecided { command, decision: gate.clone() });
        }
        (None | Some(_), Pass::Answering { note }) => note,
    };
    if let Some(note) = &note {
        draft.plan.feedback.push(note.clone());
        draft.plan.guide_next_run();
    }
    match (&snapshot.plan.gate, &snapshot.pending) {
        (None, _) => Ok(draft),
        (Some(gate), Some(open)) if *gate == open.id => Ok(draft.resolve(open, Question::APPROVE, note)),
        (Some(gate), _) => Err(Refusal::Undecided { command, decision: gate.clone() }),
    }
}

/// Returns the refusal for a command that must wait for a person's answer. A failed plan may have an open
/// decision too.
pub(super) fn undecided(snapshot: &StoredPlan, command: &'static str) -> Refusal {
    let plan = &snapshot.plan;
    let spent = snapshot.pending.as_ref().filter(|open| open.question.kind == DecisionKind::Budget);
    if let Some(open) = spent {
        let used_up = plan.budget.used_up(plan.used());
        return Refusal::BudgetSpent { used_up, decision: Some(open.id.clone()) };
    }
    match plan.pending_decision() {
        Some(decision) => Refusal::Undecided { command, decision: decision.clone() },
        None => wrong_stage(snapshot, command),
    }
}
