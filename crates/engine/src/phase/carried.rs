//! The choices and subplans that a strategist reported in earlier runs of the same visit to Strategize. A question, a
//! rate limit, a used up budget or an interruption cuts a run short, and the next run does not start from nothing. They
//! are read back from the feed, where they were recorded.

use drydock_domain::{Choice, ErrorClass, Recorded, put_choice};
use drydock_store::EventFilter;
use serde::Deserialize;
use serde_json::json;

use super::agents::Role;
use super::scope::Scope;
use crate::error::EngineError;
use crate::tree::SubplanDraft;

/// How many events are read at once.
const PAGE: i64 = 1_000;

/// What counts still of what earlier runs told.
#[derive(Debug, Default)]
pub(super) struct Carried {
    pub(super) choices: Vec<Choice>,
    pub(super) subplans: Vec<SubplanDraft>,
}

/// What was told, while the feed is read in its order.
#[derive(Debug, Default)]
struct Reading {
    /// By runs that were cut short.
    carried: Carried,
    /// By the run that goes on.
    current: Carried,
}

impl Scope<'_> {
    /// Returns what a strategist told before its run was cut short; nothing for others.
    pub(super) async fn carried(&self, role: Role) -> Result<Carried, EngineError> {
        if role != Role::Strategist || self.plan.runs < 2 {
            return Ok(Carried::default());
        }
        let (mut reading, mut after) = (Reading::default(), 0);
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

impl Reading {
    fn read(&mut self, event: &Recorded) {
        match event.kind.as_str() {
            "plan.started" => self.current = Carried::default(),
            "agent.choice" => {
                let choice = Choice::deserialize(&event.details).ok();
                choice.into_iter().for_each(|choice| put_choice(&mut self.current.choices, choice));
            }
            "agent.subplan" => {
                let piece = SubplanDraft::deserialize(&event.details["piece"]).ok();
                piece.into_iter().for_each(|piece| self.current.put(piece));
            }
            // The run was cut short by no fault of what it told.
            "plan.waiting" | "plan.taken_over" | "agent.rate_limited" => {
                let Carried { choices, subplans } = std::mem::take(&mut self.current);
                choices.into_iter().for_each(|choice| put_choice(&mut self.carried.choices, choice));
                subplans.into_iter().for_each(|piece| self.carried.put(piece));
            }
            // Told anew from the beginning: what was told could not be carried out, or the visit is over.
            "plan.errored" if event.details["error"]["class"] == json!(ErrorClass::StrategyInvalid) => {
                *self = Reading::default();
            }
            "plan.completed" | "plan.reverted" => *self = Reading::default(),
            _ => {}
        }
    }
}

impl Carried {
    /// Takes a piece in; a later word about the same piece replaces the earlier one.
    fn put(&mut self, piece: SubplanDraft) {
        match self.subplans.iter_mut().find(|one| one.name == piece.name) {
            Some(one) => *one = piece,
            None => self.subplans.push(piece),
        }
    }
}
