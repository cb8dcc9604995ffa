//! The choices and subplans that a strategist reported in earlier runs of the same Strategize phase. A
//! question, a rate limit, a used-up budget or an interruption can end a run early; the next run continues
//! from these reports. They are read from the feed.

use drydock_domain::{Choice, ErrorClass, StoredEvent, put_choice};
use drydock_store::EventFilter;
use serde::Deserialize;
use serde_json::json;

use super::agents::AgentRole;
use super::scope::RunContext;
use crate::error::EngineError;
use crate::tree::SubplanDraft;

/// Number of events per read.
const PAGE: i64 = 1_000;

/// The choices and subplans of earlier runs that still count.
#[derive(Debug, Default)]
pub(super) struct EarlierOutput {
    pub(super) choices: Vec<Choice>,
    pub(super) subplans: Vec<SubplanDraft>,
    /// Subplans of interrupted runs. The task of the next run does not name them, so they count only if the
    /// agent loads its session and thus knows them. Without the session it reports the whole strategy again,
    /// and the same work would be done twice.
    pub(super) of_session: Vec<SubplanDraft>,
}

/// The state while the feed is read in order.
#[derive(Debug, Default)]
struct EarlierOutputReader {
    /// Reported by runs that ended early.
    carried: EarlierOutput,
    /// Reported by the run whose events are being read.
    current: EarlierOutput,
}

impl RunContext<'_> {
    /// Returns the reports of a strategist's earlier runs that ended early. Empty for other roles.
    pub(super) async fn carried(&self, role: AgentRole) -> Result<EarlierOutput, EngineError> {
        if role != AgentRole::Strategist || self.plan.runs < 2 {
            return Ok(EarlierOutput::default());
        }
        let (mut reading, mut after) = (EarlierOutputReader::default(), 0);
        loop {
            let filter = EventFilter { after, plan: Some(self.plan.id.clone()), limit: PAGE };
            let events = self.engine.store().event_list(&filter).await?;
            events.iter().for_each(|event| reading.read(event));
            match events.last() {
                Some(last) if events.len() as i64 == PAGE => after = last.seq,
                Some(_) | None => return Ok(reading.carried),
            }
        }
    }
}

impl EarlierOutputReader {
    fn read(&mut self, event: &StoredEvent) {
        match event.kind.as_str() {
            "plan.started" => self.current = EarlierOutput::default(),
            "agent.choice" => {
                let choice = Choice::deserialize(&event.details).ok();
                choice.into_iter().for_each(|choice| put_choice(&mut self.current.choices, choice));
            }
            "agent.subplan" => {
                let piece = SubplanDraft::deserialize(&event.details["piece"]).ok();
                piece.into_iter().for_each(|piece| self.current.put(piece));
            }
            // In a new session the agent does not know its reports from the previous one.
            "agent.session" if event.details["loaded"] == json!(false) => self.carried.of_session.clear(),
            // The run ended early, but its reports are still valid.
            "plan.waiting" | "plan.taken_over" | "agent.rate_limited" => {
                let interrupted = event.kind == "plan.taken_over";
                let EarlierOutput { choices, subplans, .. } = std::mem::take(&mut self.current);
                choices.into_iter().for_each(|choice| put_choice(&mut self.carried.choices, choice));
                for piece in subplans {
                    match interrupted {
                        true => self.carried.put_of_session(piece),
                        false => self.carried.put(piece),
                    }
                }
            }
            // The next run reports everything again: the strategy was not valid, or the phase has ended.
            "plan.errored" if event.details["error"]["class"] == json!(ErrorClass::StrategyInvalid) => {
                *self = EarlierOutputReader::default();
            }
            "plan.completed" | "plan.reverted" => *self = EarlierOutputReader::default(),
            _ => {}
        }
    }
}

impl EarlierOutput {
    /// Adds a subplan. A later report of the same subplan replaces the earlier one.
    fn put(&mut self, piece: SubplanDraft) {
        self.of_session.retain(|one| one.name != piece.name);
        match self.subplans.iter_mut().find(|one| one.name == piece.name) {
            Some(one) => *one = piece,
            None => self.subplans.push(piece),
        }
    }

    fn put_of_session(&mut self, piece: SubplanDraft) {
        match self.of_session.iter_mut().find(|one| one.name == piece.name) {
            Some(one) => *one = piece,
            None => self.of_session.push(piece),
        }
    }

    /// Removes a subplan that the current run reported itself.
    pub(super) fn forget(&mut self, name: &str) {
        self.subplans.retain(|one| one.name != name);
        self.of_session.retain(|one| one.name != name);
    }

    /// Adds the subplans that an agent knows because it loaded its session.
    pub(super) fn session_loaded(&mut self) {
        std::mem::take(&mut self.of_session).into_iter().for_each(|piece| self.put(piece));
    }
}

#[cfg(test)]
mod tests {
    use drydock_domain::Timestamp;
    use serde_json::Value;

    use super::*;

    fn read(events: &[(&str, Value)]) -> EarlierOutput {
        let mut reading = EarlierOutputReader::default();
        for (kind, details) in events {
            let (kind, details, at) = ((*kind).to_owned(), details.clone(), Timestamp::from_micros(1));
            reading.read(&StoredEvent { seq: 1, at, kind, plan: None, run: None, revision: None, details });
        }
        reading.carried
    }

    fn names(pieces: &[SubplanDraft]) -> Vec<&str> {
        pieces.iter().map(|piece| piece.name.as_str()).collect()
    }

    /// N11. Breaks when an agent that loads its session loses the subplans it reported there, or when a new
    /// session gets them.
    #[test]
    fn pieces_of_an_interrupted_run_count_in_its_session() {
        let told = |name: &str| ("agent.subplan", json!({ "piece": { "name": name, "task": "do it" } }));
        let session = |loaded: bool| ("agent.session", json!({ "loaded": loaded }));
        let (asked, interrupted) = (("plan.waiting", Value::Null), ("plan.taken_over", Value::Null));
        let started = ("plan.started", Value::Null);
        let first = [session(false), told("a"), asked, started, told("b"), interrupted.clone()];
        let mut carried = read(&first);
        assert_eq!((names(&carried.subplans), names(&carried.of_session)), (vec!["a"], vec!["b"]));
        carried.session_loaded();
        assert_eq!(names(&carried.subplans), ["a", "b"]);
        let anew = [&first[..], &[session(false), told("c"), interrupted]].concat();
        assert_eq!(names(&read(&anew).of_session), ["c"]);
    }
}
