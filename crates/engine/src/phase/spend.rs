//! Enforces a plan's budget: counts the usage that an agent reports, emits it periodically so that a crash
//! loses little, and compares it with the budget. When a part of the budget is used up, the agent is stopped,
//! its work becomes a checkpoint, and a person is asked.

use std::time::Duration;

use drydock_agent::SessionUsage;
use drydock_domain::{Command, Event, Plan, Remains, ResourceUsage, micros};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::agents::AgentAssignment;
use super::scope::{RunContext, RunOutcome};
use crate::engine::{Engine, WORKER};
use crate::error::EngineError;
use crate::hold::PlanLockGuard;

/// Minimum time between usage events. A crash loses the usage since the last one.
const TOLD_EVERY: Duration = Duration::from_secs(10);
/// Time between usage events if only the elapsed time changed. Used if the budget limits time.
const TIME_TOLD_EVERY: Duration = Duration::from_secs(30);
/// Number of newest events that are searched for the last usage event of an abandoned run: more than a run
/// emits between two of them.
const EVENTS_MAX: i64 = 2_000;
/// The kind of the usage event.
const USAGE: &str = "agent.usage";

/// The usage emitted last, and the usage of the agent's session.
pub(super) struct UsageReporter {
    used: ResourceUsage,
    at: Option<Instant>,
    session: Option<TrackedSession>,
}

/// A session that a later run may resume.
struct TrackedSession {
    id: String,
    /// The total usage, and the part of it that was emitted.
    used: SessionUsage,
    told: SessionUsage,
}

impl UsageReporter {
    pub(super) fn nothing() -> Self {
        Self { used: ResourceUsage::default(), at: None, session: None }
    }

    /// Starts to track a session with the usage emitted for it before. `None` if the session cannot be loaded
    /// again.
    pub(super) fn begin_session(&mut self, session: Option<(String, SessionUsage)>) {
        self.session = session.map(|(id, told)| TrackedSession { id, used: told, told });
    }

    pub(super) fn session_used(&mut self, total: SessionUsage) {
        if let Some(session) = &mut self.session {
            session.used = total;
        }
    }
}

impl RunContext<'_> {
    /// Returns true if a part of the plan's budget is used up.
    pub(super) fn is_exhausted(&self) -> bool {
        let run = self.hold.tally().read().map_or(ResourceUsage::default(), |(_, used)| used);
        !self.plan.budget.used_up(self.plan.spent.plus(run)).is_empty()
    }

    /// Returns the remaining time of the run, if it is limited. A landing is not.
    pub(super) fn time_left(&self) -> Option<Duration> {
        let (_, used) = self.hold.tally().read()?;
        self.plan.budget.left(self.plan.spent.plus(used)).wall_ms.map(Duration::from_millis)
    }

    /// Checkpoints the work so far, and returns the end of a run that used up the budget.
    pub(super) async fn exhausted(&self, errand: &AgentAssignment<'_>) -> Result<RunOutcome, EngineError> {
        let work = self.remains_or_alert(errand).await?;
        Ok(self.exhausted_with(work))
    }

    /// Returns the end of a run that used up the budget, with its work.
    pub(super) fn exhausted_with(&self, work: Remains<String>) -> RunOutcome {
        RunOutcome::Report(Box::new(Command::Exhaust { run: Some(self.run.clone()), work }))
    }

    /// Emits the usage of the run, if that is due.
    pub(super) async fn emit_usage(&self, agent: &str, told: &mut UsageReporter) -> Result<(), EngineError> {
        let Some((_, used)) = self.hold.tally().read() else { return Ok(()) };
        let since = |least: Duration| told.at.is_none_or(|at| at.elapsed() >= least);
        let more = without_time(used) != without_time(told.used) && since(TOLD_EVERY);
        let timed = self.plan.budget.wall_ms.is_some() && since(TIME_TOLD_EVERY);
        if more || timed { self.tell(agent, used, told).await } else { Ok(()) }
    }

    /// Emits the usage of an agent's session after the agent has ended. A later run that resumes the session
    /// counts from there.
    pub(super) async fn tell_last_usage(
        &self,
        agent: &str,
        told: &mut UsageReporter,
    ) -> Result<(), EngineError> {
        let untold = told.session.as_ref().is_some_and(|session| session.used != session.told);
        match self.hold.tally().read() {
            Some((_, used)) if untold => self.tell(agent, used, told).await,
            Some(_) | None => Ok(()),
        }
    }

    /// Emits the usage of the run and of the session as one event, so that a crash loses both or neither.
    async fn tell(
        &self,
        agent: &str,
        used: ResourceUsage,
        told: &mut UsageReporter,
    ) -> Result<(), EngineError> {
        (told.used, told.at) = (used, Some(Instant::now()));
        let mut details = json!(used);
        details["agent"] = json!(agent);
        if let Some(session) = &mut told.session {
            let SessionUsage { tokens, cost_micros } = session.used;
            details["session"] = json!({ "id": session.id, "tokens": tokens, "cost_micros": cost_micros });
            session.told = session.used;
        }
        self.emit(Event::Agent { what: "usage", details }).await
    }
}

