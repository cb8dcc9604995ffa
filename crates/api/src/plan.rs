//! Plans as others see them, and what is sent to make and steer one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::word::words;
use crate::{Blocked, Offer, Roles};

words! {
    /// One of the three phases of a plan.
    Phase {
        /// An agent thinks the task through.
        Strategize = "strategize",
        /// Agents do the task in a worktree.
        Execute = "execute",
        /// The result lands on the target branch.
        Apply = "apply",
    }
}

words! {
    /// How far a plan got in its phase.
    State {
        /// Waits for a worker.
        Queued = "queued",
        /// A worker is at it.
        Processing = "processing",
        /// A person must answer a decision first.
        Waiting = "waiting",
        /// The phase reached its end.
        Complete = "complete",
        /// The phase failed.
        Errored = "errored",
        /// A person ended the plan.
        Cancelled = "cancelled",
        /// The result landed.
        Applied = "applied",
        /// The merged result is not acceptable; nothing was moved.
        Constrained = "constrained",
    }
}

/// One use of an action on a project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Plan {
    /// Its id.
    pub id: String,
    /// The action's name; null for a plan made of a bare task.
    pub action: Option<String>,
    /// The project's name.
    pub project: String,
    /// The branch that it lands on; null for a plan of an earlier version, which lands on its project's.
    #[serde(default)]
    pub target: Option<String>,
    /// Its phase.
    pub phase: Phase,
    /// How far it got in it.
    pub state: State,
    /// Grows by one with every committed transition.
    pub revision: i64,
    /// The latest attempt at a phase.
    pub run: Option<String>,
    /// The plan that spawned it.
    pub parent: Option<String>,
    /// The plan at the top of its tree.
    pub root: String,
    /// The profile's name.
    pub profile: String,
    /// The branch its work is on.
    pub branch: String,
    /// The commit the work begins at.
    pub base_commit: String,
    /// The commit that holds the result of Execute.
    pub head_commit: Option<String>,
    /// The commit that landed.
    pub landed_commit: Option<String>,
    /// Why the phase failed.
    pub error: Option<PlanError>,
    /// The decision that a person must answer before it goes on.
    pub pending_decision: Option<String>,
    /// How often it went back to Strategize.
    pub reversions: u32,
    /// When it was made.
    pub created_at: String,
    /// When it last changed.
    pub updated_at: String,
    /// When the current phase first started.
    pub phase_started_at: Option<String>,
    /// When the current phase reached its end.
    pub phase_completed_at: Option<String>,
    /// The task, rendered.
    #[serde(default)]
    pub task: String,
    /// When it counts as done, rendered.
    #[serde(default)]
    pub definition_of_done: Option<String>,
    /// The arguments, defaults included.
    #[serde(default)]
    pub arguments: BTreeMap<String, String>,
    /// Who does it.
    #[serde(default)]
    pub agents: Roles,
    /// How many runs there were.
    #[serde(default)]
    pub runs: u32,
    /// The open gate, when the profile asks before the next phase.
    #[serde(default)]
    pub gate: Option<String>,
    /// Why the merged result is not acceptable.
    #[serde(default)]
    pub constrained_by: Vec<String>,
    /// Why a person ended it.
    #[serde(default)]
    pub cancel_reason: Option<String>,
    /// What people added on the way.
    #[serde(default)]
    pub feedback: Vec<String>,
    /// A warning about the landing, such as a local branch that could not follow its remote.
    #[serde(default)]
    pub landing_warning: Option<String>,
    /// What the queued phase waits for, when it is not due before a time.
    #[serde(default)]
    pub waits: Option<Waits>,
    /// The latest interruption of the phase, until a run ends in another way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interruption: Option<Interruption>,
    /// What it may use; null when nothing is limited.
    #[serde(default)]
    pub budget: Option<Amounts>,
    /// What its runs used, as far as that is known and recorded.
    #[serde(default)]
    pub spent: Amounts,
    /// What the run that goes on has reserved of the budget; null when none does, or nothing is limited.
    #[serde(default)]
    pub reserved: Option<Amounts>,
    /// How far its subplans are; null for a plan that has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subplans: Option<SubplanCount>,
    /// The rules that keep it from its next phase, as they were last checked; null when none does.
    #[serde(default)]
    pub blocked: Option<Blocked>,
    /// The actions that the caller can take now, the most helpful first; absent in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offers: Option<Vec<Offer>>,
}

