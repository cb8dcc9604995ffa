//! Decisions: stored questions to a person, with the plan, phase and run that they belong to. A decision is
//! opened in the same commit as the state that waits for it, and every option states its effect.
//! `question.rs` builds the questions.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    Budget, ConflictSide, DecisionId, GrantTerms, Name, Phase, PlanId, Postponed, RunId, Subplan, Timestamp,
};

/// A question to a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// Unique id.
    pub id: DecisionId,
    /// The plan that waits for the answer.
    pub plan: PlanId,
    /// The phase of the plan when it asked.
    pub phase: Phase,
    /// The run that asked, if one had started.
    pub run: Option<RunId>,
    /// The question and its options.
    pub question: Question,
    /// Whether the decision is still open.
    pub status: DecisionStatus,
    /// When the decision was opened.
    pub created_at: Timestamp,
}

/// A question and its possible answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The kind of question.
    pub kind: DecisionKind,
    /// The text of the question.
    pub text: String,
    /// The possible answers.
    pub options: Vec<DecisionOption>,
    /// Facts that help a person to answer.
    pub details: Value,
}

/// The kind of question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionKind {
    /// Approval of the next phase.
    Gate,
    /// A question from an agent.
    Agent,
    /// An agent's request to use a tool.
    Permission,
    /// The branch and its remote have diverged.
    Divergence,
    /// The repository does not show whether a landing happened.
    ApplyOutcome,
    /// The result still fails its validations after the allowed number of rounds.
    Validation,
    /// The result of a subplan conflicts with the results joined so far.
    Conflict,
    /// Subplans failed.
    Subplans,
    /// Reviewers did not acknowledge the result after the allowed number of rounds or attempts.
    Review,
    /// An agent met its rate limit too often, or the limit lasts longer than a plan waits automatically.
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
    /// The id that is typed to choose this option.
    pub id: String,
    /// The text shown to people.
    pub label: String,
    /// The effect of choosing this option.
    pub effect: OptionEffect,
}

/// The effect of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OptionEffect {
    /// The next phase may start.
    Approve,
    /// The phase starts again, with the answer as feedback.
    Requeue,
    /// The phase starts again from this commit. In Apply, a commit that was not validated and reviewed goes
    /// through Execute first.
    StartFrom {
        /// The commit from which the new run starts.
        commit: String,
        /// The tip of the remote branch that the plan's branch is to replace, if the person chose so.
        replaces: Option<String>,
    },
    /// The phase starts again on this commit without a writer: its validations run and its reviewers are
    /// asked again.
    Review {
        /// The commit to review.
        commit: String,
        /// The tip of the remote branch that the plan's branch is to replace.
        replaces: Option<String>,
    },
    /// A permission is recorded, and the phase starts again, from the work so far if there is any.
    Grant {
        /// The request that is granted or denied.
        terms: GrantTerms,
        /// The commit with the work so far.
        work: Option<String>,
        /// The tip of the remote branch that the plan's branch is to replace.
        replaces: Option<String>,
    },
    /// The phase starts again at this time.
    WaitUntil(Postponed),
    /// The plan gets this budget, and its phase starts again, from the work so far if there is any.
    SetBudget {
        /// The new budget.
        budget: Budget,
        /// The commit with the work so far.
        work: Option<String>,
    },
    /// The conflict of a subplan is resolved in this way.
    Join(ConflictResolution),
    /// The failed subplans are retried.
    RetryLost,
    /// The plan continues without the failed subplans.
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

/// How the conflict of a subplan's result is resolved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConflictResolution {
    /// One side wins where both changed the same place.
    Take {
        /// The subplan whose result conflicts.
        piece: Name,
        /// The side that wins.
        side: ConflictSide,
    },
    /// The result is left out.
    Drop {
        /// The subplan whose result conflicts.
        piece: Name,
    },
    /// An agent resolves the conflict, as an additional subplan.
    Hand {
        /// The subplan whose result conflicts.
        piece: Name,
        /// The subplan that resolves the conflict.
        by: Box<Subplan>,
    },
}

impl ConflictResolution {
    pub(crate) fn piece(&self) -> &Name {
        match self {
            ConflictResolution::Take { piece, .. }
            | ConflictResolution::Drop { piece }
            | ConflictResolution::Hand { piece, .. } => piece,
        }
    }
}

/// Whether a decision is still open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionStatus {
    /// No answer yet.
    Open,
    /// A person answered.
    Resolved(Resolution),
    /// The question no longer applies.
    Withdrawn {
        /// Why the question was withdrawn.
        reason: String,
        /// When the question was withdrawn.
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

/// The recorded answer of a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resolution {
    /// The id of the chosen option.
    pub option: String,
    /// The person's note.
    pub note: Option<String>,
    /// The person's name.
    pub by: String,
    /// The channel of the answer, e.g. `command line`.
    #[serde(default)]
    pub via: String,
    /// When the answer was recorded.
    pub at: Timestamp,
}

/// An answer that a person gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The decision that is answered.
    pub decision: DecisionId,
    /// The id of the chosen option.
    pub option: String,
    /// The person's note.
    pub note: Option<String>,
}

/// The check that sent a result back to the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RejectedBy {
    /// A required validation failed.
    Validation,
    /// A critical reviewer refused the result.
    Review,
}

/// A change to the decision records, as part of a transition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecisionChange {
    /// Stores a new decision.
    Open(Decision),
    /// Adds facts to the open decision that became known after it was asked.
    Amend(Decision),
    /// Closes the open decision with an answer.
    Resolve(DecisionId, Resolution),
    /// Closes the open decision without an answer.
    Withdraw {
        /// The decision.
        id: DecisionId,
        /// Why it is withdrawn.
        reason: String,
        /// When it is withdrawn.
        at: Timestamp,
    },
}
