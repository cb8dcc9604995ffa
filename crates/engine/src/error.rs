//! Errors of engine calls. A refusal means that the plan does not accept the command. All other errors mean
//! that the engine could not find out or could not act.

use std::path::Path;

use drydock_domain::{Decision, DecisionId, Lock, Refusal, SyncOutcome};
use drydock_store::{CommitError, RecordError, StoreError};
use drydock_worktree::{GitError, OpenError};

use crate::sync::ProjectBackup;

/// Why an engine call failed.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The plan does not accept the command.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Another process holds the lock.
    #[error("{} {} is held by {} (process {} on {}, {})", lock.scope.name(), lock.key, lock.holder.owner, lock.holder.process.pid, lock.holder.process.host, lock.holder.purpose)]
    LockHeld {
        /// The lock that is held.
        lock: Box<Lock>,
    },
    /// The lock expired or was broken during the work; nothing more was committed.
    #[error("the lock on {key} was lost; nothing more was committed")]
    LeaseLost {
        /// The plan or project.
        key: String,
    },
    /// The plan is at another revision than the caller expected.
    #[error("the plan is at revision {found}, not at {expected}")]
    StaleRevision {
        /// The revision that the caller expected.
        expected: i64,
        /// The stored revision.
        found: i64,
    },
    /// The named object does not exist.
    #[error("there is no {}", .0.shown())]
    Absent(MissingItem),
    /// Several ids start with this prefix.
    #[error("{given:?} matches more than one {kind}: {}", candidates.join(", "))]
    Ambiguous {
        /// The kind of object.
        kind: &'static str,
        /// The prefix that was given.
        given: String,
        /// The ids that start with the prefix.
        candidates: Vec<String>,
    },
    /// The name is taken.
    #[error("{kind} {name:?} exists already")]
    Exists {
        /// The kind of object.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// Other objects still use it.
    #[error("{kind} {name:?} is still used by {}", by.join(", "))]
    InUse {
        /// The kind of object.
        kind: &'static str,
        /// The name.
        name: String,
        /// The users of the object.
        by: Vec<String>,
    },
    /// Deleting the backup would lose commits that no other ref keeps.
    #[error("backup {} is needed: {}", backup.name, backup.needed.as_deref().unwrap_or("it was changed"))]
    BackupNeeded {
        /// The backup.
        backup: Box<ProjectBackup>,
    },
    /// The answer starts from a backup that no longer exists.
    #[error("{option:?} starts from the backup {backup}, which no longer exists")]
    BackupGone {
        /// The decision.
        decision: DecisionId,
        /// The id of the chosen option.
        option: String,
        /// The ref of the backup.
        backup: String,
        /// The options that can still be carried out.
        others: Vec<String>,
    },
    /// The request is not valid.
    #[error("{text}")]
    Invalid {
        /// The error in the request.
        text: String,
        /// A hint for the caller.
        hint: String,
    },
    /// No agent is configured for the plan.
    #[error("no agent is set: neither in the action, nor with --agent, nor as [defaults] agent")]
    NoAgent {
        /// The agents that could be named.
        usable: Vec<String>,
    },
    /// The branch and its remote have diverged, and a person must answer first.
    #[error("{}", decision.question.text)]
    Diverged {
        /// The open decision.
        decision: Box<Decision>,
    },
    /// The branch could not be synced with its remote; nothing else was done.
    #[error("{}", outcome.summary())]
    Unsynced {
        /// The outcome of the sync.
        outcome: Box<SyncOutcome>,
    },
    /// This process was asked to stop before it had a result; nothing was recorded.
    #[error("interrupted before there was a result; nothing was recorded")]
    Interrupted,
    /// The repository cannot be used.
    #[error(transparent)]
    Repository(#[from] OpenError),
    /// Git failed.
    #[error(transparent)]
    Git(GitError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file operation of Drydock failed.
    #[error("could not {attempt}")]
    File {
        /// The operation that was attempted.
        attempt: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
}

/// A named object that does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingItem {
    /// The kind of object.
    pub kind: &'static str,
    /// The name that was given.
    pub name: String,
    /// The repository that was searched, for a git object.
    pub repository: Option<String>,
}

impl MissingItem {
    fn shown(&self) -> String {
        match &self.repository {
            Some(repository) => format!("{} {:?} in {repository}", self.kind, self.name),
            None => format!("{} {:?}", self.kind, self.name),
        }
    }
}

impl EngineError {
    /// Returns the error for an object that does not exist.
    pub fn absent(kind: &'static str, name: impl ToString) -> Self {
        Self::Absent(MissingItem { kind, name: name.to_string(), repository: None })
    }

    /// Returns the error for a branch or remote that a repository does not have.
    pub(crate) fn absent_in(kind: &'static str, name: impl ToString, repository: &Path) -> Self {
        let repository = Some(repository.display().to_string());
        Self::Absent(MissingItem { kind, name: name.to_string(), repository })
    }

    pub(crate) fn invalid(text: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Invalid { text: text.into(), hint: hint.into() }
    }

    /// Returns the error for an agent that the configuration does not have.
    pub fn unknown_agent(name: &str) -> Self {
        let hint = "add [agents.NAME] to the configuration; see `drydock agent list`";
        Self::invalid(format!("there is no agent {name:?} in the configuration"), hint)
    }

    /// Returns true if the same call may succeed later without any change by a person.
    pub fn is_transient(&self) -> bool {
        match self {
            EngineError::LockHeld { .. }
            | EngineError::LeaseLost { .. }
            | EngineError::StaleRevision { .. }
            | EngineError::Interrupted => true,
            EngineError::Git(failure) => failure.is_transient(),
            EngineError::Store(failure) => failure.is_transient(),
            EngineError::Refused(_)
            | EngineError::Absent(_)
            | EngineError::Ambiguous { .. }
            | EngineError::Exists { .. }
            | EngineError::InUse { .. }
            | EngineError::BackupNeeded { .. }
            | EngineError::BackupGone { .. }
            | EngineError::Diverged { .. }
            | EngineError::Unsynced { .. }
            | EngineError::Invalid { .. }
            | EngineError::NoAgent { .. }
            | EngineError::Repository(_)
            | EngineError::File { .. } => false,
        }
    }
}

impl From<GitError> for EngineError {
    fn from(error: GitError) -> Self {
        match error {
            GitError::Stopped { .. } => Self::Interrupted,
            error => Self::Git(error),
        }
    }
}

impl From<CommitError> for EngineError {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::Refused(refusal) => Self::Refused(refusal),
            CommitError::LeaseLost { plan, .. } => Self::LeaseLost { key: plan.to_string() },
            CommitError::PlanMissing(plan) => Self::absent("plan", plan),
            CommitError::PlanExists(plan) => Self::Exists { kind: "plan", name: plan.to_string() },
            CommitError::ProjectLockMissing => Self::LeaseLost { key: "the project".to_owned() },
            CommitError::Store(error) => Self::Store(error),
        }
    }
}

impl From<RecordError> for EngineError {
    fn from(error: RecordError) -> Self {
        match error {
            RecordError::NotOpen { id } => Self::invalid(
                format!("changeset {id} is not open"),
                "open a changeset and record into its handle",
            ),
            RecordError::LeaseLost { id, .. } => Self::LeaseLost { key: id.to_string() },
            RecordError::Store(error) => Self::Store(error),
        }
    }
}
