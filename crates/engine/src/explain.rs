//! Why a plan does what it does, gathered from the plan and its feed: what people told it, what it was sent back for, and
//! what its agents chose on the way. The words are the reader's to make; nothing here is guessed.

use drydock_domain::{
    CHOICES_MAX, Choice, DecisionKind, Phase, Plan, Recorded, RunId, Timestamp, put_choice,
};
use drydock_store::EventFilter;
use serde_json::Value;

use crate::engine::Engine;
use crate::error::EngineError;

/// How many events are read at a time.
const PAGE: i64 = 500;
/// How many entries each list has at the most; the latest ones.
const ENTRIES_MAX: usize = 100;

/// What a plan's feed says about why it does what it does. Each list is in order, the latest hundred of it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Explanation {
    /// Who made the strategy, where an agent did.
    pub strategist: Option<String>,
    /// Whether a draft in the worktree was adopted by a person.
    pub adopted: bool,
    /// What agents chose after Strategize.
    pub later: Vec<Choice>,
    /// What people told it.
    pub guidance: Vec<Said>,
    /// What people answered, mere approvals of a phase left out.
    pub answers: Vec<Answered>,
    /// Why it went back to Strategize.
    pub reversions: Vec<Said>,
    /// What its work was sent back or refused for.
    pub refused: Vec<Refused>,
}

/// Something that was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// When.
    pub at: Timestamp,
    /// What.
    pub text: String,
}

/// A question and its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// When it was answered.
    pub at: Timestamp,
    /// The question; empty when it is older than the feed that was read.
    pub question: String,
    /// The option.
    pub option: String,
    /// What was added.
    pub note: Option<String>,
    /// Who answered.
    pub by: String,
}

/// A judgement that the work could not pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// When.
    pub at: Timestamp,
    /// In which run.
    pub run: Option<RunId>,
    /// Who: `validation tests`, `reviewer critic`, `apply`.
    pub by: String,
    /// Of which proposal, where reviewers judged one.
    pub proposal: Option<u64>,
    /// Why.
    pub reason: String,
}

impl Engine {
    /// Gathers why a plan does what it does.
    pub async fn explain(&self, plan: &Plan) -> Result<Explanation, EngineError> {
        let mut gathering = Gathering::default();
        // What is told while this reads is for the next look: a plan that goes on does not make it endless.
        let (mut after, newest) = (0, self.store().event_newest().await?);
        while after < newest {
            let filter = EventFilter { after, plan: Some(plan.id.clone()), limit: PAGE };
            let page = self.store().event_list(&filter).await?;
            page.iter().for_each(|event| gathering.hear(event));
            match page.last() {
                Some(last) if page.len() as i64 == PAGE => after = last.seq,
                Some(_) | None => break,
            }
            // A look on SQLite waits for nothing, and others want this thread too.
            tokio::task::yield_now().await;
        }
        Ok(gathering.explanation)
    }
}

#[derive(Default)]
struct Gathering {
    explanation: Explanation,
    phase: Option<Phase>,
    /// Decisions until they are answered: id, kind and question.
    open: Vec<(String, String, String)>,
}

impl Gathering {
    fn hear(&mut self, event: &Recorded) {
        let told = |name: &str| text(&event.details[name]);
        let said = |name: &str| Said { at: event.at, text: told(name) };
        let refused = |by: String, proposal, reason| Refused {
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
                    // A new strategy is made; what was chosen after the old one went with it.
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
                // That a phase might start says nothing, unless something was added.
                if kind == DecisionKind::Gate.name() && note.is_none() {
                    return;
                }
                let (option, by) = (told("option"), told("by"));
                push(&mut found.answers, Answered { at: event.at, question, option, note, by });
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
