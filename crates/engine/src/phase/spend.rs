//! Keeping to a plan's budget: what an agent says it used is counted, told now and then so that a crash forgets little,
//! and compared; when something is used up the agent is stopped, its work is kept, and a person is asked.

use std::time::Duration;

use drydock_agent::SessionUse;
use drydock_domain::{Command, Event, Plan, Spent, micros};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::agents::Errand;
use super::limit::SO_FAR;
use super::scope::{End, Scope};
use crate::engine::{Engine, WORKER};
use crate::error::EngineError;
use crate::hold::Hold;

/// How often what was used is told at the most; a crash forgets what was used since.
const TOLD_EVERY: Duration = Duration::from_secs(10);
/// How often time alone is told, where it is limited.
const TIME_TOLD_EVERY: Duration = Duration::from_secs(30);
/// How far back the latest word of a run that was left is looked for: more than a run can say between two of them.
const EVENTS_MAX: i64 = 2_000;
/// The kind of event that tells it.
const USAGE: &str = "agent.usage";

/// When what was used was last told, and what is to be told of the agent's session.
pub(super) struct Told {
    used: Spent,
    at: Option<Instant>,
    session: Option<Session>,
}

/// A session that a later run may go on with.
struct Session {
    id: String,
    /// What it has used, and what of that was told.
    used: SessionUse,
    told: SessionUse,
}

impl Told {
    pub(super) fn nothing() -> Self {
        Self { used: Spent::default(), at: None, session: None }
    }

    /// Begins to tell of a session, of which this much was told before; of none, where it cannot be loaded again.
    pub(super) fn begin_session(&mut self, session: Option<(String, SessionUse)>) {
        self.session = session.map(|(id, told)| Session { id, used: told, told });
    }

    /// Notes what the session has used by now.
    pub(super) fn session_used(&mut self, total: SessionUse) {
        if let Some(session) = &mut self.session {
            session.used = total;
        }
    }
}

impl Scope<'_> {
    /// Says whether the plan may use no more of something.
    pub(super) fn is_exhausted(&self) -> bool {
        let run = self.hold.tally().read().map_or(Spent::default(), |(_, used)| used);
        !self.plan.budget.used_up(self.plan.spent.plus(run)).is_empty()
    }

    /// Returns how long the run may still go on, where that is limited. Landing is not.
    pub(super) fn time_left(&self) -> Option<Duration> {
        let (_, used) = self.hold.tally().read()?;
        self.plan.budget.left(self.plan.spent.plus(used)).wall_ms.map(Duration::from_millis)
    }

    /// Keeps the work so far, and returns the end of a run that used up the budget.
    pub(super) async fn exhausted(&self, errand: &Errand<'_>) -> Result<End, EngineError> {
        let work = self.work_or_alert(errand, SO_FAR).await?;
        Ok(self.exhausted_with(work))
    }

    /// Returns the end of a run that used up the budget, with the commit that keeps its work.
    pub(super) fn exhausted_with(&self, work: Option<String>) -> End {
        End::Report(Box::new(Command::Exhaust { run: Some(self.run.clone()), work }))
    }

    /// Tells what the run has used, when that is due.
    pub(super) async fn tell_usage(&self, agent: &str, told: &mut Told) -> Result<(), EngineError> {
        let Some((_, used)) = self.hold.tally().read() else { return Ok(()) };
        let since = |least: Duration| told.at.is_none_or(|at| at.elapsed() >= least);
        let more = without_time(used) != without_time(told.used) && since(TOLD_EVERY);
        let timed = self.plan.budget.wall_ms.is_some() && since(TIME_TOLD_EVERY);
        if more || timed { self.tell(agent, used, told).await } else { Ok(()) }
    }

    /// Tells what its session used when an agent has ended: a later run that goes on with it counts from there.
    pub(super) async fn tell_last_usage(&self, agent: &str, told: &mut Told) -> Result<(), EngineError> {
        let untold = told.session.as_ref().is_some_and(|session| session.used != session.told);
        match self.hold.tally().read() {
            Some((_, used)) if untold => self.tell(agent, used, told).await,
            Some(_) | None => Ok(()),
        }
    }

    /// What the run used and what the session had used by then are one event, so that they are remembered or forgotten
    /// together.
    async fn tell(&self, agent: &str, used: Spent, told: &mut Told) -> Result<(), EngineError> {
        (told.used, told.at) = (used, Some(Instant::now()));
        let mut details = json!(used);
        details["agent"] = json!(agent);
        if let Some(session) = &mut told.session {
            let SessionUse { tokens, cost_micros } = session.used;
            details["session"] = json!({ "id": session.id, "tokens": tokens, "cost_micros": cost_micros });
            session.told = session.used;
        }
        self.note(Event::Agent { what: "usage", details }).await
    }
}

fn without_time(spent: Spent) -> Spent {
    Spent { wall_ms: 0, ..spent }
}

impl Engine {
    /// Takes over what the process that left a run told of its use, so that it is recorded with what ends the run.
    pub(crate) async fn recover_usage(&self, hold: &Hold, plan: &Plan) -> Result<(), EngineError> {
        let Some(run) = &plan.run else { return Ok(()) };
        let recent = self.store().event_recent(&plan.id, EVENTS_MAX).await?;
        let latest = recent.iter().find(|event| event.kind == USAGE && event.run.as_ref() == Some(run));
        if let Some(used) = latest.and_then(|event| serde_json::from_value(event.details.clone()).ok()) {
            hold.tally().recover(run.clone(), used);
        }
        Ok(())
    }

    /// Asks a person when a plan that is to start has nothing left of its budget.
    pub(crate) async fn ask_for_budget(&self, hold: &Hold, plan: &Plan) -> Result<Option<Plan>, EngineError> {
        if plan.gate.is_some() || plan.budget.used_up(plan.used()).is_empty() {
            return Ok(None);
        }
        let work = plan.take_up.clone();
        Ok(Some(self.issue(hold, Command::Exhaust { run: None, work }, WORKER).await?.plan))
    }
}

/// Reads what an agent says it used, or says what is wrong with it.
pub(super) fn usage(
    tokens: Option<u64>,
    cost_usd: Option<&Value>,
    tool_calls: Option<u64>,
) -> Result<Spent, String> {
    let cost_micros = match cost_usd {
        None => 0,
        Some(Value::String(text)) => rounded(text.trim()).ok_or_else(|| wrong(text))?,
        Some(other) => rounded(&other.to_string()).ok_or_else(|| wrong(&other.to_string()))?,
    };
    let (tokens, tool_calls) = (tokens.unwrap_or(0), tool_calls.unwrap_or(0));
    Ok(Spent { tokens, cost_micros, wall_ms: 0, tool_calls })
}

/// Reads an amount; what is finer than a millionth is rounded up.
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
        "cost_usd {text:?} is no amount of US dollars; write it as \"0.12\", to a millionth at the finest"
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
