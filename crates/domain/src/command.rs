//! Commands: requests to change a plan. A command carries the facts that its guard needs, which the caller
//! reads before the transaction starts. `decide` checks them against the stored plan.

use serde::{Deserialize, Serialize};

use crate::{
    Answer, Authority, Choice, CommitLine, DecisionId, Delay, Divergence, Enforcement, Failure, Fanout,
    Intent, Phase, PlanId, Question, Remains, ResourceUsage, ReviewResult, RunId, SpawnChild, SubplanUpdate,
    SyncOutcome, Timestamp, ValidationResult,
};

/// A request to change a plan.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Start the queued phase.
    Start(Start),
    /// The phase is complete.
    Complete(RunId, Completion),
    /// The phase failed; with a question if only a person can decide how to continue.
    Fail(RunId, Failure, Option<Question>),
    /// The run needs an answer from a person.
    Ask(RunId, Question),
    /// A temporary condition interrupted the run; the phase is queued until it has passed.
    Postpone(RunId, Delay),
    /// A sync found a divergence that only a person can settle.
    Diverge(Box<Divergence>),
    /// A sync found that the divergence the plan waits for no longer exists.
    Reconcile(Box<SyncOutcome>),
    /// Sync the branch with its remote. Records nothing: it checks whether a sync is allowed, before any
    /// repository is read.
    Sync,
    /// A sync added commits that no run of the plan made, after the plan's work was checked.
    Reexamine {
        /// The new tip of the branch.
        tip: String,
        /// The added commits, oldest first.
        commits: Vec<CommitLine>,
    },
    /// Adopt a strategy draft, possibly edited by a person, as the strategy.
    Adopt {
        /// The choices of the draft.
        choices: Vec<Choice>,
        /// The subplans that the draft splits the task into.
        fanout: Option<Fanout>,
    },
    /// A person answers the open decision.
    Resolve(Answer),
    /// A person approves the start of the queued phase, which answers its gate.
    Approve {
        /// The person's note.
        note: Option<String>,
        /// The enforcement of the invariants, used for Strategize only. The other phases were checked when
        /// they were queued.
        enforcement: Enforcement,
    },
    /// Ask a person before continuing, because an automatic step met an obstacle that only a person can
    /// remove.
    HoldBack(Obstacle),
    /// The budget is exhausted; a person is asked.
    Exhaust {
        /// The run that was stopped for it; `None` if no run had started.
        run: Option<RunId>,
        /// The work so far, from which the next run continues.
        work: Remains<String>,
    },
    /// Continue with the next phase.
    Advance(Advance),
    /// A landing is about to start.
    Intend(RunId, Intent),
    /// The landing of the open intent did not happen.
    Forgo,
    /// The target branch contains a landing of the plan.
    Land(RunId, Landed),
    /// The merged result is not acceptable.
    Constrain(RunId, Vec<String>),
    /// Retry the phase, from the work of the failed run if there is any.
    Retry,
    /// Retry Execute from the commit at which the plan's work began.
    StartOver,
    /// A person accepts the work of a failed run of Execute as its result. It is validated and reviewed like
    /// any other.
    Accept,
    /// Go back to Strategize.
    Revert {
        /// Reason for going back.
        reason: String,
    },
    /// Cancel the plan.
    Cancel {
        /// Reason for cancelling.
        reason: String,
    },
    /// Cancel a subplan, because its parent no longer needs it.
    CancelBelow {
        /// Reason for cancelling.
        reason: String,
        /// The authority that ended the parent; it also counts for this command.
        ended_by: Authority,
    },
    /// Free the plan from a run without a live holder. The next run starts from the run's checkpoint, if it
    /// left one.
    TakeOver(TakeOverCause, Remains),
    /// Continue from an earlier state of the work.
    RollBack {
        /// The commit of that state.
        commit: String,
    },
    /// Create the child plans of subplans.
    Spawn(Vec<SpawnChild>),
    /// Record the results of subplans.
    Tend(Vec<SubplanUpdate>),
    /// These subplans, which were to be cancelled, have ended with this usage.
    WoundUp(Vec<(PlanId, ResourceUsage)>),
    /// Give a subplan its turn to run.
    Call(CallSubplan),
    /// A subplan's result is part of its parent's branch.
    Join {
        /// The commit that contains the result.
        commit: String,
    },
    /// Add guidance for later runs.
    Prompt {
        /// The guidance.
        text: String,
    },
}

/// The obstacle that an automatic step met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// An obstacle described in words.
    Obstacle(String),
    /// There is nothing to apply.
    NothingChanged,
    /// A person stopped the command that ran the plan.
    Stopped,
    /// A person stopped the command that ran the parent; the subplan waits for its turn again.
    StoppedAbove,
}

/// A landing that was found in the target branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Landed {
    /// The landed commit.
    pub commit: String,
    /// Why the commit counts as the plan's landing.
    pub proof: LandingProof,
    /// A warning to show to people.
    pub warning: Option<String>,
}

/// Why a commit of the target branch counts as the landing of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LandingProof {
    /// It is the commit that the intent names.
    Intended,
    /// The commit's trailers name the plan, or it contains all changes of the plan. Used when the store has
    /// lost its own record.
    Found,
}

