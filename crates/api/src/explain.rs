//! The explanation of a plan: its task, choices, guidance and rejections.

use serde::{Deserialize, Serialize};

use crate::{NumberedChoice, Phase, State};

/// The explanation of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Explanation {
    /// The plan's id.
    pub plan: String,
    /// The plan's phase.
    pub phase: Phase,
    /// The state in the phase.
    pub state: State,
    /// The task.
    pub task: String,
    /// The condition under which the task is done.
    #[serde(default)]
    pub definition_of_done: Option<String>,
    /// The origin of the strategy, in one sentence.
    pub strategy: String,
    /// The number of the requested choice. If set, `choices` has the choices it follows from, the choice itself, and
    /// those that follow from it, and the other lists are empty.
    #[serde(default)]
    pub about: Option<String>,
    /// The choices of the strategy, in the order of the tree.
    #[serde(default)]
    pub choices: Vec<NumberedChoice>,
    /// The choices that agents made after the strategy; they have no numbers.
    #[serde(default)]
    pub later: Vec<NumberedChoice>,
    /// The guidance that people added.
    #[serde(default)]
    pub guidance: Vec<Said>,
    /// The answers of people, without approvals of a phase.
    #[serde(default)]
    pub answers: Vec<Answered>,
    /// The reasons for which it was reverted to Strategize.
    #[serde(default)]
    pub reversions: Vec<Said>,
    /// The rejections of its work.
    #[serde(default)]
    pub refused: Vec<Refused>,
}

/// A text with its time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Said {
    /// When it was written.
    pub at: String,
    /// The text.
    pub text: String,
}

/// A question and its answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Answered {
    /// When it was answered.
    pub at: String,
    /// The question.
    pub question: String,
    /// The chosen option.
    pub option: String,
    /// Text that the person added.
    #[serde(default)]
    pub note: Option<String>,
    /// The name of the person.
    pub by: String,
}

/// A rejection of the work.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Refused {
    /// When it was rejected.
    pub at: String,
    /// The run whose work was rejected.
    #[serde(default)]
    pub run: Option<String>,
    /// What rejected it: a validation, a reviewer, apply.
    pub by: String,
    /// The number of the proposal, if reviewers rejected it.
    #[serde(default)]
    pub proposal: Option<u64>,
    /// The reason.
    pub reason: String,
}

/// Selects the part of a plan to explain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExplainQuery {
    /// Only this choice: its number, its id or its question.
    pub choice: Option<String>,
}

/// The explanation of one plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OneExplanation {
    /// The explanation.
    pub explanation: Explanation,
}
