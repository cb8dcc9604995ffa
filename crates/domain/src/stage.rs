//! Where a plan stands. Phase and state are one value, so that an illegal pair (`strategize/applied`,
//! `apply/complete`) cannot be built. Keeps INV-STAGE.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::DecisionId;

/// Where a plan stands: its phase and how far it got in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// An agent thinks the task through, read-only.
    Strategize(Progress<Complete>),
    /// Agents do the task in a worktree.
    Execute(Progress<Complete>),
    /// The result lands on the target branch.
    Apply(Progress<Settled>),
}

/// How far a phase got; `D` is what that phase can reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Progress<D> {
    /// Waits for a worker.
    Queued,
    /// A worker that holds the plan's lock is at it.
    Processing,
    /// A person must answer this decision first.
    Waiting(DecisionId),
    /// It failed; with a decision when only a person can say how to go on.
    Errored {
        /// What failed.
        failure: Failure,
        /// The question this failure asks, if it does.
        decision: Option<DecisionId>,
    },
    /// A person ended the plan.
    Cancelled {
        /// Why.
        reason: String,
    },
    /// The phase reached its end.
    Reached(D),
}

/// The end of Strategize and of Execute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Complete;

/// The two ends of Apply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Settled {
    /// The target branch contains this commit.
    Applied {
        /// The landed commit.
        commit: String,
    },
    /// The merged result is not acceptable; nothing was moved.
    Constrained {
        /// Each reason, for a person to read.
        reasons: Vec<String>,
    },
}

/// Why a phase failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What kind of failure.
    pub class: ErrorClass,
    /// What happened, for a person to read.
    pub text: String,
    /// The commit that keeps the half-done work, from which a retry continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<String>,
}

impl Failure {
    /// Describes a failure that left no work to continue from.
    pub fn new(class: ErrorClass, text: impl Into<String>) -> Self {
        Self { class, text: text.into(), work: None }
    }
}

/// What kind of failure ended a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    /// The agent could not be started.
    AgentMissing,
    /// The agent ended with an error.
    AgentFailed,
    /// The agent's model failed: its service answered with an error, or not at all.
    FailedModel,
    /// The service of the agent's model did not accept the key or the login.
    FailedAuth,
    /// The agent's model refused the task.
    Refused,
    /// The agent showed no sign of life and was stopped.
    Stalled,
    /// The agent took longer than its time limit.
    AgentTimedOut,
    /// The agent changed what it may not change.
    ForbiddenChange,
    /// The agent left what no commit can hold, such as a repository of its own.
    Uncapturable,
    /// The strategy draft could not be read.
    StrategyInvalid,
    /// A required validation failed.
    ValidationFailed,
    /// Uncommitted files of the user are in the way of landing.
    TargetDirty,
    /// Git could not do what was asked.
    Git,
    /// A file or directory of the run could not be handled.
    Filesystem,
    /// The plan's branch and its remote have diverged.
    Diverged,
    /// They have, and setting the branch to the remote's failed too.
    ResetFailed,
    /// Subplans failed.
    SubplanFailed,
    /// The result of a subplan conflicts with what has joined.
    SubplanConflict,
    /// The run's own records do not agree with the repository.
    Inconsistent,
}

