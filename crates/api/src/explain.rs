//! Why a plan does what it does, for a person or a program to read.

use serde::{Deserialize, Serialize};

use crate::{Choice, Phase, State};

/// Why a plan does what it does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Explanation {
    /// The plan's id.
    pub plan: String,
    /// Its phase.
    pub phase: Phase,
    /// How far it got in it.
    pub state: State,
    /// The task.
    pub task: String,
    /// When it counts as done.
    #[serde(default)]
    pub definition_of_done: Option<String>,
    /// Where its strategy comes from, in one sentence.
    pub strategy: String,
    /// The number of the choice that was asked about; then `choices` are those it follows from, itself, and those that
    /// follow from it, and the lists behind are empty.
    #[serde(default)]
    pub about: Option<String>,
    /// What its strategy chose, in the order in which the tree is read.
    #[serde(default)]
    pub choices: Vec<Choice>,
    /// What agents chose by themselves after that; without numbers.
    #[serde(default)]
    pub later: Vec<Choice>,
    /// What people told it.
    #[serde(default)]
    pub guidance: Vec<Said>,
    /// What people answered, mere approvals of a phase left out.
    #[serde(default)]
    pub answers: Vec<Answered>,
    /// Why it went back to Strategize.
    #[serde(default)]
    pub reversions: Vec<Said>,
    /// What its work was sent back or refused for.
    #[serde(default)]
    pub refused: Vec<Refused>,
}

/// Something that was said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Said {
    /// When.
    pub at: String,
    /// What.
    pub text: String,
}

/// A question and its answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Answered {
    /// When it was answered.
    pub at: String,
    /// The question.
    pub question: String,
    /// The option.
    pub option: String,
    /// What was added.
    #[serde(default)]
    pub note: Option<String>,
    /// Who answered.
    pub by: String,
}

/// A judgement that the work could not pass.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Refused {
    /// When.
    pub at: String,
    /// In which run.
    #[serde(default)]
    pub run: Option<String>,
    /// Who: a validation, a reviewer, apply.
    pub by: String,
    /// Of which proposal, where reviewers judged one.
    #[serde(default)]
    pub proposal: Option<u64>,
    /// Why.
    pub reason: String,
}

/// Which part of a plan to explain.
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
