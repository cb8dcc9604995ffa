//! Why a plan is where it is: what holds it, who can act, and with which command. The words are made from the
//! stored stage, so they cannot disagree with it.

use drydock_domain::{
    Complete, Decision, DecisionKind, Lock, LockScope, Plan, Postponed, Progress, Recorded, Settled, Stage,
    Turn,
};

use crate::engine::Engine;
use crate::error::EngineError;
use crate::subplan::is_tended;

/// How many of the newest events are looked through for the latest block.
const EVENTS_MAX: i64 = 200;

/// Why a plan is where it is.
#[derive(Debug, Clone)]
pub struct Why {
    /// One sentence.
    pub summary: String,
    /// What holds it, a sentence each.
    pub holds: Vec<String>,
    /// Who can act, and how.
    pub can_act: Vec<CanAct>,
    /// Its lock, while somebody has it.
    pub lock: Option<Lock>,
    /// Its open decision.
    pub decision: Option<Decision>,
}

/// One way to go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CanAct {
    /// Who.
    pub who: &'static str,
    /// What to type.
    pub command: String,
    /// What it does.
    pub does: String,
}

impl Engine {
    /// Says why a plan is where it is.
    pub async fn why(&self, plan: &Plan) -> Result<Why, EngineError> {
        let snapshot = self.store().plan_snapshot(&plan.id).await?;
        let decision = snapshot.and_then(|snapshot| snapshot.pending);
        let locks = self.locks().await?;
        let lock =
            locks.into_iter().find(|lock| lock.scope == LockScope::Plan && lock.key == plan.id.as_str());
        let recent = self.store().event_recent(&plan.id, EVENTS_MAX).await?;
        let blocked = latest_block(&recent);
        let moved = remote_move(&recent);
        let (summary, mut holds, mut can_act) = explain(plan, decision.as_ref(), lock.as_ref());
        holds.extend(blocked);
        holds.extend(moved);
        holds.extend(self.why_waiting(plan.clone()).await?);
        if is_tended(plan)
            && let Some(asked) = self.asking(plan.id.clone()).await?
        {
            let command = format!("drydock decision show {asked}");
            let does = "shows the question that a subplan waits for".to_owned();
            can_act.insert(0, CanAct { who: "a person", command, does });
        }
        Ok(Why { summary, holds, can_act, lock, decision })
    }
}

/// Returns what the latest enforcement said, when it blocked and the plan has not moved since.
fn latest_block(recent: &[Recorded]) -> Option<String> {
    let mut told = recent.iter().take_while(|event| !event.kind.starts_with("plan."));
    let latest = told.find(|event| event.kind.starts_with("invariant."))?;
    if latest.kind != "invariant.blocked" {
        return None;
    }
    let at = latest.details["at"].as_str().unwrap_or("the next phase").to_owned();
    let findings = latest.details["findings"].as_array().cloned().unwrap_or_default();
    let lines: Vec<_> = findings.iter().filter_map(blocking_line).collect();
    Some(format!("{at} is blocked: {}", lines.join("; ")))
}

/// Names the newest commit by which somebody moved the plan's branch on the remote.
fn remote_move(recent: &[Recorded]) -> Option<String> {
    let synced = recent.iter().filter(|event| event.kind.starts_with("sync."));
    let arrived = |event: &Recorded| event.details["arrived"].as_array().and_then(|all| all.last().cloned());
    let commit = synced.filter_map(arrived).next()?;
    let part = |name: &str| commit[name].as_str().unwrap_or_default().to_owned();
    Some(format!("{} moved the branch on the remote by {} “{}”", part("author"), part("id"), part("subject")))
}

fn blocking_line(finding: &serde_json::Value) -> Option<String> {
    let name = finding["invariant"].as_str()?;
    let check = &finding["check"];
    let reason = check["violated"].as_str().or_else(|| check["unknown"].as_str())?;
    Some(format!("invariant {name}: {reason}"))
}

type Explanation = (String, Vec<String>, Vec<CanAct>);

