//! Explains the state of a plan: the reasons for its wait, and the commands that continue it, with their
//! callers. The text is derived from the stored stage, so it cannot contradict it; the commands are the
//! offers of `domain`.

use drydock_domain::{
    Authority, Complete, Decision, DecisionKind, Enforcement, Lock, LockScope, Offer, Plan, Postponed,
    Progress, Settled, Stage, StoredEvent, Turn, counted,
};

use crate::engine::Engine;
use crate::error::EngineError;
use crate::offered::Offered;
use crate::subplan::is_tended;

/// How many of the newest events are searched for the latest sync.
const EVENTS_MAX: i64 = 200;

/// The explanation of a plan's state.
#[derive(Debug, Clone)]
pub struct PlanWhy {
    /// One sentence.
    pub summary: String,
    /// The reasons why the plan waits, one sentence each.
    pub holds: Vec<String>,
    /// The commands that can be used now, and their callers.
    pub can_act: Vec<NextCommand>,
    /// The lock of the plan, if it is held.
    pub lock: Option<Lock>,
    /// The open decision.
    pub decision: Option<Decision>,
}

/// One command that can be used now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextCommand {
    /// Who can use the command.
    pub who: &'static str,
    /// The command line.
    pub command: String,
    /// The effect of the command.
    pub does: String,
}

impl Engine {
    /// Explains the state of a plan.
    pub async fn why(&self, plan: &Plan) -> Result<PlanWhy, EngineError> {
        let mut sighted = self.sighted(plan).await?;
        let decision = sighted.snapshot.pending.clone();
        let locks = self.locks().await?;
        let lock =
            locks.into_iter().find(|lock| lock.scope == LockScope::Plan && lock.key == plan.id.as_str());
        let recent = self.store().event_recent(&plan.id, EVENTS_MAX).await?;
        // A holder that has provably exited holds nothing, even before its lock expires.
        sighted.held = lock.as_ref().is_some_and(|lock| !lock.stale);
        let person = Offered::of(&sighted, Authority::Person);
        let operator = Offered::of(&sighted, Authority::Operator);
        let blocked = person.blocked.as_ref();
        let (summary, mut holds) = explain(plan, decision.as_ref(), lock.as_ref(), blocked);
        holds.extend(plan.interruption.as_ref().map(|one| one.describe(plan)));
        if plan.unjudged {
            holds.push("the finished result of the last run is validated and reviewed again".to_owned());
        }
        holds.extend(blocked.into_iter().flat_map(blocks));
        holds.extend(remote_move(&recent));
        holds.extend(self.why_waiting(plan.clone()).await?);
        let mut can_act: Vec<_> =
            person.offers.iter().filter_map(|offer| way(plan, offer, &operator.offers)).collect();
        if is_tended(plan)
            && let Some(asked) = self.asking(plan.id.clone()).await?
        {
            let command = format!("drydock decision show {asked}");
            let does = "shows the question that a subplan waits for".to_owned();
            can_act.insert(0, NextCommand { who: "a person", command, does });
        }
        Ok(PlanWhy { summary, holds, can_act, lock, decision })
    }
}

/// Returns an offer as a command line; `None` if it needs a value that only a person knows.
fn way(plan: &Plan, offer: &Offer, operator: &[Offer]) -> Option<NextCommand> {
    let who = if operator.iter().any(|one| one.act == offer.act) { "anyone" } else { "a person" };
    let does = match offer.label == offer.effect {
        true => offer.label.clone(),
        false => format!("{}: {}", offer.label, offer.effect),
    };
    Some(NextCommand { who, command: offer.line(&plan.id)?, does })
}

/// Returns the blocking findings, one sentence each, and advice.
fn blocks(enforcement: &Enforcement) -> Vec<String> {
    let mut lines: Vec<_> = enforcement.blocking().iter().map(|finding| finding.describe()).collect();
    lines.push(enforcement.advice().to_owned());
    lines
}

/// Names the newest commit by which someone else moved the plan's branch on the remote.
fn remote_move(recent: &[StoredEvent]) -> Option<String> {
    let synced = recent.iter().filter(|event| event.kind.starts_with("sync."));
    let arrived =
        |event: &StoredEvent| event.details["arrived"].as_array().and_then(|all| all.last().cloned());
    let commit = synced.filter_map(arrived).next()?;
    let part = |name: &str| commit[name].as_str().unwrap_or_default().to_owned();
    Some(format!(
        "a push added {} “{}” by {} to the branch on the remote",
        part("id"),
        part("subject"),
        part("author")
    ))
}