/// The facts for starting a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Start {
    /// The new run.
    pub run: RunId,
    /// The tip of the target branch. Strategize stores it as the plan's base commit.
    pub base: String,
    /// The commit at which the worktree starts, if not the base.
    pub from: Option<String>,
    /// The tip of the remote branch that the plan's branch is to replace.
    pub replaces: Option<String>,
    /// The enforcement of the invariants, used for Strategize only. The other phases were checked when they
    /// were queued.
    pub enforcement: Enforcement,
}

/// Where a subplan starts when its first turn comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallSubplan {
    /// The commit against which its work is compared.
    pub base: String,
    /// The commit at which its worktree starts, if not the base.
    pub from: Option<String>,
}

/// The facts for continuing with the next phase.
#[derive(Debug, Clone, PartialEq)]
pub struct Advance {
    /// The next phase.
    pub to: NextPhase,
    /// The enforcement of the invariants.
    pub enforcement: Enforcement,
    /// The note that a person added when approving the next phase.
    pub note: Option<String>,
    /// Whether there is anything to apply.
    pub changes: Changes,
}

/// The phases that follow another phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextPhase {
    /// Follows Strategize.
    Execute,
    /// Follows Execute.
    Apply,
}

impl NextPhase {
    /// Returns the phase.
    pub fn phase(self) -> Phase {
        match self {
            NextPhase::Execute => Phase::Execute,
            NextPhase::Apply => Phase::Apply,
        }
    }
}

/// Whether a plan has anything to apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changes {
    /// No file was changed.
    Nothing,
    /// Files were changed.
    Something,
}

/// The result of a completed phase.
#[derive(Debug, Clone, PartialEq)]
pub enum Completion {
    /// Strategize: the strategy is adopted.
    Strategized {
        /// The choices of the strategy.
        choices: Vec<Choice>,
        /// The subplans that the strategy splits the task into.
        fanout: Option<Fanout>,
    },
    /// Execute: the work is captured, validated and reviewed.
    Executed {
        /// The commit that contains the work.
        head: String,
        /// The outcomes of the validations.
        validations: Vec<ValidationResult>,
        /// The verdicts of the reviewers.
        reviews: Vec<ReviewResult>,
    },
}

/// Why a run has no live holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TakeOverCause {
    /// Its lock expired, was broken, or was released because its process died.
    OwnerGone,
    /// Its process was asked to stop and releases it; any worker may continue it.
    Interrupted,
    /// A person stopped the command that ran it; only a person may continue it.
    Stopped,
    /// A person stopped the command that ran its parent, which gives it another turn later.
    StoppedAbove,
}

impl TakeOverCause {
    /// Returns the name used in events.
    pub fn name(self) -> &'static str {
        match self {
            TakeOverCause::OwnerGone => "owner_gone",
            TakeOverCause::Interrupted => "interrupted",
            TakeOverCause::Stopped => "stopped",
            TakeOverCause::StoppedAbove => "stopped_above",
        }
    }
}

impl Command {
    /// Returns the name used in refusals.
    pub fn name(&self) -> &'static str {
        match self {
            Command::Start(_) => "start",
            Command::Complete(..) => "complete",
            Command::Fail(..) => "fail",
            Command::Ask(..) => "ask",
            Command::Postpone(..) => "postpone",
            Command::Diverge(_) => "diverge",
            Command::Reconcile(_) => "reconcile",
            Command::Sync => "sync",
            Command::Reexamine { .. } => "reexamine",
            Command::Adopt { .. } => "adopt a strategy for",
            Command::Resolve(_) => "resolve",
            Command::Approve { .. } => "approve",
            Command::HoldBack(_) => "hold back",
            Command::Exhaust { .. } => "exhaust",
            Command::Advance(advance) => advance.to.phase().name(),
            Command::Intend(..) => "intend",
            Command::Forgo => "forgo",
            Command::Land(..) => "land",
            Command::Constrain(..) => "constrain",
            Command::Retry => "retry",
            Command::StartOver => "start over",
            Command::Accept => "accept",
            Command::Revert { .. } => "revert",
            Command::Cancel { .. } => "cancel",
            Command::CancelBelow { .. } => "cancel",
            Command::TakeOver(..) => "takeover",
            Command::RollBack { .. } => "roll back",
            Command::Spawn(_) => "spawn subplans of",
            Command::Tend(_) => "tend",
            Command::WoundUp(_) => "wind up",
            Command::Call(_) => "call",
            Command::Join { .. } => "join",
            Command::Prompt { .. } => "prompt",
        }
    }
}

/// Everything that comes from outside with every command: time, a random id and the caller.
#[derive(Debug, Clone)]
pub struct Context {
    /// The time of the decision.
    pub now: Timestamp,
    /// The caller's name.
    pub by: String,
    /// The channel of the command, e.g. `command line`.
    pub via: String,
    /// The caller's authority, which determines the commands it may send.
    pub authority: Authority,
    /// The usage of the plan's run so far, if the caller knows it.
    pub spent: Option<(RunId, ResourceUsage)>,
    /// An unused id for the decision that the command may open.
    pub fresh_decision: DecisionId,
}