fn explain(plan: &Plan, decision: Option<&Decision>, lock: Option<&Lock>) -> Explanation {
    let (phase, id) = (plan.stage.phase(), &plan.id);
    let mut holds: Vec<_> = lock.map(describe_lock).into_iter().collect();
    let mut can_act = Vec::new();
    if let Some(decision) = decision {
        holds.push(format!("decision {} is open: {}", decision.id, decision.question.text));
        can_act.extend(answers(decision));
    }
    let act = |who, verb: &str, does: &str| CanAct {
        who,
        command: format!("drydock plan {verb} {id}"),
        does: does.to_owned(),
    };
    let summary = match &plan.stage {
        Stage::Strategize(Progress::Queued)
        | Stage::Execute(Progress::Queued)
        | Stage::Apply(Progress::Queued) => {
            let runs = act("anyone", phase.name(), "runs the phase here and now");
            can_act.extend((!is_in_line(plan)).then_some(runs));
            let hurries = act("a person", "retry", "lets it go on before the limit is over");
            can_act.extend(plan.waits().map(|_| hurries));
            queued(plan, decision)
        }
        Stage::Strategize(Progress::Processing)
        | Stage::Execute(Progress::Processing)
        | Stage::Apply(Progress::Processing) => {
            can_act.push(match lock {
                Some(lock) if !lock.stale => act("a person", "cancel", "stops the run and ends the plan"),
                Some(_) | None => act("anyone", phase.name(), "takes the phase over and runs it again"),
            });
            processing(phase.name(), lock)
        }
        Stage::Strategize(Progress::Reached(Complete)) => {
            can_act.push(act("a person", "execute", "goes on to execute"));
            complete(plan, decision, "execute")
        }
        Stage::Execute(Progress::Reached(Complete)) if plan.place.is_some() => {
            "execute is complete; its parent takes the result up".to_owned()
        }
        Stage::Execute(Progress::Reached(Complete)) => {
            can_act.push(act("a person", "apply", "lands the result"));
            complete(plan, decision, "apply")
        }
        Stage::Apply(Progress::Reached(Settled::Applied { commit })) => {
            format!("the plan landed as {commit}")
        }
        Stage::Apply(Progress::Reached(Settled::Constrained { reasons })) => {
            holds.extend(reasons.iter().cloned());
            can_act.push(act("a person", "retry", "merges again with the target as it is then"));
            can_act.push(act("a person", "revert", "goes back to strategize"));
            "the merged result was not acceptable; nothing was moved".to_owned()
        }
        Stage::Strategize(_) | Stage::Execute(_) | Stage::Apply(_) => stopped(plan, decision),
    };
    if let Some(failure) = plan.stage.failure() {
        // The question of a divergence says what the failure says.
        if decision.is_none_or(|open| open.question.kind != DecisionKind::Divergence) {
            holds.push(format!("{phase} failed ({}): {}", failure.class.name(), failure.text));
        }
        if decision.is_none() {
            can_act.push(act("a person", "retry", "tries the phase again"));
        }
    }
    // What stops a run that goes on ends the plan too, and was said already.
    let cancel = act("a person", "cancel", "ends the plan; its work is kept");
    if !plan.stage.is_terminal() && can_act.iter().all(|way| way.command != cancel.command) {
        can_act.push(cancel);
    }
    (summary, holds, can_act)
}

/// Says how a plan stands that nothing but a person moves.
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

/// Says how a plan stands whose phase is complete, and what would come next.
fn complete(plan: &Plan, decision: Option<&Decision>, next: &str) -> String {
    let phase = plan.stage.phase();
    match decision {
        Some(_) => format!("{phase} is complete; {next} waits for a person's answer"),
        None => format!("{phase} is complete; {next} has not been asked for"),
    }
}

fn queued(plan: &Plan, decision: Option<&Decision>) -> String {
    let phase = plan.stage.phase();
    // No worker takes up what a decision holds back.
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

fn answers(decision: &Decision) -> impl Iterator<Item = CanAct> {
    decision.question.options.iter().map(|option| CanAct {
        who: "a person",
        command: format!("drydock decision resolve {} {}", decision.id, typed(&option.id)),
        does: option.label.clone(),
    })
}

/// Returns how an option is typed: an agent's may have spaces, or look like an option of ours.
fn typed(id: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || ['_', '-', '.'].contains(&letter);
    if id.chars().all(plain) && !id.starts_with('-') {
        format!("--option {id}")
    } else {
        format!("--option='{}'", id.replace('\'', r"'\''"))
    }
}

/// Says whether it is a subplan that is not called yet: its parent does that, and nobody else.
fn is_in_line(plan: &Plan) -> bool {
    plan.place.as_ref().is_some_and(|place| place.turn == Turn::InLine)
}

/// Where it waits as a parent of subplans, or as one of them.
fn among_others(plan: &Plan) -> Option<String> {
    let phase = plan.stage.phase();
    match (&plan.fanout, &plan.place) {
        (Some(fanout), _) if is_tended(plan) => {
            let settled = fanout.pieces.iter().filter(|piece| piece.is_settled()).count();
            Some(format!(
                "{phase} is the work of {} subplans, of which {settled} are settled",
                fanout.pieces.len()
            ))
        }
        // What it waits for first is the limit.
        (_, Some(_)) if plan.waits().is_some() => None,
        (_, Some(place)) if place.turn == Turn::InLine => {
            Some(format!("{phase} is queued until its parent calls it"))
        }
        (Some(_) | None, Some(_) | None) => None,
    }
}

fn processing(phase: &str, lock: Option<&Lock>) -> String {
    match lock {
        Some(lock) if lock.stale => format!("{phase} was being run by a process that is gone"),
        Some(lock) => format!(
            "{phase} is being run by process {} on {}",
            lock.holder.process.pid, lock.holder.process.host
        ),
        None => format!("{phase} was being run by a process that let go of it"),
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

#[cfg(test)]
mod tests {
    use super::typed;

    /// Breaks when what `plan why` says cannot be typed as it stands.
    #[test]
    fn an_option_is_shown_as_it_is_typed() {
        assert_eq!(typed("restore_local"), "--option restore_local");
        assert_eq!(typed("the red one"), "--option='the red one'");
        assert_eq!(typed("--left"), "--option='--left'");
        assert_eq!(typed("don't"), r"--option='don'\''t'");
    }
}
