//! Views of a plan: its diff, its tree of choices and subplans, and why it is not moving.

use serde::{Deserialize, Serialize};

use crate::{Decision, Lock, Phase, PlanError, State};

/// The changes of a plan against its base.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Diff {
    /// A unified diff.
    pub text: String,
    /// The number of changed files.
    pub files: u64,
    /// The number of added lines.
    pub lines_added: u64,
    /// The number of deleted lines.
    pub lines_deleted: u64,
    /// The commit whose changes these are; null if no work has been saved yet.
    #[serde(default)]
    pub of: Option<DiffOf>,
}

/// The commit whose changes a diff shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DiffOf {
    /// The kind of commit.
    pub kind: DiffKind,
    /// The commit id.
    pub commit: String,
    /// The ref that keeps it, if it is a checkpoint.
    #[serde(default, rename = "ref")]
    pub reference: Option<String>,
    /// The first line of its message.
    pub label: String,
    /// Whether it was made by an earlier run than the plan's latest.
    #[serde(default)]
    pub earlier_run: bool,
}

/// The kind of commit whose changes a diff shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DiffKind {
    /// The result of Execute.
    Result,
    /// The work from which a run continues, before there is a result.
    GoesOn,
    /// The latest checkpoint, before there is a result.
    Snapshot,
}

/// The diff of one plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OneDiff {
    /// The diff.
    pub diff: Diff,
}

/// A plan with the choices of its strategy and its subplans.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Tree {
    /// The plan's id.
    pub plan: String,
    /// The plan's task.
    #[serde(default)]
    pub task: String,
    /// The plan's phase.
    pub phase: Phase,
    /// The state in the phase.
    pub state: State,
    /// The subplan's name; absent for a plan that is not a subplan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The status that its parent has recorded: open, ready, joined, handed, failed, cancelled, dropped, earlier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fate: Option<String>,
    /// The names of the subplans that it depends on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// The agent that does it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The reason why it waits, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
    /// When it was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
    /// When it last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<String>,
    /// The choices of the strategy, in the order of the tree.
    #[serde(default)]
    pub choices: Vec<NumberedChoice>,
    /// The plan's subplans.
    #[serde(default)]
    pub subplans: Vec<Tree>,
}

/// A decision that an agent took without asking.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "Choice")]
pub struct NumberedChoice {
    /// The position in the tree: `1.2` is the second choice that follows from the first.
    #[serde(default)]
    pub number: String,
    /// The id that the agent gave it.
    #[serde(default)]
    pub id: Option<String>,
    /// The choice that it follows from, as the agent names it.
    #[serde(default)]
    pub under: Option<String>,
    /// The question that was decided.
    pub question: String,
    /// The chosen answer.
    pub chosen: String,
    /// The alternatives that were not chosen.
    #[serde(default)]
    pub alternatives: Vec<String>,
    /// The reason.
    #[serde(default)]
    pub rationale: Option<String>,
    /// The agent's confidence, from 0 to 1.
    #[serde(default)]
    pub confidence: Option<f64>,
}

/// The tree of one plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OneTree {
    /// The tree.
    pub tree: Tree,
}

/// Why a plan is not moving, and how to continue it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Why {
    /// The current situation, in one sentence.
    pub summary: String,
    /// The reasons why it waits, one sentence each.
    #[serde(default)]
    pub holds: Vec<String>,
    /// The actions that continue it, and the actor of each.
    #[serde(default)]
    pub can_act: Vec<CanAct>,
    /// The lock on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<Lock>,
    /// The decision it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// Why its phase failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<PlanError>,
}

/// An action that continues a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CanAct {
    /// The actor: a person, a worker.
    pub who: String,
    /// The command to type; empty if there is none.
    #[serde(default)]
    pub command: String,
    /// The effect.
    pub does: String,
}

/// Why one plan is not moving.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OneWhy {
    /// The explanation.
    pub why: Why,
}