impl ErrorClass {
    /// Returns the name used in JSON.
    pub fn name(self) -> &'static str {
        match self {
            ErrorClass::AgentMissing => "agent_missing",
            ErrorClass::AgentFailed => "agent_failed",
            ErrorClass::FailedModel => "failed_model",
            ErrorClass::FailedAuth => "failed_auth",
            ErrorClass::Refused => "refused",
            ErrorClass::Stalled => "stalled",
            ErrorClass::AgentTimedOut => "agent_timed_out",
            ErrorClass::ForbiddenChange => "forbidden_change",
            ErrorClass::Uncapturable => "uncapturable",
            ErrorClass::StrategyInvalid => "strategy_invalid",
            ErrorClass::ValidationFailed => "validation_failed",
            ErrorClass::TargetDirty => "target_dirty",
            ErrorClass::Git => "git",
            ErrorClass::Filesystem => "filesystem",
            ErrorClass::Diverged => "diverged",
            ErrorClass::ResetFailed => "reset_failed",
            ErrorClass::SubplanFailed => "subplan_failed",
            ErrorClass::SubplanConflict => "subplan_conflict",
            ErrorClass::Inconsistent => "inconsistent",
        }
    }

    /// Says whether an agent was cut short, so that a retry continues from its work.
    pub fn keeps_work(self) -> bool {
        match self {
            ErrorClass::AgentFailed
            | ErrorClass::FailedModel
            | ErrorClass::FailedAuth
            | ErrorClass::Refused
            | ErrorClass::Stalled
            | ErrorClass::AgentTimedOut => true,
            ErrorClass::AgentMissing
            | ErrorClass::ForbiddenChange
            | ErrorClass::Uncapturable
            | ErrorClass::StrategyInvalid
            | ErrorClass::ValidationFailed
            | ErrorClass::TargetDirty
            | ErrorClass::Git
            | ErrorClass::Filesystem
            | ErrorClass::Diverged
            | ErrorClass::ResetFailed
            | ErrorClass::SubplanFailed
            | ErrorClass::SubplanConflict
            | ErrorClass::Inconsistent => false,
        }
    }

    /// Says whether the next agent can do better when it knows what happened.
    pub(crate) fn is_a_lesson(self) -> bool {
        match self {
            ErrorClass::ForbiddenChange | ErrorClass::Uncapturable | ErrorClass::StrategyInvalid => true,
            ErrorClass::AgentMissing
            | ErrorClass::AgentFailed
            | ErrorClass::FailedModel
            | ErrorClass::FailedAuth
            | ErrorClass::Refused
            | ErrorClass::Stalled
            | ErrorClass::AgentTimedOut
            | ErrorClass::ValidationFailed
            | ErrorClass::TargetDirty
            | ErrorClass::Git
            | ErrorClass::Filesystem
            | ErrorClass::Diverged
            | ErrorClass::ResetFailed
            | ErrorClass::SubplanFailed
            | ErrorClass::SubplanConflict
            | ErrorClass::Inconsistent => false,
        }
    }
}

/// One of the three phases of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Think it through.
    Strategize,
    /// Do it.
    Execute,
    /// Land it.
    Apply,
}

/// The name of a stage within its phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// See [`Progress::Queued`].
    Queued,
    /// See [`Progress::Processing`].
    Processing,
    /// See [`Progress::Waiting`].
    Waiting,
    /// See [`Complete`].
    Complete,
    /// See [`Progress::Errored`].
    Errored,
    /// See [`Progress::Cancelled`].
    Cancelled,
    /// See [`Settled::Applied`].
    Applied,
    /// See [`Settled::Constrained`].
    Constrained,
}

impl Phase {
    /// All phases, in order.
    pub const ALL: [Phase; 3] = [Phase::Strategize, Phase::Execute, Phase::Apply];

    /// Returns the name used in JSON and at the prompt.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Strategize => "strategize",
            Phase::Execute => "execute",
            Phase::Apply => "apply",
        }
    }

    /// Returns the stage of this phase that waits for a worker.
    pub fn queued(self) -> Stage {
        match self {
            Phase::Strategize => Stage::Strategize(Progress::Queued),
            Phase::Execute => Stage::Execute(Progress::Queued),
            Phase::Apply => Stage::Apply(Progress::Queued),
        }
    }
}

impl State {
    /// All states.
    pub const ALL: [State; 8] = [
        State::Queued,
        State::Processing,
        State::Waiting,
        State::Complete,
        State::Errored,
        State::Cancelled,
        State::Applied,
        State::Constrained,
    ];

    /// Returns the name used in JSON and at the prompt.
    pub fn name(self) -> &'static str {
        match self {
            State::Queued => "queued",
            State::Processing => "processing",
            State::Waiting => "waiting",
            State::Complete => "complete",
            State::Errored => "errored",
            State::Cancelled => "cancelled",
            State::Applied => "applied",
            State::Constrained => "constrained",
        }
    }
}

/// A name that no phase or state has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{given:?} is not one of {known}")]
pub struct UnknownName {
    given: String,
    known: String,
}

impl FromStr for Phase {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        named(text, &Phase::ALL, Phase::name)
    }
}

impl FromStr for State {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        named(text, &State::ALL, State::name)
    }
}

