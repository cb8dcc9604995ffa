//! The outcome of a sync. Callers match every case. An outcome has no flags, and an unknown state is never
//! reported as success.

use serde::{Deserialize, Serialize};

/// The outcome of syncing a plan's branch with its remote.
#[must_use = "ignoring the outcome hides a divergence"]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum SyncOutcome {
    /// The project has no remote.
    NoRemote,
    /// The remote does not have the branch, and there was nothing to push.
    NoRemoteBranch,
    /// Both are at the same commit.
    InSync {
        /// That commit.
        head: String,
    },
    /// The branch was behind and was moved forward to the remote's commit.
    FastForwarded {
        /// The commit of the branch before.
        from: String,
        /// The commit of the branch now.
        to: String,
        /// The commits that arrived, oldest first.
        arrived: Vec<CommitLine>,
    },
    /// The branch was ahead and was pushed.
    Pushed {
        /// The commit of the remote branch before; `None` if it did not exist.
        from: Option<String>,
        /// The commit of both branches now.
        to: String,
        /// The pushed commits, oldest first.
        sent: Vec<CommitLine>,
    },
    /// The branch is ahead, and the push failed. Neither side changed.
    PushFailed {
        /// The branch: the plan's, or the target that a landing moved.
        #[serde(default)]
        branch: String,
        /// The remote that rejected the push or did not respond.
        #[serde(default)]
        remote: String,
        /// The commit of the branch.
        head: String,
        /// The error of git or the remote.
        reason: String,
    },
    /// The branch is ahead, and its commits must not be pushed: their run did not succeed.
    KeptLocal {
        /// The commit of the branch.
        head: String,
        /// The commits that only the branch has, oldest first.
        local: Vec<CommitLine>,
    },
    /// Both had commits of their own; those of the branch were replayed on the remote's.
    Rebased {
        /// The commit of the branch before.
        from: String,
        /// The commit of the branch now.
        to: String,
        /// The commit of the remote branch before.
        onto: String,
        /// The backup of the branch.
        pin: BackupRef,
        /// The commits removed from the branch, as they were, oldest first (S4.4).
        #[serde(default)]
        discarded: Vec<CommitLine>,
        /// The removed commits that were not replayed, because the remote already has their changes.
        #[serde(default)]
        absorbed: Vec<CommitLine>,
        /// The replayed commits, as they are now, oldest first.
        replayed: Vec<CommitLine>,
        /// The commits that arrived, oldest first.
        arrived: Vec<CommitLine>,
        /// Whether the result was pushed.
        publishing: PublishResult,
    },
    /// Both had commits of their own that could not be merged. The branch was reset to the remote's commit;
    /// its own commits are backed up.
    RecoveredByReset {
        /// The backup of the branch and its edits.
        pin: BackupRef,
        /// The commits removed from the branch, oldest first.
        discarded: Vec<CommitLine>,
        /// The commit of both branches now.
        to: String,
        /// The commits that arrived, oldest first.
        arrived: Vec<CommitLine>,
        /// Why they could not be merged.
        clash: ReplayConflict,
    },
    /// Like `RecoveredByReset`, but the reset failed. The branch is unchanged or partly changed, and backed
    /// up.
    ResetFailed {
        /// The backup of the branch and its edits.
        pin: BackupRef,
        /// The commits that only the branch has, oldest first.
        discarded: Vec<CommitLine>,
        /// The commit of the remote branch.
        remote: String,
        /// The commits that only the remote has, oldest first.
        arrived: Vec<CommitLine>,
        /// Why they could not be merged.
        clash: ReplayConflict,
        /// Why the reset failed.
        reason: String,
    },
    /// Both have commits of their own that could not be merged. The branch is unchanged, and backed up.
    Unreconciled {
        /// The backup of the branch and its edits.
        pin: BackupRef,
        /// The commits that only the branch has, oldest first.
        discarded: Vec<CommitLine>,
        /// The commit of the branch.
        local: String,
        /// The commit of the remote branch.
        remote: String,
        /// The commits that only the remote has, oldest first.
        arrived: Vec<CommitLine>,
        /// Why they could not be merged.
        clash: ReplayConflict,
    },
    /// The state of the remote could not be fetched.
    FetchFailed {
        /// The error of git or the remote.
        reason: String,
    },
    /// The worktree is not on the plan's branch.
    Detached {
        /// The branch or commit that it is on.
        on: String,
    },
    /// Another git operation is in progress in the worktree.
    MidOperation {
        /// The operation: `rebase`, `merge`, `cherry-pick`, `revert`, `bisect`, `am`, or a held lock file.
        operation: String,
    },
    /// The state could not be read, or the step failed; the branch is unchanged.
    Unknown {
        /// The attempted step.
        attempt: String,
        /// The error of git.
        reason: String,
    },
}