fn explain(
    plan: &Plan,
    decision: Option<&Decision>,
    lock: Option<&Lock>,
    blocked: Option<&Enforcement>,
) -> (String, Vec<String>) {
    let phase = plan.stage.phase();
    let mut holds: Vec<_> = lock.map(describe_lock).into_iter().collect();
    if let Some(decision) = decision {
        holds.push(format!("decision {} is open: {}", decision.id, decision.question.text));
    }
    let summary = match &plan.stage {
        _ if blocked.is_some() => blocked_words(plan, blocked),
        Stage::Strategize(Progress::Queued)
        | Stage::Execute(Progress::Queued)
        | Stage::Apply(Progress::Queued) => queued(plan, decision),
        Stage::Strategize(Progress::Processing)
        | Stage::Execute(Progress::Processing)
        | Stage::Apply(Progress::Processing) => processing(phase.name(), lock),
        Stage::Strategize(Progress::Reached(Complete)) => complete(plan, decision, "execute"),
        Stage::Execute(Progress::Reached(Complete)) if plan.place.is_some() => {
            "execute is complete; its parent joins the result".to_owned()
        }
        Stage::Execute(Progress::Reached(Complete)) => complete(plan, decision, "apply"),
        Stage::Apply(Progress::Reached(Settled::Applied { commit })) => {
            format!("the plan landed as {commit}")
        }
        Stage::Apply(Progress::Reached(Settled::Constrained { reasons })) => {
            holds.extend(reasons.iter().cloned());
            "the merged result was not acceptable; nothing landed".to_owned()
        }
        Stage::Strategize(_) | Stage::Execute(_) | Stage::Apply(_) => stopped(plan, decision),
    };
    if let Some(failure) = plan.stage.failure()
        // The question of a divergence repeats the failure's text.
        && decision.is_none_or(|open| open.question.kind != DecisionKind::Divergence)
    {
        holds.push(format!("{phase} failed ({}): {}", failure.class.name(), failure.text));
    }
    (summary, holds)
}

/// Returns the summary of a plan that a rule keeps from its next phase, with the measured value.
fn blocked_words(plan: &Plan, blocked: Option<&Enforcement>) -> String {
    let Some(enforcement) = blocked else { return String::new() };
    let found: Vec<_> = enforcement.blocking().iter().map(|finding| finding.reason()).collect();
    let done = match plan.stage.phase() == enforcement.at {
        true => String::new(),
        false => format!("{} is complete; ", plan.stage.phase()),
    };
    format!("{done}{} is blocked: {}", enforcement.at, found.join("; "))
}

/// Returns the summary of a plan that only a person can move.
fn stopped(plan: &Plan, decision: Option<&Decision>) -> String {
    let (phase, state) = (plan.stage.phase(), plan.stage.state());
    match &plan.stage {
        Stage::Strategize(Progress::Waiting(_))
        | Stage::Execute(Progress::Waiting(_))
        | Stage::Apply(Progress::Waiting(_)) => format!("{phase} waits for a person's answer"),
        Stage::Strategize(Progress::Errored { .. })
        | Stage::Execute(Progress::Errored { .. })
        | Stage::Apply(Progress::Errored { .. }) => match decision {
            Some(_) => format!("{phase} failed and waits for a person's answer"),
            None => format!("{phase} failed"),
        },
        Stage::Strategize(Progress::Cancelled { reason })
        | Stage::Execute(Progress::Cancelled { reason })
        | Stage::Apply(Progress::Cancelled { reason }) => format!("the plan was cancelled: {reason}"),
        Stage::Strategize(_) | Stage::Execute(_) | Stage::Apply(_) => format!("the plan is {phase}/{state}"),
    }
}

/// Returns the summary of a plan whose phase is complete, with the next phase.
fn complete(plan: &Plan, decision: Option<&Decision>, next: &str) -> String {
    let phase = plan.stage.phase();
    match decision {
        Some(_) => format!("{phase} is complete; {next} waits for a person's answer"),
        None => format!("{phase} is complete; {next} was not requested yet"),
    }
}

fn queued(plan: &Plan, decision: Option<&Decision>) -> String {
    let phase = plan.stage.phase();
    // Workers do not claim a plan with an open decision.
    if decision.is_some() {
        return format!("{phase} is queued and waits for a person's answer");
    }
    if let Some(text) = among_others(plan) {
        return text;
    }
    let postponed = plan.waits();
    let Some(postponed) = postponed else {
        return format!("{phase} is queued and waits for a worker");
    };
    let Postponed { until, times, .. } = postponed;
    let often = if *times > 1 { format!(" ({times} times in a row)") } else { String::new() };
    format!("{phase} is queued and waits until {until}: {}{often}", postponed.reason())
}

/// Returns the summary of a plan that waits as a parent of subplans, or as one of them.
fn among_others(plan: &Plan) -> Option<String> {
    let phase = plan.stage.phase();
    match (&plan.fanout, &plan.place) {
        (Some(fanout), _) if is_tended(plan) => {
            let settled = fanout.pieces.iter().filter(|piece| piece.is_settled()).count();
            Some(format!(
                "{phase} runs {}, {settled} of them finished",
                counted(fanout.pieces.len(), "subplan")
            ))
        }
        // The rate limit comes before the turn.
        (_, Some(_)) if plan.waits().is_some() => None,
        (_, Some(place)) if place.turn == Turn::InLine => {
            Some(format!("{phase} is queued until its parent starts it"))
        }
        (Some(_) | None, Some(_) | None) => None,
    }
}

fn processing(phase: &str, lock: Option<&Lock>) -> String {
    match lock {
        Some(lock) if lock.stale => format!("{phase} was run by a process that no longer exists"),
        Some(lock) => {
            format!("{phase} is run by process {} on {}", lock.holder.process.pid, lock.holder.process.host)
        }
        None => format!("{phase} was run by a process that released its lock"),
    }
}

fn describe_lock(lock: &Lock) -> String {
    let stale = if lock.stale { ", expired" } else { "" };
    let Lock { holder, .. } = lock;
    format!(
        "its lock is held by process {} on {} ({}{stale})",
        holder.process.pid, holder.process.host, holder.purpose
    )
}
