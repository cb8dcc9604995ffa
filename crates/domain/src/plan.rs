//! A plan as it was read. Changing a copy changes nothing: only a transition does, and only `decide` makes one.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    AgentRoles, BRANCHES, Budget, Choice, Decision, DecisionId, Fanout, Grant, Interruption, Invariant, Name,
    Place, PlanId, Postponed, Profile, Progress, RunId, Spent, Stage, State, SyncOutcome, TakeUp, Target,
    Timestamp, Validation,
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
    /// Where it stands among its siblings, when it has a parent.
    #[serde(default)]
    pub place: Option<Place>,
    /// The pieces that its strategy cut the task into, done by plans of their own.
    #[serde(default)]
    pub fanout: Option<Fanout>,
    /// Subplans that are to be ended, because nothing needs them any more.
    #[serde(default)]
    pub winding: Vec<PlanId>,
    /// Those of them that a person ended: their open questions end with them.
    #[serde(default)]
    pub ended_by_person: Vec<PlanId>,
    /// Divergences that were found while another question was open; each is asked about when no other is.
    #[serde(default)]
    pub queued_divergences: Vec<SyncOutcome>,
    /// The open gate, when the profile asks before the next phase.
    pub gate: Option<DecisionId>,
    /// The commit the work begins at.
    pub base_commit: String,
    /// The commit that its parent told a subplan to begin at, where that is not the base: the marked conflict that it
    /// resolves. Runs move `work_from` and leave this as it is.
    #[serde(default)]
    pub called_from: Option<String>,
    /// The commit that runs begin at, where it is not the base: work that others added to the branch, or that a
    /// person brought back.
    #[serde(default)]
    pub work_from: Option<String>,
    /// Where the branch is to be put before the next run; done once.
    #[serde(default)]
    pub take_up: Option<String>,
    /// Why it is put there.
    #[serde(default)]
    pub take_up_why: TakeUp,
    /// Where the remote's branch was when it was decided that the plan's branch replaces it.
    #[serde(default)]
    pub replaces: Option<String>,
    /// Whether the next run of Execute has no writer: it judges the commits that others put on the branch.
    #[serde(default)]
    pub reexamines: bool,
    /// The latest interruption of the current phase.
    #[serde(default)]
    pub interruption: Option<Interruption>,
    /// When the queued phase is due, where that is not at once.
    #[serde(default)]
    pub postponed: Option<Postponed>,
    /// What it may use by now: what was asked for, or what a person made of it.
    #[serde(default)]
    pub budget: Budget,
    /// What the runs before the latest used.
    #[serde(default)]
    pub spent: Spent,
    /// What the latest run used, as far as it is recorded.
    #[serde(default)]
    pub run_spent: Spent,
    /// What the run that goes on has reserved: all that was left when it began. It says to people what is spoken for; a
    /// plan has one run at a time and hands nothing on meanwhile, so no transition depends on it.
    #[serde(default)]
    pub reserved: Option<Budget>,
    /// What was handed on to subplans that are not over; it counts as used until they are.
    #[serde(default)]
    pub handed: BTreeMap<PlanId, Spent>,
    /// The commit that holds the result of Execute.
    pub head_commit: Option<String>,
    /// The run that made it; its changesets are what Apply lands.
    pub head_run: Option<RunId>,
    /// The commit that landed.
    pub landed_commit: Option<String>,
    /// A warning about the landing, such as a local branch that could not follow its remote.
    #[serde(default)]
    pub landing_warning: Option<String>,
    /// A landing that was begun and whose end is not recorded yet.
    pub intent: Option<Intent>,
    /// What the strategy chose.
    pub choices: Vec<Choice>,
    /// What people added on the way: guidance, answers, reasons of reversions.
    pub feedback: Vec<String>,
    /// What people let its agents do, or refused.
    #[serde(default)]
    pub grants: Vec<Grant>,
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
    /// The branch that it lands on.
    #[serde(default)]
    pub target: Target,
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
    /// What it may use, as it was asked for.
    #[serde(default)]
    pub budget: Budget,
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
    /// The remote whose target it is; none where the local branch is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
    /// Whether the remote had no such branch, so that the landing makes it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub creates: bool,
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

    /// Returns the commit at which the work of Execute began, before any run of it: what the subplans joined to, else what
    /// the parent said, else the base.
    pub(crate) fn began_at(&self) -> &str {
        let joined = self.fanout.as_ref().and_then(|fanout| fanout.head.as_deref());
        joined.or(self.called_from.as_deref()).unwrap_or(&self.base_commit)
    }

    /// Lets the next run begin at a commit, and the branch be put there before.
    pub(crate) fn take_up(&mut self, commit: String, why: TakeUp) {
        self.work_from = Some(commit.clone());
        self.take_up = Some(commit);
        self.take_up_why = why;
    }

    /// Returns what its queued phase waits for, when it is not due before a time.
    pub fn waits(&self) -> Option<&Postponed> {
        self.postponed.as_ref().filter(|_| self.stage.state() == State::Queued)
    }

    /// Returns what all its runs used, as far as it is recorded.
    pub fn used(&self) -> Spent {
        self.spent.plus(self.run_spent)
    }

    /// Returns what is left of its budget and not reserved by the run that goes on: what can be handed on.
    pub fn left(&self) -> Budget {
        self.budget.left(self.used()).without(self.reserved.unwrap_or(Budget::UNLIMITED))
    }

    /// Returns in how many parts its budget is cut: one for each piece that is not born yet, and one of its own, to judge
    /// and mend the whole.
    pub fn parts(&self) -> u64 {
        self.fanout.as_ref().map_or(0, |fanout| fanout.unborn().count() as u64) + 1
    }

    /// Says whether Execute is the work of subplans that are not all settled.
    pub fn is_tending(&self) -> bool {
        self.fanout.as_ref().is_some_and(Fanout::is_open)
    }

    /// Says whether it is between runs, before Apply: a subplan there works only in its turn.
    pub fn awaits_turn(&self) -> bool {
        match &self.stage {
            Stage::Strategize(Progress::Queued | Progress::Reached(_)) | Stage::Execute(Progress::Queued) => {
                true
            }
            Stage::Strategize(_) | Stage::Execute(_) | Stage::Apply(_) => false,
        }
    }

    /// Returns the branch that its worktrees are on.
    pub fn branch(&self) -> String {
        format!("{BRANCHES}{}/work", self.id)
    }
}