/// Amounts of what plans use; null where there is no limit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Amounts {
    /// Tokens of models.
    pub tokens: Option<u64>,
    /// Money in US dollars, exact to a millionth.
    pub cost_usd: Option<String>,
    /// Seconds in which runs went on.
    pub wall_s: Option<u64>,
    /// Uses of tools.
    pub tool_calls: Option<u64>,
}

/// Why a queued phase is not due yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Waits {
    /// When it is due.
    pub until: String,
    /// What for: `rate_limit`, `remote_unreachable` or `target_contended`.
    pub cause: String,
    /// The same, to be read.
    #[serde(default)]
    pub reason: String,
    /// Whose limit it is; empty if the cause is not a limit.
    pub agent: String,
    /// How often in a row.
    pub times: u32,
}

/// A run that was interrupted, and where the next one starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Interruption {
    /// The interrupted run.
    pub run: String,
    /// Why: `owner_gone`, `interrupted`, `stopped` (by a person at the command line) or `stopped_above` (a person stopped the plan above).
    pub cause: String,
    /// The number of the checkpoint that the next run starts from; null if there is none.
    #[serde(default)]
    pub checkpoint: Option<u64>,
    /// The commit of that checkpoint.
    #[serde(default)]
    pub commit: Option<String>,
    /// The same, to be read.
    pub text: String,
}

/// Why a phase failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PlanError {
    /// What kind of failure.
    pub class: String,
    /// What happened, for a person to read.
    pub text: String,
}

/// Asks for a new plan: an action or a bare task, on a project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPlan {
    /// The action to use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// The task, when no action is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The project to work on.
    pub project: String,
    /// The branch to land on; the project's when none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The agent to use instead of the action's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The arguments of the action.
    #[serde(default)]
    pub arguments: BTreeMap<String, String>,
    /// The profile to use instead of the action's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Rules of this plan alone.
    #[serde(default)]
    pub invariants: Vec<PlanInvariant>,
    /// What it may use, such as `tokens=200k,cost=1.50,wall=30m,tool_calls=50`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<String>,
}

/// A rule at the scope of the plan that is being made. Exactly one of `cel`, `command` and `text` is given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanInvariant {
    /// Its name.
    pub name: String,
    /// A CEL expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cel: Option<String>,
    /// A shell command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Words for the agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Before which phases it is enforced; none named means all.
    #[serde(default)]
    pub at: Vec<Phase>,
}

/// How far the subplans of a plan are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SubplanCount {
    /// How many its strategy has.
    pub total: u32,
    /// How many of them are over, whatever came of them.
    pub settled: u32,
}

/// Which plans to list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanQuery {
    /// Only those in this phase.
    pub phase: Option<Phase>,
    /// Only those in this state.
    pub state: Option<State>,
    /// Only those of this project.
    pub project: Option<String>,
    /// Only those of this action.
    pub action: Option<String>,
    /// Only the subplans of this plan; `none` means only plans that are nobody's subplan.
    pub parent: Option<String>,
    /// Only those that have, for each word of this text, a word that begins like it: in task, id, action or project.
    pub q: Option<String>,
    /// How many at most.
    pub limit: Option<u32>,
    /// Only those after this cursor, the `next` of an earlier answer.
    pub after: Option<String>,
}

/// Gives a reason for a step back: cancel and revert.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reason {
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Adds guidance to a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Prompt {
    /// What the agents shall heed.
    pub text: String,
}

/// Queues a failed phase again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryPlan {
    /// Whether Execute starts over from the plan's base instead of continuing from the kept work.
    #[serde(default)]
    pub from_base: bool,
}

/// A page of plans.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Plans {
    /// The plans.
    pub plans: Vec<Plan>,
    /// Where the next page begins.
    #[serde(default)]
    pub next: Option<String>,
}

/// One plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OnePlan {
    /// The plan.
    pub plan: Plan,
}

impl Plan {
    /// Returns the actions that the caller can take, as far as the answer lists them.
    pub fn offers(&self) -> &[Offer] {
        self.offers.as_deref().unwrap_or_default()
    }

    /// Returns the offer of this command.
    pub fn offer(&self, command: &str) -> Option<&Offer> {
        self.offers().iter().find(|offer| offer.command == command)
    }

    /// Says whether the phase rests: no worker is at it and none will take it up by itself.
    pub fn is_settled(&self) -> bool {
        match self.state {
            State::Queued | State::Processing => false,
            State::Waiting
            | State::Complete
            | State::Errored
            | State::Cancelled
            | State::Applied
            | State::Constrained => true,
        }
    }
}

/// Goes back to an earlier state of the work.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RollBack {
    /// The checkpoint: its ref, its number, or its commit.
    pub checkpoint: String,
}
