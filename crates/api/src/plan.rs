//! Plans as clients see them, and the requests to create and steer one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::word::words;
use crate::{Blocked, Offer, Roles};

words! {
    /// One of the three phases of a plan.
    Phase {
        /// An agent plans the task.
        Strategize = "strategize",
        /// Agents do the task in a worktree.
        Execute = "execute",
        /// The result lands on the target branch.
        Apply = "apply",
    }
}

words! {
    /// The progress of a plan in its phase.
    State {
        /// Waits for a worker.
        Queued = "queued",
        /// A worker runs the phase.
        Processing = "processing",
        /// A person must answer a decision first.
        Waiting = "waiting",
        /// The phase is complete.
        Complete = "complete",
        /// The phase failed.
        Errored = "errored",
        /// The plan was cancelled.
        Cancelled = "cancelled",
        /// The result landed.
        Applied = "applied",
        /// The merged result is not acceptable; the target branch was not moved.
        Constrained = "constrained",
    }
}

/// One use of an action on a project.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Plan {
    /// The plan's id.
    pub id: String,
    /// The name of the action; null for a plan with a free task.
    pub action: Option<String>,
    /// The name of the project.
    pub project: String,
    /// The branch that it lands on; null for a plan of an earlier version, which lands on its project's target.
    #[serde(default)]
    pub target: Option<String>,
    /// The plan's phase.
    pub phase: Phase,
    /// The state in the phase.
    pub state: State,
    /// The revision, which grows by one with every committed transition.
    pub revision: i64,
    /// The latest run, an attempt at a phase.
    pub run: Option<String>,
    /// The plan that spawned it.
    pub parent: Option<String>,
    /// The plan at the top of its tree.
    pub root: String,
    /// The name of the profile.
    pub profile: String,
    /// The branch with its work.
    pub branch: String,
    /// The commit at which the work starts.
    pub base_commit: String,
    /// The commit with the result of Execute.
    pub head_commit: Option<String>,
    /// The commit that landed.
    pub landed_commit: Option<String>,
    /// Why the phase failed.
    pub error: Option<PlanError>,
    /// The decision that a person must answer before it continues.
    pub pending_decision: Option<String>,
    /// How often it was reverted to Strategize.
    pub reversions: u32,
    /// When it was created.
    pub created_at: String,
    /// When it last changed.
    pub updated_at: String,
    /// When the current phase first started.
    pub phase_started_at: Option<String>,
    /// When the current phase reached its end.
    pub phase_completed_at: Option<String>,
    /// The task, with arguments filled in.
    #[serde(default)]
    pub task: String,
    /// The condition under which the task is done, with arguments filled in.
    #[serde(default)]
    pub definition_of_done: Option<String>,
    /// The arguments, including defaults.
    #[serde(default)]
    pub arguments: BTreeMap<String, String>,
    /// The agents of the plan.
    #[serde(default)]
    pub agents: Roles,
    /// The number of runs.
    #[serde(default)]
    pub runs: u32,
    /// The open gate, if the profile asks before the next phase.
    #[serde(default)]
    pub gate: Option<String>,
    /// Why the merged result is not acceptable.
    #[serde(default)]
    pub constrained_by: Vec<String>,
    /// Why it was cancelled.
    #[serde(default)]
    pub cancel_reason: Option<String>,
    /// The guidance and answers that people added.
    #[serde(default)]
    pub feedback: Vec<String>,
    /// A warning about the landing, such as a local branch that could not follow its remote.
    #[serde(default)]
    pub landing_warning: Option<String>,
    /// The reason and the time, if the queued phase is not due yet.
    #[serde(default)]
    pub waits: Option<Waits>,
    /// The latest interruption of the phase, until a run ends in another way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interruption: Option<Interruption>,
    /// The budget; null if there is none.
    #[serde(default)]
    pub budget: Option<Amounts>,
    /// The usage of its runs, as far as it is known and recorded.
    #[serde(default)]
    pub spent: Amounts,
    /// The part of the budget that the current run has reserved; null without a run or a budget.
    #[serde(default)]
    pub reserved: Option<Amounts>,
    /// The progress of its subplans; null for a plan without subplans.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subplans: Option<SubplanCount>,
    /// The invariants that blocked its next phase at the last check; null if there are none.
    #[serde(default)]
    pub blocked: Option<Blocked>,
    /// The actions that the caller can take now, most helpful first; absent in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offers: Option<Vec<Offer>>,
}

