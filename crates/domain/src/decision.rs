//! Decisions: questions to a person, with the plan, phase and run they belong to. A decision is
//! opened in the same commit as the state that asks it, and every option states its effect. `question.rs` makes the
//! questions.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Budget, DecisionId, GrantTerms, Name, Phase, Piece, PlanId, Postponed, RunId, Side, Timestamp};

/// A question to a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// Its id.
    pub id: DecisionId,
    /// The plan that asks.
    pub plan: PlanId,
    /// The phase it asks in.
    pub phase: Phase,
    /// The run it asks for, if one had started.
    pub run: Option<RunId>,
    /// What is asked.
    pub question: Question,
    /// Whether it still waits.
    pub status: DecisionStatus,
    /// When it was opened.
    pub created_at: Timestamp,
}

/// What is asked, and what can be answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// What kind of question.
    pub kind: DecisionKind,
    /// The question itself.
    pub text: String,
    /// The answers that are possible.
    pub options: Vec<DecisionOption>,
    /// What a person needs to know to answer.
    pub details: Value,
}

/// What kind of question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionKind {
    /// May the next phase start?
    Gate,
    /// An agent asks.
    Agent,
    /// May an agent use a tool?
    Permission,
    /// The branch and its remote have diverged.
    Divergence,
    /// It cannot be told whether a landing happened.
    ApplyOutcome,
    /// The result fails its validations however often the agent mends it.
    Validation,
    /// The result of a subplan conflicts with what has joined.
    Conflict,
    /// Subplans came to nothing.
    Subplans,
    /// The reviewers do not agree however often the agent mends the result.
    Review,
    /// An agent's rate limit is met too often, or lasts too long to wait for unasked.
    RateLimit,
    /// The plan has used up its budget.
    Budget,
}

impl DecisionKind {
    /// Returns the name used in JSON and in the store.
    pub fn name(self) -> &'static str {
        match self {
            DecisionKind::Gate => "gate",
            DecisionKind::Agent => "agent",
            DecisionKind::Permission => "permission",
            DecisionKind::Divergence => "divergence",
            DecisionKind::ApplyOutcome => "apply_outcome",
            DecisionKind::Validation => "validation",
            DecisionKind::Conflict => "conflict",
            DecisionKind::Subplans => "subplans",
            DecisionKind::Review => "review",
            DecisionKind::RateLimit => "rate_limit",
            DecisionKind::Budget => "budget",
        }
    }
}

/// One possible answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionOption {
    /// What is typed to choose it.
    pub id: String,
    /// What it means.
    pub label: String,
    /// What it does.
    pub effect: OptionEffect,
}

/// What an answer does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OptionEffect {
    /// The next phase may start.
    Approve,
    /// The phase starts anew, with the answer as feedback.
    Requeue,
    /// The phase starts anew on this commit; in Apply, on another than was judged, Execute does.
    StartFrom {
        /// Where the new run begins.
        commit: String,
        /// Where the remote is that the branch shall replace, when the person says so.
        replaces: Option<String>,
    },
    /// The phase starts again on this commit without a writer: its validations run and its reviewers are asked again.
    Review {
        /// The proposal.
        commit: String,
        /// The tip of the remote that the branch is to replace.
        replaces: Option<String>,
    },
    /// A permission is recorded, and the phase starts again, on the work so far if there is any.
    Grant {
        /// The request that is granted or refused.
        terms: GrantTerms,
        /// The commit that keeps the work.
        work: Option<String>,
        /// The tip of the remote that the branch is to replace.
        replaces: Option<String>,
    },
    /// The phase starts anew when this time has come.
    WaitUntil(Postponed),
    /// The plan may use this much, and its phase starts anew, on the work so far where there is some.
    SetBudget {
        /// What it may use.
        budget: Budget,
        /// The commit that keeps the work.
        work: Option<String>,
    },
    /// The result of a subplan is settled like this.
    Join(JoinHow),
    /// The subplans that came to nothing are tried anew.
    RetryLost,
    /// The plan goes on without them.
    DropLost,
    /// The plan goes back to Strategize, with the answer as feedback.
    Revert,
    /// The plan is cancelled.
    Cancel,
}

impl OptionEffect {
    /// Returns the name used in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            OptionEffect::Approve => "approve",
            OptionEffect::Requeue => "requeue",
            OptionEffect::Grant { .. } => "grant",
            OptionEffect::StartFrom { .. } => "start_from",
            OptionEffect::Review { .. } => "review",
            OptionEffect::WaitUntil(_) => "wait_until",
            OptionEffect::SetBudget { .. } => "set_budget",
            OptionEffect::Join(_) => "join",
            OptionEffect::RetryLost => "retry_lost",
            OptionEffect::DropLost => "drop_lost",
            OptionEffect::Revert => "revert",
            OptionEffect::Cancel => "cancel",
        }
    }
}

/// How a result that conflicts is settled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JoinHow {
    /// One side is taken where both changed the same place.
    Take {
        /// Whose result.
        piece: Name,
        /// Which side.
        side: Side,
    },
    /// It is left out.
    Drop {
        /// Whose result.
        piece: Name,
    },
    /// An agent resolves it, as a piece of its own.
    Hand {
        /// Whose result.
        piece: Name,
        /// The piece that does it.
        by: Box<Piece>,
    },
}

impl JoinHow {
    pub(crate) fn piece(&self) -> &Name {
        match self {
            JoinHow::Take { piece, .. } | JoinHow::Drop { piece } | JoinHow::Hand { piece, .. } => piece,
        }
    }
}

/// Whether a decision still waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionStatus {
    /// It does.
    Open,
    /// A person answered.
    Resolved(Resolution),
    /// Its cause is gone.
    Withdrawn {
        /// Why.
        reason: String,
        /// When.
        at: Timestamp,
    },
}

impl DecisionStatus {
    /// Returns the name used in JSON and in the store.
    pub fn name(&self) -> &'static str {
        match self {
            DecisionStatus::Open => "open",
            DecisionStatus::Resolved(_) => "resolved",
            DecisionStatus::Withdrawn { .. } => "withdrawn",
        }
    }
}

/// What a person answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resolution {
    /// The chosen option.
    pub option: String,
    /// What the person added.
    pub note: Option<String>,
    /// Who answered.
    pub by: String,
    /// From where, e.g. `command line`.
    #[serde(default)]
    pub via: String,
    /// When.
    pub at: Timestamp,
}

/// An answer that a person gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// To which decision.
    pub decision: DecisionId,
    /// Which option.
    pub option: String,
    /// What the person adds.
    pub note: Option<String>,
}

/// Who sends a result back to the agent that made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SentBack {
    /// Its validations.
    Validation,
    /// Its reviewers.
    Review,
}

/// What a transition does to a decision record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecisionChange {
    /// Writes a new one.
    Open(Decision),
    /// Adds to the open one the facts learnt since it was asked.
    Amend(Decision),
    /// Closes the open one with an answer.
    Resolve(DecisionId, Resolution),
    /// Closes the open one without an answer.
    Withdraw {
        /// Which one.
        id: DecisionId,
        /// Why.
        reason: String,
        /// When.
        at: Timestamp,
    },
}
