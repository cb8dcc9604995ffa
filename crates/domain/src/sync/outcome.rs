//! What a sync came to. Callers match every case; nothing here is a flag, and "could not find out" is never success.

use serde::{Deserialize, Serialize};

/// What a sync of a plan's branch with its remote came to.
#[must_use = "an outcome that nobody looks at is a divergence that nobody is told about"]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum SyncOutcome {
    /// The project has no remote.
    NoRemote,
    /// The remote has no such branch, and there was nothing to send there.
    NoRemoteBranch,
    /// Both are at the same commit.
    InSync {
        /// That commit.
        head: String,
    },
    /// The branch was behind, and is now where the remote is.
    FastForwarded {
        /// Where it was.
        from: String,
        /// Where it is.
        to: String,
        /// The commits that arrived, oldest first.
        arrived: Vec<CommitLine>,
    },
    /// The branch was ahead, and the remote is now where it is.
    Pushed {
        /// Where the remote was; none when it had no such branch.
        from: Option<String>,
        /// Where both are.
        to: String,
        /// The commits that were sent, oldest first.
        sent: Vec<CommitLine>,
    },
    /// The branch is ahead, and sending it failed. Nothing was changed on either side.
    PushFailed {
        /// The branch: the plan's, or the target that a landing moved.
        #[serde(default)]
        branch: String,
        /// The remote that did not take it.
        #[serde(default)]
        remote: String,
        /// Where the branch is.
        head: String,
        /// What git or the remote said.
        reason: String,
    },
    /// The branch is ahead, and its commits are not to be sent: they are of a run that did not succeed.
    KeptLocal {
        /// Where the branch is.
        head: String,
        /// The commits that only the branch has, oldest first.
        local: Vec<CommitLine>,
    },
    /// Both had commits of their own; those of the branch now stand on those of the remote.
    Rebased {
        /// Where the branch was.
        from: String,
        /// Where it is.
        to: String,
        /// Where the remote was.
        onto: String,
        /// The branch as it was before.
        pin: PinLine,
        /// The commits that left the branch, as they were, oldest first (S4.4).
        #[serde(default)]
        discarded: Vec<CommitLine>,
        /// Those of them that nothing stands for: the remote had their changes already.
        #[serde(default)]
        absorbed: Vec<CommitLine>,
        /// The commits that were replayed, as they are now, oldest first.
        replayed: Vec<CommitLine>,
        /// The commits that arrived, oldest first.
        arrived: Vec<CommitLine>,
        /// Whether the remote has the result.
        publishing: Publishing,
    },
    /// Both had commits of their own that could not be joined; the branch was set to the remote's, its own are pinned.
    RecoveredByReset {
        /// The branch and its edits as they were before.
        pin: PinLine,
        /// The commits that left the branch, oldest first.
        discarded: Vec<CommitLine>,
        /// Where the branch and the remote are.
        to: String,
        /// The commits that arrived, oldest first.
        arrived: Vec<CommitLine>,
        /// Why they could not be joined.
        clash: Clash,
    },
    /// As above, but setting the branch to the remote's failed too; it is as it was, or partly so, and pinned.
    ResetFailed {
        /// The branch and its edits as they were before.
        pin: PinLine,
        /// The commits that only the branch has, oldest first.
        discarded: Vec<CommitLine>,
        /// Where the remote is.
        remote: String,
        /// The commits that only the remote has, oldest first.
        arrived: Vec<CommitLine>,
        /// Why they could not be joined.
        clash: Clash,
        /// Why the reset failed.
        reason: String,
    },
    /// Both have commits of their own that could not be joined; the branch was left as it is, and pinned.
    Unreconciled {
        /// The branch and its edits as they are.
        pin: PinLine,
        /// The commits that only the branch has, oldest first.
        discarded: Vec<CommitLine>,
        /// Where the branch is.
        local: String,
        /// Where the remote is.
        remote: String,
        /// The commits that only the remote has, oldest first.
        arrived: Vec<CommitLine>,
        /// Why they could not be joined.
        clash: Clash,
    },
    /// It could not be found out where the remote is.
    FetchFailed {
        /// What git or the remote said.
        reason: String,
    },
    /// The worktree is not on the plan's branch.
    Detached {
        /// What it is on: a branch, or a commit.
        on: String,
    },
    /// Something else is under way in the worktree.
    MidOperation {
        /// What: `rebase`, `merge`, `cherry-pick`, `revert`, `bisect`, `am`, or a lock that is held.
        operation: String,
    },
    /// It could not be found out or done; the branch is as it was.
    Unknown {
        /// What was tried.
        attempt: String,
        /// What git said.
        reason: String,
    },
}

/// A commit, as a person recognises it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommitLine {
    /// Its id.
    pub id: String,
    /// The first line of its message.
    pub subject: String,
    /// Who wrote it.
    pub author: String,
}

/// A backup ref that was written and read back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinLine {
    /// The ref's full name.
    pub name: String,
    /// The commit it keeps.
    pub commit: String,
    /// The commit that the branch was at.
    pub head: String,
    /// Whether it keeps edits that were not committed.
    pub uncommitted: Uncommitted,
}

/// Whether there were edits that were not committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Uncommitted {
    /// There were none.
    Nothing,
    /// There were, and the pin's commit has them.
    Kept,
}

/// Whether a rebased branch reached the remote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Publishing {
    /// It did.
    Done,
    /// It was not to be sent.
    NotAsked,
    /// It did not; the next sync tries again.
    Failed {
        /// What git or the remote said.
        reason: String,
    },
}

/// Why two lines of commits could not be joined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clash {
    /// What kind of reason it is.
    #[serde(default)]
    pub cause: ClashCause,
    /// The commit that could not be replayed; none when it was the uncommitted edits.
    pub commit: Option<CommitLine>,
    /// The files that both sides changed.
    pub paths: Vec<String>,
    /// What git said.
    pub text: String,
}

/// What kind of reason two lines of commits could not be joined for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClashCause {
    /// Both changed the same places.
    #[default]
    Content,
    /// The histories have no commit in common, so none of them is a change to the other.
    NoCommonCommit,
}

/// What an outcome means for the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Branch and remote are together, as far as they can be: the plan goes on.
    Settled,
    /// It could not be found out, or not be sent: the plan stays where it is, and the next sync tries again.
    Unsettled,
    /// A person must say how to go on.
    Diverged,
}

impl Standing {
    /// Returns the name used in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Standing::Settled => "settled",
            Standing::Unsettled => "unsettled",
            Standing::Diverged => "diverged",
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

    /// Returns what it means for the plan.
    pub fn standing(&self) -> Standing {
        match self {
            SyncOutcome::NoRemote
            | SyncOutcome::NoRemoteBranch
            | SyncOutcome::InSync { .. }
            | SyncOutcome::FastForwarded { .. }
            | SyncOutcome::Pushed { .. }
            | SyncOutcome::KeptLocal { .. }
            | SyncOutcome::Rebased { publishing: Publishing::Done | Publishing::NotAsked, .. } => {
                Standing::Settled
            }
            SyncOutcome::PushFailed { .. }
            | SyncOutcome::Rebased { publishing: Publishing::Failed { .. }, .. }
            | SyncOutcome::FetchFailed { .. }
            | SyncOutcome::Detached { .. }
            | SyncOutcome::MidOperation { .. }
            | SyncOutcome::Unknown { .. } => Standing::Unsettled,
            SyncOutcome::RecoveredByReset { .. }
            | SyncOutcome::ResetFailed { .. }
            | SyncOutcome::Unreconciled { .. } => Standing::Diverged,
        }
    }
}