/// Amounts of a budget or of usage; null in a budget means no limit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Amounts {
    /// Model tokens.
    pub tokens: Option<u64>,
    /// Cost in US dollars, exact to a millionth.
    pub cost_usd: Option<String>,
    /// Run time in seconds.
    pub wall_s: Option<u64>,
    /// Tool calls.
    pub tool_calls: Option<u64>,
}

/// Why a queued phase is not due yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Waits {
    /// When it is due.
    pub until: String,
    /// The cause: `rate_limit`, `remote_unreachable` or `target_contended`.
    pub cause: String,
    /// The cause as a text for people.
    #[serde(default)]
    pub reason: String,
    /// The agent whose rate limit it is; empty for other causes.
    pub agent: String,
    /// How often this happened in a row.
    pub times: u32,
}

/// A run that was interrupted, and where the next one starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Interruption {
    /// The interrupted run.
    pub run: String,
    /// Why: `owner_gone`, `interrupted`, `stopped` (by a person at the command line) or `stopped_above` (a person
    /// stopped the parent plan).
    pub cause: String,
    /// The number of the checkpoint that the next run starts from; null if there is none.
    #[serde(default)]
    pub checkpoint: Option<u64>,
    /// The commit of that checkpoint.
    #[serde(default)]
    pub commit: Option<String>,
    /// The interruption as a text for people.
    pub text: String,
}

/// Why a phase failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PlanError {
    /// The class of the error.
    pub class: String,
    /// The error as a text for people.
    pub text: String,
}

/// Creates a plan from an action or a free task, on a project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewPlan {
    /// The action to use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// The task, if no action is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The project to work on.
    pub project: String,
    /// The branch to land on; default: the project's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The agent; default: the action's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The arguments of the action.
    #[serde(default)]
    pub arguments: BTreeMap<String, String>,
    /// The profile; default: the action's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Invariants for this plan only.
    #[serde(default)]
    pub invariants: Vec<PlanInvariant>,
    /// The budget, such as `tokens=200k,cost=1.50,wall=30m,tool_calls=50`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<String>,
}

/// An invariant at the scope of the plan that is created. Exactly one of `cel`, `command` and `text` is given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanInvariant {
    /// The invariant's name.
    pub name: String,
    /// A CEL expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cel: Option<String>,
    /// A shell command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// An instruction for the agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The phases before which it is enforced; default: all.
    #[serde(default)]
    pub at: Vec<Phase>,
}

/// The progress of a plan's subplans.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SubplanCount {
    /// The number of subplans.
    pub total: u32,
    /// The number of subplans that have ended, with any result.
    pub settled: u32,
}

/// Filters the list of plans.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanQuery {
    /// Only plans in this phase.
    pub phase: Option<Phase>,
    /// Only plans in this state.
    pub state: Option<State>,
    /// Only plans of this project.
    pub project: Option<String>,
    /// Only plans of this action.
    pub action: Option<String>,
    /// Only the subplans of this plan; `none` means only plans that are not a subplan.
    pub parent: Option<String>,
    /// Only plans in which each word of this text is the prefix of a word in task, id, action or project.
    pub q: Option<String>,
    /// The maximum number of plans.
    pub limit: Option<u32>,
    /// Continue after this cursor, the `next` of an earlier page.
    pub after: Option<String>,
}

/// Gives the reason to cancel or revert a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Reason {
    /// The reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Adds guidance to a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Prompt {
    /// The guidance for the agents.
    pub text: String,
}

/// Queues a failed phase again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RetryPlan {
    /// Whether Execute restarts from the plan's base instead of continuing from the work so far.
    #[serde(default)]
    pub from_base: bool,
}

/// A page of plans.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Plans {
    /// The plans.
    pub plans: Vec<Plan>,
    /// The cursor of the next page; null on the last page.
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
    /// Returns the actions that the caller can take, if the answer lists them.
    pub fn offers(&self) -> &[Offer] {
        self.offers.as_deref().unwrap_or_default()
    }

    /// Returns the offer of this command.
    pub fn offer(&self, command: &str) -> Option<&Offer> {
        self.offers().iter().find(|offer| offer.command == command)
    }

    /// Returns true if the plan has stopped: no worker runs the phase, and none will start it automatically.
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

/// Returns to an earlier state of the work.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RollBack {
    /// The checkpoint: its ref, number or commit.
    pub checkpoint: String,
}
