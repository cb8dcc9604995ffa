//! A plan as read from the store. Changing a copy has no effect: only a transition changes a plan, and only
//! `decide` builds one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    BRANCHES, Budget, Choice, Decision, DecisionId, Fanout, Grant, InterruptedRun, Invariant, Name,
    ParentLink, PlanAgents, PlanId, Postponed, Profile, Progress, ResourceUsage, RestartReason, RunId, Stage,
    State, SyncOutcome, Target, Timestamp, Validation,
};

/// One use of an action on a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Unique id.
    pub id: PlanId,
    /// The request that created the plan; it never changes.
    pub spec: PlanSpec,
    /// The current phase and state.
    pub stage: Stage,
    /// Incremented by every committed transition.
    pub revision: i64,
    /// The latest run.
    pub run: Option<RunId>,
    /// Number of runs so far.
    pub runs: u32,
    /// The plan that spawned this one.
    pub parent: Option<PlanId>,
    /// The plan at the top of the plan tree.
    pub root: PlanId,
    /// The relation to the parent, for a subplan.
    #[serde(default)]
    pub place: Option<ParentLink>,
    /// The subplans that the strategy splits the task into. Each is done by a child plan.
    #[serde(default)]
    pub fanout: Option<Fanout>,
    /// Child plans that are to be cancelled, because they are no longer needed.
    #[serde(default)]
    pub winding: Vec<PlanId>,
    /// The child plans among them that a person ended: their open decisions are withdrawn too.
    #[serde(default)]
    pub ended_by_person: Vec<PlanId>,
    /// Divergences found while another decision was open. Each is asked about once no other decision is open.
    #[serde(default)]
    pub queued_divergences: Vec<SyncOutcome>,
    /// The open gate, if the profile asks before the next phase.
    pub gate: Option<DecisionId>,
    /// The commit against which the plan's work is compared.
    pub base_commit: String,
    /// The commit at which the parent made this subplan start, if not the base: the commit with the marked
    /// conflict that the subplan resolves. Runs change `work_from`, but not this field.
    #[serde(default)]
    pub called_from: Option<String>,
    /// The commit at which runs start, if not the base: work that was added to the branch from outside, or
    /// that a person restored.
    #[serde(default)]
    pub work_from: Option<String>,
    /// The commit to which the branch is moved once before the next run.
    #[serde(default)]
    pub take_up: Option<String>,
    /// The reason for moving the branch there.
    #[serde(default)]
    pub take_up_why: RestartReason,
    /// The tip of the remote branch when it was decided that the plan's branch replaces it.
    #[serde(default)]
    pub replaces: Option<String>,
    /// Whether the next run of Execute has no writer and only checks the commits on the branch.
    #[serde(default)]
    pub reexamines: bool,
    /// The latest interruption of the current phase.
    #[serde(default)]
    pub interruption: Option<InterruptedRun>,
    /// Whether a rate limit or a used-up budget ended the previous run while it validated or reviewed a
    /// finished result.
    #[serde(default)]
    pub unjudged: bool,
    /// The postponement of the queued phase, if it is not due immediately.
    #[serde(default)]
    pub postponed: Option<Postponed>,
    /// The current budget: the requested one, or the one that a person set later.
    #[serde(default)]
    pub budget: Budget,
    /// Usage of all runs before the latest, and of subplans.
    #[serde(default)]
    pub spent: ResourceUsage,
    /// Usage of the latest run, as far as it is recorded.
    #[serde(default)]
    pub run_spent: ResourceUsage,
    /// The budget reserved by the current run: everything that was left when it started. For display only. A
    /// plan has one run at a time and gives no shares to subplans during it, so no transition depends on this
    /// field.
    #[serde(default)]
    pub reserved: Option<Budget>,
    /// Budget shares given to subplans that have not ended. A share counts as used until then.
    #[serde(default)]
    pub handed: BTreeMap<PlanId, ResourceUsage>,
    /// The commit that contains the result of Execute.
    pub head_commit: Option<String>,
    /// The run that created it; Apply lands the changesets of this run.
    pub head_run: Option<RunId>,
    /// The landed commit.
    pub landed_commit: Option<String>,
    /// A warning about the landing, such as a local branch that could not follow its remote.
    #[serde(default)]
    pub landing_warning: Option<String>,
    /// A landing that has started and whose end is not recorded yet.
    pub intent: Option<Intent>,
    /// The choices of the strategy.
    pub choices: Vec<Choice>,
    /// Texts that people added: guidance, answers, reasons for reversions.
    pub feedback: Vec<String>,
    /// Tool requests that people allowed or denied.
    #[serde(default)]
    pub grants: Vec<Grant>,
    /// Number of times the plan went back to Strategize.
    pub reversions: u32,
    /// When the plan was created.
    pub created_at: Timestamp,
    /// When the plan last changed.
    pub updated_at: Timestamp,
    /// When the current phase first started.
    pub phase_started_at: Option<Timestamp>,
    /// When the current phase completed.
    pub phase_completed_at: Option<Timestamp>,
}