/// A commit, with the data by which a person recognises it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitLine {
    /// The commit id.
    pub id: String,
    /// The first line of its message.
    pub subject: String,
    /// The author's name.
    pub author: String,
}

/// A backup ref that was written and read back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupRef {
    /// The full name of the ref.
    pub name: String,
    /// The commit that it keeps.
    pub commit: String,
    /// The commit of the branch when the backup was made.
    pub head: String,
    /// Whether it keeps uncommitted edits.
    pub uncommitted: Uncommitted,
}

/// Whether a backup has uncommitted edits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Uncommitted {
    /// There were none.
    Nothing,
    /// The backup commit contains them.
    Kept,
}

/// Whether a rebased branch was pushed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PublishResult {
    /// It was pushed.
    Done,
    /// It was not to be pushed.
    NotAsked,
    /// The push failed; the next sync retries it.
    Failed {
        /// The error of git or the remote.
        reason: String,
    },
}

/// Why the commits of both sides could not be merged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayConflict {
    /// The kind of reason.
    #[serde(default)]
    pub cause: ClashCause,
    /// The commit that could not be replayed; `None` if it was the uncommitted edits.
    pub commit: Option<CommitLine>,
    /// The files that both sides changed.
    pub paths: Vec<String>,
    /// The message of git.
    pub text: String,
}

/// The kind of reason why the commits of both sides could not be merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClashCause {
    /// Both sides changed the same places.
    #[default]
    Content,
    /// The histories have no common commit, and therefore no merge base.
    NoCommonCommit,
}

/// The effect of an outcome on the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncStatus {
    /// Branch and remote are in sync, as far as possible: the plan continues.
    Settled,
    /// The remote's state is unknown, or the push failed: the plan stays unchanged, and the next sync
    /// retries.
    Unsettled,
    /// A person must decide how to continue.
    Diverged,
}

impl SyncStatus {
    /// Returns the name used in JSON.
    pub fn name(self) -> &'static str {
        match self {
            SyncStatus::Settled => "settled",
            SyncStatus::Unsettled => "unsettled",
            SyncStatus::Diverged => "diverged",
        }
    }
}

impl SyncOutcome {
    /// Returns the name used in events and JSON.
    pub fn name(&self) -> &'static str {
        match self {
            SyncOutcome::NoRemote => "no_remote",
            SyncOutcome::NoRemoteBranch => "no_remote_branch",
            SyncOutcome::InSync { .. } => "in_sync",
            SyncOutcome::FastForwarded { .. } => "fast_forwarded",
            SyncOutcome::Pushed { .. } => "pushed",
            SyncOutcome::PushFailed { .. } => "push_failed",
            SyncOutcome::KeptLocal { .. } => "kept_local",
            SyncOutcome::Rebased { .. } => "rebased",
            SyncOutcome::RecoveredByReset { .. } => "recovered_by_reset",
            SyncOutcome::ResetFailed { .. } => "reset_failed",
            SyncOutcome::Unreconciled { .. } => "unreconciled",
            SyncOutcome::FetchFailed { .. } => "fetch_failed",
            SyncOutcome::Detached { .. } => "detached",
            SyncOutcome::MidOperation { .. } => "mid_operation",
            SyncOutcome::Unknown { .. } => "unknown",
        }
    }

    /// Returns the effect of the outcome on the plan.
    pub fn standing(&self) -> SyncStatus {
        match self {
            SyncOutcome::NoRemote
            | SyncOutcome::NoRemoteBranch
            | SyncOutcome::InSync { .. }
            | SyncOutcome::FastForwarded { .. }
            | SyncOutcome::Pushed { .. }
            | SyncOutcome::KeptLocal { .. }
            | SyncOutcome::Rebased { publishing: PublishResult::Done | PublishResult::NotAsked, .. } => {
                SyncStatus::Settled
            }
            SyncOutcome::PushFailed { .. }
            | SyncOutcome::Rebased { publishing: PublishResult::Failed { .. }, .. }
            | SyncOutcome::FetchFailed { .. }
            | SyncOutcome::Detached { .. }
            | SyncOutcome::MidOperation { .. }
            | SyncOutcome::Unknown { .. } => SyncStatus::Unsettled,
            SyncOutcome::RecoveredByReset { .. }
            | SyncOutcome::ResetFailed { .. }
            | SyncOutcome::Unreconciled { .. } => SyncStatus::Diverged,
        }
    }
}