fn without_time(spent: ResourceUsage) -> ResourceUsage {
    ResourceUsage { wall_ms: 0, ..spent }
}

impl Engine {
    /// Restores the usage that was emitted by the process which abandoned a run, so that it is recorded when
    /// the run ends.
    pub(crate) async fn recover_usage(&self, hold: &PlanLockGuard, plan: &Plan) -> Result<(), EngineError> {
        let Some(run) = &plan.run else { return Ok(()) };
        let recent = self.store().event_recent(&plan.id, EVENTS_MAX).await?;
        let latest = recent.iter().find(|event| event.kind == USAGE && event.run.as_ref() == Some(run));
        if let Some(used) = latest.and_then(|event| serde_json::from_value(event.details.clone()).ok()) {
            hold.tally().recover(run.clone(), used);
        }
        Ok(())
    }

    /// Asks a person if a plan that is about to start has used up its budget.
    pub(crate) async fn ask_for_budget(
        &self,
        hold: &PlanLockGuard,
        plan: &Plan,
    ) -> Result<Option<Plan>, EngineError> {
        if plan.gate.is_some() || plan.budget.used_up(plan.used()).is_empty() {
            return Ok(None);
        }
        let work = match plan.judges_first() {
            true => Remains::Result(plan.take_up.clone()),
            false => Remains::Work(plan.take_up.clone()),
        };
        Ok(Some(self.issue(hold, Command::Exhaust { run: None, work }, WORKER).await?.plan))
    }
}

/// Parses the usage that an agent reports, or returns why it is not valid.
pub(super) fn usage(
    tokens: Option<u64>,
    cost_usd: Option<&Value>,
    tool_calls: Option<u64>,
) -> Result<ResourceUsage, String> {
    let cost_micros = match cost_usd {
        None => 0,
        Some(Value::String(text)) => rounded(text.trim()).ok_or_else(|| wrong(text))?,
        Some(other) => rounded(&other.to_string()).ok_or_else(|| wrong(&other.to_string()))?,
    };
    let (tokens, tool_calls) = (tokens.unwrap_or(0), tool_calls.unwrap_or(0));
    Ok(ResourceUsage { tokens, cost_micros, wall_ms: 0, tool_calls })
}

/// Parses an amount. Fractions of a millionth are rounded up.
fn rounded(text: &str) -> Option<u64> {
    match text.split_once('.') {
        Some((whole, part)) if part.len() > 6 && part.bytes().all(|byte| byte.is_ascii_digit()) => {
            let exact = part[6..].bytes().all(|byte| byte == b'0');
            Some(micros(&format!("{whole}.{}", &part[..6]))?.saturating_add(u64::from(!exact)))
        }
        Some(_) | None => micros(text),
    }
}

fn wrong(text: &str) -> String {
    format!(
        "cost_usd {text:?} is not an amount of US dollars; write it as \"0.12\", with at most six decimals"
    )
}

#[cfg(test)]
mod tests {
    use super::usage;
    use serde_json::json;

    #[test]
    fn money_is_read_exactly_or_not_at_all() {
        for (cost, micros) in [
            (json!("0.12"), 120_000),
            (json!(0.1), 100_000),
            (json!(2), 2_000_000),
            (json!("0.1234567"), 123_457),
        ] {
            assert_eq!(usage(None, Some(&cost), None).unwrap().cost_micros, micros, "{cost}");
        }
        for cost in [json!("1e3"), json!(-1), json!("free"), json!(0.00000012), json!([])] {
            assert!(usage(Some(1), Some(&cost), None).is_err(), "{cost}");
        }
    }
}
