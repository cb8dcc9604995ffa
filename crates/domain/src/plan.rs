//! A plan as it was read. Changing a copy changes nothing: only a transition does, and only `decide` makes one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    AgentRoles, Choice, Decision, DecisionId, Invariant, Name, PlanId, Profile, RunId, Stage, Timestamp,
    Validation,
};

/// One use of an action on a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Its id.
    pub id: PlanId,
    /// What was asked for; never changes.
    pub spec: Spec,
    /// Where it stands.
    pub stage: Stage,
    /// Grows by one with every committed transition.
    pub revision: i64,
    /// The latest attempt at a phase.
    pub run: Option<RunId>,
    /// How many runs there were.
    pub runs: u32,
    /// The plan that spawned it.
    pub parent: Option<PlanId>,
    /// The plan at the top of its tree.
    pub root: PlanId,
    /// The open gate, when the profile asks before the next phase.
    pub gate: Option<DecisionId>,
    /// The commit the work begins at.
    pub base_commit: String,
    /// The commit that runs begin at, where it is not the base: work that others added to the branch, or that a
    /// person brought back.
    #[serde(default)]
    pub work_from: Option<String>,
    /// Where the branch is to be put before the next run, because a person said so; done once.
    #[serde(default)]
    pub take_up: Option<String>,
    /// Where the remote's branch was when it was decided that the plan's branch replaces it.
    #[serde(default)]
    pub replaces: Option<String>,
    /// The commit that holds the result of Execute.
    pub head_commit: Option<String>,
    /// The run that made it; its changesets are what Apply lands.
    pub head_run: Option<RunId>,
    /// The commit that landed.
    pub landed_commit: Option<String>,
    /// A landing that was begun and whose end is not recorded yet.
    pub intent: Option<Intent>,
    /// What the strategy chose.
    pub choices: Vec<Choice>,
    /// What people added on the way: guidance, answers, reasons of reversions.
    pub feedback: Vec<String>,
    /// How often it went back to Strategize.
    pub reversions: u32,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When the current phase first started.
    pub phase_started_at: Option<Timestamp>,
    /// When the current phase reached its end.
    pub phase_completed_at: Option<Timestamp>,
}

/// What was asked for when the plan was made. A copy, so that later edits of the action change nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spec {
    /// The action's name.
    pub action: Name,
    /// The project's name.
    pub project: Name,
    /// The task, rendered.
    pub task: String,
    /// When it counts as done, rendered.
    pub definition_of_done: Option<String>,
    /// The arguments, defaults included.
    pub arguments: BTreeMap<String, String>,
    /// How much goes on without a person.
    pub profile: Profile,
    /// Who does it.
    pub agents: AgentRoles,
    /// What the result must pass: the action's and the project's.
    pub validations: Vec<Validation>,
    /// The action's own invariants.
    pub invariants: Vec<Invariant>,
    /// Whether it may be applied without any change.
    pub allow_empty: bool,
}

/// A landing that was begun: the target moves from one commit to another, or does not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    /// The target branch.
    pub target: String,
    /// What it pointed to.
    pub from: String,
    /// What it shall point to.
    pub to: String,
}

/// What is needed to make a plan.
#[derive(Debug, Clone)]
pub struct NewPlan {
    /// Its id.
    pub id: PlanId,
    /// What is asked for.
    pub spec: Spec,
    /// The commit the work begins at.
    pub base_commit: String,
}

/// A plan and its open decision, read in one transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// The plan.
    pub plan: Plan,
    /// The decision it waits for.
    pub pending: Option<Decision>,
}

impl Plan {
    /// Returns the decision that a person must answer before the plan goes on.
    pub fn pending_decision(&self) -> Option<&DecisionId> {
        self.stage.decision().or(self.gate.as_ref())
    }

    /// Returns the branch that its worktrees are on.
    pub fn branch(&self) -> String {
        format!("drydock/{}/work", self.id)
    }
}
