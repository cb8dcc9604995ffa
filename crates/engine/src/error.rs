//! What an engine call can end with other than its answer. A refusal says that the world said no; the others say
//! that we could not find out or could not do it.

use std::path::Path;

use drydock_domain::{Decision, DecisionId, Lock, Refusal, SyncOutcome};
use drydock_store::{CommitError, RecordError, StoreError};
use drydock_worktree::{GitError, OpenError};

use crate::sync::Backup;

/// Why an engine call has no answer.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The state machine refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Another process works on it.
    #[error("{} {} is held by {} (process {} on {}, {})", lock.scope.name(), lock.key, lock.holder.owner, lock.holder.process.pid, lock.holder.process.host, lock.holder.purpose)]
    LockHeld {
        /// The lock in the way.
        lock: Box<Lock>,
    },
    /// The lock ran out or was broken while we worked; nothing more was committed.
    #[error("the lock on {key} was lost; nothing more was committed")]
    LeaseLost {
        /// The plan or project.
        key: String,
    },
    /// The plan is at another revision than the caller expected.
    #[error("the plan is at revision {found}, not at {expected}")]
    StaleRevision {
        /// What the caller expected.
        expected: i64,
        /// What is stored.
        found: i64,
    },
    /// There is no such thing.
    #[error("there is no {}", .0.shown())]
    Absent(Absent),
    /// The beginning of an id fits several.
    #[error("{given:?} fits more than one {kind}: {}", candidates.join(", "))]
    Ambiguous {
        /// The kind of thing.
        kind: &'static str,
        /// What was typed.
        given: String,
        /// What it fits.
        candidates: Vec<String>,
    },
    /// The name is taken.
    #[error("{kind} {name:?} exists already")]
    Exists {
        /// The kind of thing.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// Something still needs it.
    #[error("{kind} {name:?} is still used by {}", by.join(", "))]
    InUse {
        /// The kind of thing.
        kind: &'static str,
        /// Its name.
        name: String,
        /// Who needs it.
        by: Vec<String>,
    },
    /// A backup would take with it what nothing else keeps.
    #[error("backup {} is needed: {}", backup.name, backup.needed.as_deref().unwrap_or("it was changed"))]
    BackupNeeded {
        /// The backup.
        backup: Box<Backup>,
    },
    /// An answer begins on a backup that is gone.
    #[error("{option:?} begins on the backup {backup}, which is gone")]
    BackupGone {
        /// The decision.
        decision: DecisionId,
        /// The answer.
        option: String,
        /// The ref.
        backup: String,
        /// The answers that can still be carried out.
        others: Vec<String>,
    },
    /// What was asked for makes no sense.
    #[error("{text}")]
    Invalid {
        /// What is wrong.
        text: String,
        /// What to do.
        hint: String,
    },
    /// No agent would work on the plan.
    #[error("no agent is named: neither by the action, nor by --agent, nor as [defaults] agent")]
    NoAgent {
        /// Those that could be named.
        usable: Vec<String>,
    },
    /// The branch and its remote diverged, and a person must answer first.
    #[error("{}", decision.question.text)]
    Diverged {
        /// What they are asked.
        decision: Box<Decision>,
    },
    /// The branch could not be brought together with its remote; nothing else was done.
    #[error("{}", outcome.summary())]
    Unsynced {
        /// What came of it.
        outcome: Box<SyncOutcome>,
    },
    /// This process was asked to stop before it had an answer; nothing was recorded.
    #[error("interrupted before there was an answer; nothing was recorded")]
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
    /// A file of our own could not be handled.
    #[error("could not {attempt}")]
    File {
        /// What was tried.
        attempt: String,
        /// What the system said.
        source: std::io::Error,
    },
}

/// Something that was named and is not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Absent {
    /// The kind of thing.
    pub kind: &'static str,
    /// What it was called.
    pub name: String,
    /// The repository that it was looked for in, where it is a thing of git.
    pub repository: Option<String>,
}

impl Absent {
    fn shown(&self) -> String {
        match &self.repository {
            Some(repository) => format!("{} {:?} in {repository}", self.kind, self.name),
            None => format!("{} {:?}", self.kind, self.name),
        }
    }
}

impl EngineError {
    /// Says that there is no such thing.
    pub fn absent(kind: &'static str, name: impl ToString) -> Self {
        Self::Absent(Absent { kind, name: name.to_string(), repository: None })
    }

    /// Says that a repository has no such branch or remote.
    pub(crate) fn absent_in(kind: &'static str, name: impl ToString, repository: &Path) -> Self {
        let repository = Some(repository.display().to_string());
        Self::Absent(Absent { kind, name: name.to_string(), repository })
    }

    pub(crate) fn invalid(text: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Invalid { text: text.into(), hint: hint.into() }
    }

    /// Says that the configuration has no such agent.
    pub fn unknown_agent(name: &str) -> Self {
        let hint = "add [agents.NAME] to the configuration; `drydock agent list` shows those it has";
        Self::invalid(format!("there is no agent {name:?} in the configuration"), hint)
    }

    /// Says whether the same call may pass later without anybody changing anything.
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
