//! Explains a plan from its record and its feed: the guidance and answers of people, the rejections of its
//! work, and the choices of its agents. This module only collects facts. The caller writes the sentences.

use drydock_domain::{
    CHOICES_MAX, Choice, DecisionKind, Phase, Plan, RunId, StoredEvent, Timestamp, put_choice,
};
use drydock_store::EventFilter;
use serde_json::Value;

use crate::engine::Engine;
use crate::error::EngineError;

/// How many events are read at a time.
const PAGE: i64 = 500;
/// How many of the latest entries each list keeps.
const ENTRIES_MAX: usize = 100;

/// The facts in a plan's feed that explain it. Each list is in order and holds the latest hundred entries.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlanExplanation {
    /// The agent that made the strategy, if an agent did.
    pub strategist: Option<String>,
    /// Whether a person adopted a draft from the worktree.
    pub adopted: bool,
    /// The choices that agents took after Strategize.
    pub later: Vec<Choice>,
    /// The guidance that people gave.
    pub guidance: Vec<Remark>,
    /// The answers that people gave, without plain approvals of a phase.
    pub answers: Vec<AnsweredQuestion>,
    /// The reasons for which the plan was reverted to Strategize.
    pub reversions: Vec<Remark>,
    /// The reasons for which its work was sent back or refused.
    pub refused: Vec<RejectedWork>,
}

/// A text and its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remark {
    /// The time of the event.
    pub at: Timestamp,
    /// The text.
    pub text: String,
}

/// A question and its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnsweredQuestion {
    /// When the question was answered.
    pub at: Timestamp,
    /// The question; empty if its event was not found in the feed.
    pub question: String,
    /// The chosen option.
    pub option: String,
    /// The note that the person added.
    pub note: Option<String>,
    /// The name of the person.
    pub by: String,
}

/// A rejection of the work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectedWork {
    /// When the work was rejected.
    pub at: Timestamp,
    /// The run whose work was rejected.
    pub run: Option<RunId>,
    /// The check that rejected it: `validation tests`, `reviewer critic`, `apply`.
    pub by: String,
    /// The number of the proposal, for a rejection by a reviewer.
    pub proposal: Option<u64>,
    /// The reason for the rejection.
    pub reason: String,
}

impl Engine {
    /// Collects the facts that explain a plan.
    pub async fn explain(&self, plan: &Plan) -> Result<PlanExplanation, EngineError> {
        let mut gathering = Gathering::default();
        // Reads only up to the event that is the newest now. Otherwise a plan that keeps running could keep
        // this loop busy forever.
        let (mut after, newest) = (0, self.store().event_newest().await?);
        while after < newest {
            let filter = EventFilter { after, plan: Some(plan.id.clone()), limit: PAGE };
            let page = self.store().event_list(&filter).await?;
            page.iter().for_each(|event| gathering.hear(event));
            match page.last() {
                Some(last) if page.len() as i64 == PAGE => after = last.seq,
                Some(_) | None => break,
            }
            // Reads on SQLite never suspend, so yield the thread to other tasks.
            tokio::task::yield_now().await;
        }
        Ok(gathering.explanation)
    }
}

#[derive(Default)]
struct Gathering {
    explanation: PlanExplanation,
    phase: Option<Phase>,
    /// Open decisions: id, kind and question.
    open: Vec<(String, String, String)>,
}

impl Gathering {
    fn hear(&mut self, event: &StoredEvent) {
        let told = |name: &str| text(&event.details[name]);
        let said = |name: &str| Remark { at: event.at, text: told(name) };
        let refused = |by: String, proposal, reason| RejectedWork {
            at: event.at,
            run: event.run.clone(),
            by,
            proposal,
            reason,
        };
        let found = &mut self.explanation;
        match event.kind.as_str() {
            "plan.started" => {
                self.phase = serde_json::from_value(event.details["phase"].clone()).ok();
                if self.phase == Some(Phase::Strategize) {
                    // A new strategy discards the choices that were taken after the old one.
                    found.later.clear();
                    (found.strategist, found.adopted) = (None, false);
                }
            }
            "agent.started" if self.phase == Some(Phase::Strategize) => {
                found.strategist = Some(told("agent"))
            }
            "plan.strategy_adopted" => found.adopted = true,
            "agent.choice" if self.phase != Some(Phase::Strategize) => {
                if let Ok(choice) = serde_json::from_value(event.details.clone()) {
                    put_choice(&mut found.later, choice);
                    found.later.truncate(CHOICES_MAX);
                }
            }
            "plan.prompted" => push(&mut found.guidance, said("text")),
            "plan.reverted" => push(&mut found.reversions, said("reason")),
            "decision.opened" => self.open.push((told("id"), told("kind"), told("question"))),
            "decision.resolved" => {
                let id = told("id");
                let place = self.open.iter().position(|(open, ..)| *open == id);
                let opened = place.map(|at| self.open.swap_remove(at));
                let (_, kind, question) = opened.unwrap_or_default();
                let note = event.details["note"].as_str().map(str::to_owned);
                // A plain approval explains nothing, unless it has a note.
                if kind == DecisionKind::Gate.name() && note.is_none() {
                    return;
                }
                let (option, by) = (told("option"), told("by"));
                push(&mut found.answers, AnsweredQuestion { at: event.at, question, option, note, by });
            }
            "validation.failed" if event.details["required"] == true => {
                push(&mut found.refused, refused(format!("validation {}", told("name")), None, told("text")));
            }
            "review.refused" | "review.silent" if event.details["critical"] == true => {
                let proposal = event.details["proposal"].as_u64();
                push(
                    &mut found.refused,
                    refused(format!("reviewer {}", told("agent")), proposal, told("reason")),
                );
            }
            "plan.constrained" => {
                let reasons = event.details["reasons"].as_array().map(Vec::as_slice).unwrap_or_default();
                let reasons: Vec<_> = reasons.iter().map(text).collect();
                push(&mut found.refused, refused("apply".to_owned(), None, reasons.join("; ")));
            }
            _ => {}
        }
    }
}

fn push<T>(list: &mut Vec<T>, entry: T) {
    if list.len() == ENTRIES_MAX {
        list.remove(0);
    }
    list.push(entry);
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
