//! The stage of a plan. Phase and state are one value, so that an illegal pair (`strategize/applied`,
//! `apply/complete`) cannot be built. Keeps INV-STAGE.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::DecisionId;

/// The phase of a plan and its progress in that phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// An agent writes the strategy; the worktree is read-only.
    Strategize(Progress<Complete>),
    /// Agents do the task in a worktree.
    Execute(Progress<Complete>),
    /// The result lands on the target branch.
    Apply(Progress<Settled>),
}

/// The progress of a phase; `D` is the type of the phase's end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Progress<D> {
    /// Waits for a worker.
    Queued,
    /// Run by a worker that holds the plan's lock.
    Processing,
    /// A person must answer this decision first.
    Waiting(DecisionId),
    /// The phase failed; with a decision if only a person can decide how to continue.
    Errored {
        /// The failure.
        failure: Failure,
        /// The open decision about the failure, if there is one.
        decision: Option<DecisionId>,
    },
    /// The plan was cancelled.
    Cancelled {
        /// Reason for cancelling.
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
    /// The merged result is not acceptable; no branch was moved.
    Constrained {
        /// The reasons, as text for people.
        reasons: Vec<String>,
    },
}

/// Why a phase failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The kind of failure.
    pub class: ErrorClass,
    /// A description of the failure, as text for people.
    pub text: String,
    /// The commit with the unfinished work, from which a retry continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<String>,
}

impl Failure {
    /// Returns a failure without work to continue from.
    pub fn new(class: ErrorClass, text: impl Into<String>) -> Self {
        Self { class, text: text.into(), work: None }
    }
}

/// The kind of failure that ended a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorClass {
    /// The agent could not be started.
    AgentMissing,
    /// The agent ended with an error.
    AgentFailed,
    /// The agent's model failed: its service returned an error or did not respond.
    FailedModel,
    /// The service of the agent's model rejected the key or the login.
    FailedAuth,
    /// The agent's model refused the task.
    Refused,
    /// The agent showed no activity and was stopped.
    Stalled,
    /// The agent exceeded its time limit.
    AgentTimedOut,
    /// The agent changed files that it must not change.
    ForbiddenChange,
    /// The agent left files that git cannot commit, such as a nested repository.
    Uncapturable,
    /// The strategy draft could not be parsed.
    StrategyInvalid,
    /// A required validation failed.
    ValidationFailed,
    /// Uncommitted files of the user block the landing.
    TargetDirty,
    /// A git operation failed.
    Git,
    /// A filesystem operation of the run failed.
    Filesystem,
    /// The plan's branch and its remote have diverged.
    Diverged,
    /// The branch and its remote have diverged, and resetting the branch to the remote also failed.
    ResetFailed,
    /// Subplans failed.
    SubplanFailed,
    /// The result of a subplan conflicts with the results joined so far.
    SubplanConflict,
    /// The run's records do not match the repository.
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

    /// Returns true if the agent was stopped early, so that a retry continues from its work.
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

    /// Returns true if the failure text helps the next agent to avoid the same failure.
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
    /// Write the strategy.
    Strategize,
    /// Do the task.
    Execute,
    /// Land the result.
    Apply,
}

/// The name of the progress within a phase.
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

    /// Returns the name used in JSON and on the command line.
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

    /// Returns the name used in JSON and on the command line.
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

/// Returned when a text is not the name of a phase or state.
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

    /// Returns true if no automatic step follows; `reached` answers for the end of the phase.
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

    /// Returns true if the plan cannot change any more.
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

    /// Returns the failure of an errored stage.
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Stage::Strategize(progress) | Stage::Execute(progress) => progress.failure(),
            Stage::Apply(progress) => progress.failure(),
        }
    }

    /// Returns a stage of the same phase with this progress.
    pub(crate) fn same_phase(&self, common: Common) -> Stage {
        match self {
            Stage::Strategize(_) => Stage::Strategize(common.progress()),
            Stage::Execute(_) => Stage::Execute(common.progress()),
            Stage::Apply(_) => Stage::Apply(common.progress()),
        }
    }
}

/// The kinds of progress that exist in every phase.
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