fn named<T: Copy>(text: &str, all: &[T], name: fn(T) -> &'static str) -> Result<T, UnknownName> {
    all.iter().copied().find(|one| name(*one) == text).ok_or_else(|| UnknownName {
        given: text.to_owned(),
        known: all.iter().map(|one| name(*one)).collect::<Vec<_>>().join(", "),
    })
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl<D> Progress<D> {
    fn state(&self, reached: impl FnOnce(&D) -> State) -> State {
        match self {
            Progress::Queued => State::Queued,
            Progress::Processing => State::Processing,
            Progress::Waiting(_) => State::Waiting,
            Progress::Errored { .. } => State::Errored,
            Progress::Cancelled { .. } => State::Cancelled,
            Progress::Reached(done) => reached(done),
        }
    }

    fn decision(&self) -> Option<&DecisionId> {
        match self {
            Progress::Waiting(decision) => Some(decision),
            Progress::Errored { decision, .. } => decision.as_ref(),
            Progress::Queued | Progress::Processing | Progress::Cancelled { .. } | Progress::Reached(_) => {
                None
            }
        }
    }

    /// Says whether nothing goes on by itself; `reached` says it of the phase's end.
    pub(crate) fn rests(&self, reached: impl FnOnce(&D) -> bool) -> bool {
        match self {
            Progress::Queued | Progress::Processing => false,
            Progress::Waiting(_) | Progress::Errored { .. } | Progress::Cancelled { .. } => true,
            Progress::Reached(done) => reached(done),
        }
    }

    fn failure(&self) -> Option<&Failure> {
        match self {
            Progress::Errored { failure, .. } => Some(failure),
            Progress::Queued
            | Progress::Processing
            | Progress::Waiting(_)
            | Progress::Cancelled { .. }
            | Progress::Reached(_) => None,
        }
    }
}

impl Stage {
    /// Returns the phase.
    pub fn phase(&self) -> Phase {
        match self {
            Stage::Strategize(_) => Phase::Strategize,
            Stage::Execute(_) => Phase::Execute,
            Stage::Apply(_) => Phase::Apply,
        }
    }

    /// Returns the name of the state within the phase.
    pub fn state(&self) -> State {
        match self {
            Stage::Strategize(progress) | Stage::Execute(progress) => {
                progress.state(|Complete| State::Complete)
            }
            Stage::Apply(progress) => progress.state(|settled| match settled {
                Settled::Applied { .. } => State::Applied,
                Settled::Constrained { .. } => State::Constrained,
            }),
        }
    }

    /// Says whether nothing can follow.
    pub fn is_terminal(&self) -> bool {
        matches!(self.state(), State::Applied | State::Cancelled)
    }

    /// Returns the decision that this stage waits for.
    pub fn decision(&self) -> Option<&DecisionId> {
        match self {
            Stage::Strategize(progress) | Stage::Execute(progress) => progress.decision(),
            Stage::Apply(progress) => progress.decision(),
        }
    }

    /// Returns what failed, when it did.
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Stage::Strategize(progress) | Stage::Execute(progress) => progress.failure(),
            Stage::Apply(progress) => progress.failure(),
        }
    }

    /// Returns a stage of the same phase that every phase has.
    pub(crate) fn same_phase(&self, common: Common) -> Stage {
        match self {
            Stage::Strategize(_) => Stage::Strategize(common.progress()),
            Stage::Execute(_) => Stage::Execute(common.progress()),
            Stage::Apply(_) => Stage::Apply(common.progress()),
        }
    }
}

/// The stages that every phase has.
#[derive(Debug, Clone)]
pub(crate) enum Common {
    Queued,
    Processing,
    Waiting(DecisionId),
    Errored { failure: Failure, decision: Option<DecisionId> },
    Cancelled { reason: String },
}

impl Common {
    fn progress<D>(self) -> Progress<D> {
        match self {
            Common::Queued => Progress::Queued,
            Common::Processing => Progress::Processing,
            Common::Waiting(decision) => Progress::Waiting(decision),
            Common::Errored { failure, decision } => Progress::Errored { failure, decision },
            Common::Cancelled { reason } => Progress::Cancelled { reason },
        }
    }
}
