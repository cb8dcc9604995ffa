//! Decisions: questions to a person, and their answers.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::word::words;
use crate::{Phase, Plan};

words! {
    /// Whether a decision is still open.
    DecisionStatus {
        /// Not answered yet.
        Open = "open",
        /// A person answered.
        Resolved = "resolved",
        /// No longer needed.
        Withdrawn = "withdrawn",
    }
}

words! {
    /// The order of a list of decisions.
    DecisionOrder {
        /// Newest first.
        Newest = "newest",
        /// Open ones only, most urgent first: questions of agents, then others, gates last. Within each kind, oldest
        /// first.
        Need = "need",
    }
}

/// A question to a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Decision {
    /// The decision's id.
    pub id: String,
    /// The plan that asks.
    pub plan: String,
    /// The phase of the plan when it asked.
    pub phase: Phase,
    /// The run that asked, if one had started.
    pub run: Option<String>,
    /// The kind of question, e.g. `gate`.
    pub kind: String,
    /// The text of the question.
    pub question: String,
    /// The possible answers.
    pub options: Vec<DecisionOption>,
    /// Whether it is still open.
    pub status: DecisionStatus,
    /// The answer, if there is one.
    pub resolution: Option<Resolution>,
    /// The details that a person needs to answer.
    #[serde(default)]
    pub details: Value,
    /// When it was opened.
    pub created_at: String,
}

/// One possible answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DecisionOption {
    /// The text to type to choose it.
    pub id: String,
    /// The text shown to a person.
    pub label: String,
    /// The effect, e.g. `approve`.
    pub effect: String,
    /// Whether the option needs a note, because the note is the answer.
    #[serde(default)]
    pub needs_note: bool,
}

/// The answer of a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Resolution {
    /// The chosen option.
    pub option: String,
    /// Text that the person added.
    #[serde(default)]
    pub note: Option<String>,
    /// The name of the person.
    pub by: String,
    /// How it was answered: `command line`, `http`.
    #[serde(default)]
    pub via: String,
    /// When it was answered.
    pub at: String,
}

/// Answers a decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Resolve {
    /// The chosen option.
    pub option: String,
    /// Text to add to the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Filters the list of decisions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DecisionQuery {
    /// Only open decisions.
    pub open: Option<bool>,
    /// Only decisions of this plan.
    pub plan: Option<String>,
    /// Only decisions with these ids, separated by commas.
    pub ids: Option<String>,
    /// The order; default: newest first.
    pub order: Option<DecisionOrder>,
    /// The maximum number of decisions.
    pub limit: Option<u32>,
    /// Continue after this cursor, the `next` of an earlier page.
    pub after: Option<String>,
}

/// A page of decisions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Decisions {
    /// The decisions.
    pub decisions: Vec<Decision>,
    /// The cursor of the next page; null on the last page.
    #[serde(default)]
    pub next: Option<String>,
    /// The number of all open decisions; null unless only open ones are requested.
    #[serde(default)]
    pub total: Option<u64>,
}

/// One decision.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OneDecision {
    /// The decision.
    pub decision: Decision,
}

/// An answered decision and its plan after the answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Resolved {
    /// The decision.
    pub decision: Decision,
    /// The plan.
    pub plan: Plan,
}
