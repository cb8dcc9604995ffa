//! What can be seen of a plan beside itself: its diff, its tree of choices, and what holds it.

use serde::{Deserialize, Serialize};

use crate::{Decision, Lock, Phase, PlanError, State};

/// The changes of a plan against its base.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Diff {
    /// A unified diff.
    pub text: String,
    /// How many files changed.
    pub files: u64,
    /// How many lines were added.
    pub lines_added: u64,
    /// How many lines were deleted.
    pub lines_deleted: u64,
    /// Whose changes these are; null as long as no work is kept.
    #[serde(default)]
    pub of: Option<DiffOf>,
}

/// Whose changes a diff shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct DiffOf {
    /// What it is.
    pub kind: DiffKind,
    /// Its commit.
    pub commit: String,
    /// The ref that keeps it, where that is a snapshot.
    #[serde(default, rename = "ref")]
    pub reference: Option<String>,
    /// The first line of its message.
    pub label: String,
    /// Whether it is the work of an earlier run than the plan's latest.
    #[serde(default)]
    pub earlier_run: bool,
}

/// What the commit is whose changes a diff shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DiffKind {
    /// The result of Execute.
    Result,
    /// The work that a run goes on with; there is no result yet.
    GoesOn,
    /// The latest snapshot; there is no result yet.
    Snapshot,
}

/// The diff of one plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OneDiff {
    /// The diff.
    pub diff: Diff,
}

/// A plan with what its strategy chose and the plans it spawned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Tree {
    /// The plan's id.
    pub plan: String,
    /// Its task.
    #[serde(default)]
    pub task: String,
    /// Its phase.
    pub phase: Phase,
    /// How far it got in it.
    pub state: State,
    /// Its name among its siblings, when it is a subplan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What its parent has recorded of it: open, ready, joined, handed, failed, cancelled, dropped, earlier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fate: Option<String>,
    /// Which siblings come before it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
    /// Who does it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// What it waits for, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
    /// When it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
    /// When it last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<String>,
    /// What its strategy chose, in the order in which the tree is read.
    #[serde(default)]
    pub choices: Vec<Choice>,
    /// The plans it spawned.
    #[serde(default)]
    pub subplans: Vec<Tree>,
}

/// A decision that an agent took by itself.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Choice {
    /// Its place in the tree: `1.2` is the second that follows from the first.
    #[serde(default)]
    pub number: String,
    /// What the agent calls it.
    #[serde(default)]
    pub id: Option<String>,
    /// The choice that it follows from, as the agent names it.
    #[serde(default)]
    pub under: Option<String>,
    /// What was to be decided.
    pub question: String,
    /// What was taken.
    pub chosen: String,
    /// What was not.
    #[serde(default)]
    pub alternatives: Vec<String>,
    /// Why.
    #[serde(default)]
    pub rationale: Option<String>,
    /// How sure the agent is, from 0 to 1.
    #[serde(default)]
    pub confidence: Option<f64>,
}

/// The tree of one plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OneTree {
    /// The tree.
    pub tree: Tree,
}

/// What holds a plan, and who can act.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Why {
    /// Where the plan stands, in one sentence.
    pub summary: String,
    /// What holds it, one sentence each.
    #[serde(default)]
    pub holds: Vec<String>,
    /// Who can move it on, and how.
    #[serde(default)]
    pub can_act: Vec<CanAct>,
    /// The lock that is held on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<Lock>,
    /// The decision it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// Why its phase failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<PlanError>,
}

/// One way to move a plan on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct CanAct {
    /// Who: a person, a worker.
    pub who: String,
    /// What to type; empty when nothing is typed.
    #[serde(default)]
    pub command: String,
    /// What it does.
    pub does: String,
}

/// What holds one plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OneWhy {
    /// What holds it.
    pub why: Why,
}
