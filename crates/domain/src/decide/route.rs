//! The entry of the state machine: hands each command to the file that judges it.

use super::{begin, diverge, fan, finish, land, postpone, steer};
use crate::outcome::Decided;
use crate::{Authority, Command, Context, Refusal, RunId, Snapshot};

/// Judges a command against the stored plan. Pure: the same arguments give the same answer.
pub fn decide(snapshot: &Snapshot, command: Command, context: &Context) -> Result<Decided, Refusal> {
    admit(&command, context.authority)?;
    match command {
        Command::Start(start) => begin::start(snapshot, start, context),
        Command::Approve { note } => begin::approve(snapshot, note, context),
        Command::HoldBack(met) => begin::hold_back(snapshot, met, context),
        Command::Exhaust { run, work } => postpone::exhaust(snapshot, run.as_ref(), work, context),
        Command::Advance(advance) => begin::advance(snapshot, advance, context),
        Command::Complete(run, completion) => finish::complete(snapshot, &run, completion, context),
        Command::Fail(run, failure, question) => finish::fail(snapshot, &run, failure, question, context),
        Command::Ask(run, question) => finish::ask(snapshot, &run, question, context),
        Command::Postpone(run, delay) => postpone::postpone(snapshot, &run, delay, context),
        Command::Diverge(divergence) => diverge::diverge(snapshot, &divergence, context),
        Command::Reconcile => diverge::reconcile(snapshot, context),
        Command::Adopt { choices, fanout } => begin::adopt(snapshot, choices, fanout, context),
        Command::TakeOver(cause) => finish::take_over(snapshot, cause, context),
        Command::Intend(run, intent) => land::intend(snapshot, &run, intent, context),
        Command::Forgo => land::forgo(snapshot, context),
        Command::Land(run, landed) => land::land(snapshot, &run, landed, context),
        Command::Constrain(run, reasons) => land::constrain(snapshot, &run, reasons, context),
        Command::Resolve(answer) => steer::resolve(snapshot, answer, context),
        Command::Retry => steer::retry(snapshot, context),
        Command::Revert { reason } => steer::revert(snapshot, reason, context),
        Command::Cancel { reason } => steer::cancel(snapshot, reason, context),
        Command::RollBack { commit } => diverge::roll_back(snapshot, commit, context),
        Command::Spawn(births) => fan::spawn(snapshot, births, context),
        Command::Tend(news) => fan::tend(snapshot, news, context),
        Command::WoundUp(ended) => fan::wound_up(snapshot, &ended, context),
        Command::Call(call) => fan::call(snapshot, call, context),
        Command::Join { commit } => fan::join(snapshot, commit, context),
        Command::Prompt { text } => steer::prompt(snapshot, text, context),
    }
}

/// Passes what the authority may ask for at all, however the plan stands.
fn admit(command: &Command, authority: Authority) -> Result<(), Refusal> {
    match (authority, command) {
        (Authority::Agent, _) | (Authority::Operator | Authority::Engine, Command::Resolve(_)) => {
            Err(Refusal::NotAllowed { command: command.name(), authority })
        }
        (Authority::Person | Authority::Operator | Authority::Engine, _) => Ok(()),
    }
}

/// The refusal of a command that the plan's stage does not take.
pub(super) fn wrong_stage(snapshot: &Snapshot, command: &'static str) -> Refusal {
    let stage = &snapshot.plan.stage;
    Refusal::WrongStage { command, phase: stage.phase(), state: stage.state() }
}

/// Passes only reports of the plan's current run.
pub(super) fn same_run(snapshot: &Snapshot, run: &RunId) -> Result<(), Refusal> {
    if snapshot.plan.run.as_ref() == Some(run) {
        Ok(())
    } else {
        Err(Refusal::StaleRun { given: run.clone(), current: snapshot.plan.run.clone() })
    }
}
