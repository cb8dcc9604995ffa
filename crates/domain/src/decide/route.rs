//! The entry point of the state machine: dispatches each command to the file that implements it.

use super::{begin, diverge, fan, finish, kept, land, postpone, steer};
use crate::outcome::Decided;
use crate::{Authority, Command, Context, DecisionChange, Plan, Refusal, RunId, StoredPlan};

/// Checks a command against the stored plan. Pure: the same arguments give the same result.
pub fn decide(snapshot: &StoredPlan, command: Command, context: &Context) -> Result<Decided, Refusal> {
    admit(&snapshot.plan, &command, context.authority)?;
    let (name, authority) = (command.name(), authority_of(&command, context));
    closed_by_a_person(judge(snapshot, command, context)?, name, authority)
}

fn judge(snapshot: &StoredPlan, command: Command, context: &Context) -> Result<Decided, Refusal> {
    match command {
        Command::Start(start) => begin::start(snapshot, start, context),
        Command::Approve { note, enforcement } => begin::approve(snapshot, note, enforcement, context),
        Command::HoldBack(met) => begin::ask_first(snapshot, met, context),
        Command::Exhaust { run, work } => postpone::exhaust(snapshot, run.as_ref(), &work, context),
        Command::Advance(advance) => begin::advance(snapshot, advance, context),
        Command::Complete(run, completion) => finish::complete(snapshot, &run, completion, context),
        Command::Fail(run, failure, question) => finish::fail(snapshot, &run, failure, question, context),
        Command::Ask(run, question) => finish::ask(snapshot, &run, question, context),
        Command::Postpone(run, delay) => postpone::postpone(snapshot, &run, delay, context),
        Command::Diverge(divergence) => diverge::diverge(snapshot, &divergence, context),
        Command::Reconcile(outcome) => diverge::reconcile(snapshot, &outcome, context),
        Command::Sync => diverge::sync(snapshot),
        Command::Reexamine { tip, commits } => diverge::reexamine(snapshot, tip, commits, context),
        Command::Adopt { choices, fanout } => begin::adopt(snapshot, choices, fanout, context),
        Command::TakeOver(cause, remains) => finish::take_over(snapshot, cause, remains, context),
        Command::Intend(run, intent) => land::intend(snapshot, &run, intent, context),
        Command::Forgo => land::drop_intent(snapshot, context),
        Command::Land(run, landed) => land::land(snapshot, &run, landed, context),
        Command::Constrain(run, reasons) => land::constrain(snapshot, &run, reasons, context),
        Command::Resolve(answer) => steer::resolve(snapshot, answer, context),
        Command::Retry => steer::retry(snapshot, context),
        Command::StartOver => kept::start_over(snapshot, context),
        Command::Accept => kept::accept(snapshot, context),
        Command::Revert { reason } => steer::revert(snapshot, reason, context),
        Command::Cancel { reason } => steer::cancel(snapshot, reason, context),
        Command::CancelBelow { reason, ended_by } => steer::cancel_below(snapshot, reason, ended_by, context),
        Command::RollBack { commit } => diverge::roll_back(snapshot, commit, context),
        Command::Spawn(births) => fan::spawn(snapshot, births, context),
        Command::Tend(news) => fan::record_subplans(snapshot, news, context),
        Command::WoundUp(ended) => fan::wound_up(snapshot, &ended, context),
        Command::Call(call) => fan::call(snapshot, call, context),
        Command::Join { commit } => fan::join(snapshot, commit, context),
        Command::Prompt { text } => steer::prompt(snapshot, text, context),
    }
}

/// Checks whether an authority may send this command to a plan. It is the part of `decide` that needs no
/// facts from outside, for callers that must check it before they read those facts.
pub fn admit(plan: &Plan, command: &Command, authority: Authority) -> Result<(), Refusal> {
    let name = command.name();
    let not_allowed = || Err(Refusal::NotAllowed { command: name, authority });
    match (authority, command) {
        (Authority::Agent, _) => not_allowed(),
        (Authority::Operator | Authority::Engine, Command::Resolve(_) | Command::Accept) => not_allowed(),
        (Authority::Person | Authority::Operator, Command::CancelBelow { .. }) => not_allowed(),
        (Authority::Operator, command) if moves(command) => match plan.pending_decision() {
            Some(decision) => Err(Refusal::Undecided { command: name, decision: decision.clone() }),
            None => Ok(()),
        },
        (Authority::Person | Authority::Operator | Authority::Engine, _) => Ok(()),
    }
}

/// Returns true if the command could move a plan past an open decision of any kind.
fn moves(command: &Command) -> bool {
    match command {
        Command::Retry
        | Command::StartOver
        | Command::Accept
        | Command::Revert { .. }
        | Command::RollBack { .. }
        | Command::Cancel { .. }
        | Command::CancelBelow { .. }
        | Command::Sync
        | Command::Reexamine { .. }
        | Command::Adopt { .. }
        | Command::TakeOver(..) => true,
        // These wait for the answer themselves, only add to the record, or are reports of a run.
        Command::Start(_)
        | Command::Complete(..)
        | Command::Fail(..)
        | Command::Ask(..)
        | Command::Postpone(..)
        | Command::Diverge(_)
        | Command::Reconcile(_)
        | Command::Resolve(_)
        | Command::Approve { .. }
        | Command::HoldBack(_)
        | Command::Exhaust { .. }
        | Command::Advance(_)
        | Command::Intend(..)
        | Command::Forgo
        | Command::Land(..)
        | Command::Constrain(..)
        | Command::Spawn(_)
        | Command::Tend(_)
        | Command::WoundUp(_)
        | Command::Call(_)
        | Command::Join { .. }
        | Command::Prompt { .. } => false,
    }
}

/// Returns the authority that counts when the command closes a decision.
fn authority_of(command: &Command, context: &Context) -> Authority {
    match (command, context.authority) {
        (Command::CancelBelow { ended_by, .. }, Authority::Engine) => *ended_by,
        (_, authority) => authority,
    }
}

/// N5 for every command at once: without a person's authority, no command closes a decision.
fn closed_by_a_person(
    decided: Decided,
    command: &'static str,
    authority: Authority,
) -> Result<Decided, Refusal> {
    let (Decided::Change(transition), Authority::Operator | Authority::Agent | Authority::Engine) =
        (&decided, authority)
    else {
        return Ok(decided);
    };
    let closed = transition.decisions().iter().find_map(|change| match change {
        DecisionChange::Resolve(id, _) | DecisionChange::Withdraw { id, .. } => Some(id.clone()),
        DecisionChange::Open(_) | DecisionChange::Amend(_) => None,
    });
    match closed {
        Some(decision) => Err(Refusal::Undecided { command, decision }),
        None => Ok(decided),
    }
}

/// Returns the refusal of a command that the plan's stage does not accept.
pub(super) fn wrong_stage(snapshot: &StoredPlan, command: &'static str) -> Refusal {
    let stage = &snapshot.plan.stage;
    Refusal::WrongStage { command, phase: stage.phase(), state: stage.state() }
}

/// Refuses reports of any run but the plan's current one.
pub(super) fn same_run(snapshot: &StoredPlan, run: &RunId) -> Result<(), Refusal> {
    if snapshot.plan.run.as_ref() == Some(run) {
        Ok(())
    } else {
        Err(Refusal::StaleRun { given: run.clone(), current: snapshot.plan.run.clone() })
    }
}
