//! Decisions: questions to a person, and how one is answered.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::word::words;
use crate::{Phase, Plan};

words! {
    /// Whether a decision still waits.
    DecisionStatus {
        /// It does.
        Open = "open",
        /// A person answered.
        Resolved = "resolved",
        /// Its cause is gone.
        Withdrawn = "withdrawn",
    }
}

words! {
    /// In which order decisions are listed.
    DecisionOrder {
        /// The newest first.
        Newest = "newest",
        /// Open ones only, by how much they need a person: those of agents first, gates last, the oldest of each first.
        Need = "need",
    }
}

/// A question to a person.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Decision {
    /// Its id.
    pub id: String,
    /// The plan that asks.
    pub plan: String,
    /// The phase it asks in.
    pub phase: Phase,
    /// The run it asks for, if one had started.
    pub run: Option<String>,
    /// What kind of question, e.g. `gate`.
    pub kind: String,
    /// The question itself.
    pub question: String,
    /// The answers that are possible.
    pub options: Vec<DecisionOption>,
    /// Whether it still waits.
    pub status: DecisionStatus,
    /// What a person answered.
    pub resolution: Option<Resolution>,
    /// What a person needs to know to answer.
    #[serde(default)]
    pub details: Value,
    /// When it was opened.
    pub created_at: String,
}

/// One possible answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DecisionOption {
    /// What is typed to choose it.
    pub id: String,
    /// What it means.
    pub label: String,
    /// What it does, e.g. `approve`.
    pub effect: String,
    /// Whether it is chosen with a note alone: the note is the answer.
    #[serde(default)]
    pub needs_note: bool,
}

/// What a person answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Resolution {
    /// The chosen option.
    pub option: String,
    /// What the person added.
    #[serde(default)]
    pub note: Option<String>,
    /// Who answered.
    pub by: String,
    /// From where: `command line`, `http`.
    #[serde(default)]
    pub via: String,
    /// When.
    pub at: String,
}

/// Answers a decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Resolve {
    /// The chosen option.
    pub option: String,
    /// What the person adds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Which decisions to list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DecisionQuery {
    /// Only those that still wait.
    pub open: Option<bool>,
    /// Only those of this plan.
    pub plan: Option<String>,
    /// Only those with these ids, separated by commas.
    pub ids: Option<String>,
    /// In which order; default: the newest first.
    pub order: Option<DecisionOrder>,
    /// How many at most.
    pub limit: Option<u32>,
    /// Only those after this cursor, the `next` of an earlier answer.
    pub after: Option<String>,
}

/// A page of decisions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Decisions {
    /// The decisions.
    pub decisions: Vec<Decision>,
    /// Where the next page begins.
    #[serde(default)]
    pub next: Option<String>,
    /// How many are open in all; null unless only open ones are asked for.
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
