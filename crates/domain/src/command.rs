//! What can be asked of a plan. A command carries the facts that its guard needs, found out before the
//! transaction began; `decide` judges them against the stored plan.

use serde::{Deserialize, Serialize};

use crate::{
    Answer, Authority, Birth, Choice, CommitLine, DecisionId, Delay, Divergence, Enforcement, Failure,
    Fanout, Intent, News, Phase, PlanId, Question, RestartPoint, ReviewRun, RunId, Spent, SyncOutcome,
    Timestamp, ValidationRun,
};

/// A request to change a plan.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Begin the queued phase.
    Start(Start),
    /// The phase reached its end.
    Complete(RunId, Completion),
    /// The phase failed; with a question when only a person can say how to go on.
    Fail(RunId, Failure, Option<Question>),
    /// The run needs a person.
    Ask(RunId, Question),
    /// The run was cut short by something that passes; the phase waits for it.
    Postpone(RunId, Delay),
    /// A sync found a divergence that only a person can settle.
    Diverge(Box<Divergence>),
    /// The divergence that the plan waits for was seen to be gone, as this sync found.
    Reconcile(Box<SyncOutcome>),
    /// Bring the branch together with its remote. Records nothing itself: it is judged before anything is looked at.
    Sync,
    /// A sync took in commits that no run of the plan made, after its work was judged.
    Reexamine {
        /// Where the branch is now.
        tip: String,
        /// Those commits, oldest first.
        commits: Vec<CommitLine>,
    },
    /// A strategy draft, perhaps of a person's hand, becomes the strategy.
    Adopt {
        /// What it chose.
        choices: Vec<Choice>,
        /// The pieces that it cut the task into.
        fanout: Option<Fanout>,
    },
    /// A person answers the open decision.
    Resolve(Answer),
    /// A person lets the queued phase start, which answers its gate.
    Approve {
        /// What the person added.
        note: Option<String>,
        /// The result of the invariants, for Strategize alone; the other phases were checked when they were queued.
        enforcement: Enforcement,
    },
    /// Ask a person before going on, because going on by itself met something that only a person can settle.
    HoldBack(Met),
    /// The budget is used up; a person is asked.
    Exhaust {
        /// The run that was stopped for it; none when none was begun.
        run: Option<RunId>,
        /// The commit that keeps the work so far, for the next run to go on with.
        work: Option<String>,
    },
    /// Go on to the next phase.
    Advance(Advance),
    /// A landing is about to begin.
    Intend(RunId, Intent),
    /// The landing of the intent was seen not to have happened.
    Forgo,
    /// The target was seen to contain a landing of the plan.
    Land(RunId, Landed),
    /// The merged result is not acceptable.
    Constrain(RunId, Vec<String>),
    /// Try the phase again, from the work that the failed run left if there is any.
    Retry,
    /// Try Execute again from where the plan's work began.
    StartOver,
    /// A person takes the work that a failed run of Execute left for its result; it is judged as any other.
    Accept,
    /// Go back to Strategize.
    Revert {
        /// Why.
        reason: String,
    },
    /// End the plan.
    Cancel {
        /// Why.
        reason: String,
    },
    /// End a subplan, because the plan above it no longer needs it.
    CancelBelow {
        /// Why.
        reason: String,
        /// By whose authority the plan above was ended, which this has as well.
        ended_by: Authority,
    },
    /// Free the plan from a run that has no live owner; the next run starts from the checkpoint that it left.
    TakeOver(TakeOverCause, Option<RestartPoint>),
    /// Go on from an earlier state of the work.
    RollBack {
        /// The commit that keeps it.
        commit: String,
    },
    /// Make the plans of pieces.
    Spawn(Vec<Birth>),
    /// Record what became of pieces.
    Tend(Vec<News>),
    /// These subplans that were to be ended have ended, having used this much.
    WoundUp(Vec<(PlanId, Spent)>),
    /// A subplan's turn has come.
    Call(Call),
    /// A subplan's result is part of its parent's branch.
    Join {
        /// The commit that holds it.
        commit: String,
    },
    /// Add guidance for the runs to come.
    Prompt {
        /// The guidance.
        text: String,
    },
}