/// The request that created the plan. It is a copy, so that later edits of the action do not change the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanSpec {
    /// The action's name.
    pub action: Name,
    /// The project's name.
    pub project: Name,
    /// The branch that the plan lands on.
    #[serde(default)]
    pub target: Target,
    /// The task, with the arguments filled in.
    pub task: String,
    /// The condition under which the task is done, with the arguments filled in.
    pub definition_of_done: Option<String>,
    /// The arguments, including defaults.
    pub arguments: BTreeMap<String, String>,
    /// The automation profile.
    pub profile: Profile,
    /// The agents that do the work.
    pub agents: PlanAgents,
    /// The validations that the result must pass, from the action and the project.
    pub validations: Vec<Validation>,
    /// The action's own invariants.
    pub invariants: Vec<Invariant>,
    /// Whether a plan that changed nothing may be applied.
    pub allow_empty: bool,
    /// The requested budget.
    #[serde(default)]
    pub budget: Budget,
}

/// A landing that has started: the target branch moves from one commit to another, or does not move.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    /// The target branch.
    pub target: String,
    /// The commit of the target branch before the landing.
    pub from: String,
    /// The commit of the target branch after the landing.
    pub to: String,
    /// The remote that holds the target branch; `None` for a local target branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
    /// Whether the landing creates the branch, because the remote does not have it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub creates: bool,
}

/// Everything needed to create a plan.
#[derive(Debug, Clone)]
pub struct CreatePlan {
    /// The id of the new plan.
    pub id: PlanId,
    /// The request.
    pub spec: PlanSpec,
    /// The commit against which the plan's work is compared.
    pub base_commit: String,
}

/// A plan and its open decision, read in one transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPlan {
    /// The plan.
    pub plan: Plan,
    /// The open decision of the plan.
    pub pending: Option<Decision>,
}

impl Plan {
    /// Returns the decision that a person must answer before the plan continues.
    pub fn pending_decision(&self) -> Option<&DecisionId> {
        self.stage.decision().or(self.gate.as_ref())
    }

    /// Returns the commit at which Execute started before its first run: the joined results of the subplans,
    /// otherwise the commit given by the parent, otherwise the base.
    pub(crate) fn began_at(&self) -> &str {
        let joined = self.fanout.as_ref().and_then(|fanout| fanout.head.as_deref());
        joined.or(self.called_from.as_deref()).unwrap_or(&self.base_commit)
    }

    /// Returns true if the next run starts from work of an earlier run of the phase.
    pub fn has_work_so_far(&self) -> bool {
        self.work_from.as_deref().is_some_and(|from| from != self.began_at())
    }

    /// Makes the next run start its agent even if the interrupted run had a finished result: guidance is for
    /// an agent.
    pub(crate) fn guide_next_run(&mut self) {
        self.unjudged = false;
        if let Some(interruption) = &mut self.interruption {
            interruption.judges = false;
        }
    }

    /// Returns true if a run of this phase validates and reviews the finished result of the run before it, and
    /// starts its agent only if the result is sent back.
    pub fn judges_first(&self) -> bool {
        self.unjudged || self.interruption.as_ref().is_some_and(|one| one.judges)
    }

    /// Removes what the next run would continue because the run before it ended early.
    pub(crate) fn clear_interruption(&mut self) {
        self.interruption = None;
        self.unjudged = false;
    }

    /// Makes the next run start at this commit, and moves the branch there first.
    pub(crate) fn restart_from(&mut self, commit: String, why: RestartReason) {
        self.work_from = Some(commit.clone());
        self.take_up = Some(commit);
        self.take_up_why = why;
    }

    /// Returns the postponement of the queued phase, if there is one.
    pub fn waits(&self) -> Option<&Postponed> {
        self.postponed.as_ref().filter(|_| self.stage.state() == State::Queued)
    }

    /// Returns the usage of all runs, as far as it is recorded.
    pub fn used(&self) -> ResourceUsage {
        self.spent.plus(self.run_spent)
    }

    /// Returns the budget that is neither used nor reserved by the current run, and so can be given to
    /// subplans.
    pub fn left(&self) -> Budget {
        self.budget.left(self.used()).without(self.reserved.unwrap_or(Budget::UNLIMITED))
    }

    /// Returns the number of shares of the budget: one for each subplan without a child plan, and one for the
    /// plan itself, to check and fix the joined result.
    pub fn parts(&self) -> u64 {
        self.fanout.as_ref().map_or(0, |fanout| fanout.unspawned().count() as u64) + 1
    }

    /// Returns true if Execute is done by subplans and not all of them have ended.
    pub fn has_open_subplans(&self) -> bool {
        self.fanout.as_ref().is_some_and(Fanout::is_open)
    }

    /// Returns true if the plan is between runs, before Apply. A subplan in this position runs only in its
    /// turn.
    pub fn awaits_turn(&self) -> bool {
        match &self.stage {
            Stage::Strategize(Progress::Queued | Progress::Reached(_)) | Stage::Execute(Progress::Queued) => {
                true
            }
            Stage::Strategize(_) | Stage::Execute(_) | Stage::Apply(_) => false,
        }
    }

    /// Returns the branch of the plan's worktrees.
    pub fn branch(&self) -> String {
        format!("{BRANCHES}{}/work", self.id)
    }
}