/// What going on by itself met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Met {
    /// Something in the way, in words.
    Obstacle(String),
    /// There is nothing to apply.
    NothingChanged,
    /// A person stopped the command that drove it.
    Stopped,
    /// A person stopped the command that drove the plan above: it waits for its turn again.
    StoppedAbove,
}

/// A landing that was seen in the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Landed {
    /// The commit.
    pub commit: String,
    /// Why it counts as the plan's.
    pub proof: LandingProof,
    /// A warning for people.
    pub warning: Option<String>,
}

/// Why a commit of the target counts as the landing of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LandingProof {
    /// It is the one that the intent names.
    Intended,
    /// The commit says so itself, or holds all that the plan changed; the store has lost its own record of it.
    Found,
}

/// The facts that a start needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Start {
    /// The new run.
    pub run: RunId,
    /// The tip of the target; Strategize pins it as the base of all that follows.
    pub base: String,
    /// The commit that the worktree begins at, where it is not the base.
    pub from: Option<String>,
    /// Where the remote is that the branch is meant to replace.
    pub replaces: Option<String>,
    /// What the invariants said; Strategize alone enforces them here, the other phases did when they were queued.
    pub enforcement: Enforcement,
}

/// Where a subplan begins when it is called for the first time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The commit that its work is measured from.
    pub base: String,
    /// The commit that its worktree begins at, where it is not the base.
    pub from: Option<String>,
}

/// The facts that going on needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Advance {
    /// Where to.
    pub to: Next,
    /// What the invariants said.
    pub enforcement: Enforcement,
    /// The note that a person added when letting the plan continue.
    pub note: Option<String>,
    /// What there is to apply.
    pub changes: Changes,
}

/// The phases that another one leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// From Strategize.
    Execute,
    /// From Execute.
    Apply,
}

impl Next {
    /// Returns the phase.
    pub fn phase(self) -> Phase {
        match self {
            Next::Execute => Phase::Execute,
            Next::Apply => Phase::Apply,
        }
    }
}

/// Whether a plan has anything to apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Changes {
    /// Nothing was changed.
    Nothing,
    /// Something was.
    Something,
}

/// How a phase reached its end.
#[derive(Debug, Clone, PartialEq)]
pub enum Completion {
    /// Strategize: the strategy is adopted.
    Strategized {
        /// What it chose.
        choices: Vec<Choice>,
        /// The pieces that it cut the task into.
        fanout: Option<Fanout>,
    },
    /// Execute: the work is captured and judged.
    Executed {
        /// The commit that holds it.
        head: String,
        /// What the validations said.
        validations: Vec<ValidationRun>,
        /// What the reviewers said.
        reviews: Vec<ReviewRun>,
    },
}

/// Why a run has no live owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TakeOverCause {
    /// Its lock expired, was broken, or was released because its process died.
    OwnerGone,
    /// Its own process was asked to stop and releases it; any worker continues it.
    Interrupted,
    /// A person stopped the command that drove it; only a person continues it.
    Stopped,
    /// A person stopped the command that drove the plan above it, which calls it again.
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

/// What comes from outside with every command: time, chance, and who asks.
#[derive(Debug, Clone)]
pub struct Context {
    /// When it is decided.
    pub now: Timestamp,
    /// Who asks.
    pub by: String,
    /// From where.
    pub via: String,
    /// In what capacity, which is what may be asked for.
    pub authority: Authority,
    /// What the plan's run has used so far, where the caller knows.
    pub spent: Option<(RunId, Spent)>,
    /// An unused id, for the decision that the command may open.
    pub fresh_decision: DecisionId,
}
