//! The request of a sync, and the refs that a sync uses.

use drydock_domain::{OnDivergence, Publish};

use crate::checkout::Checkout;
use crate::error::GitError;
use crate::id::CommitId;
use crate::name;
use crate::pin::BackupRequest;

/// The branch to sync, and how.
#[derive(Debug, Clone, Copy)]
pub struct SyncRequest<'a> {
    /// The branch name, both local and on the remote.
    pub branch: &'a str,
    /// The commit from which the branch started; later commits are its own.
    pub base: &'a CommitId,
    /// The branch on which the commits will land. It is fetched before the first push of `branch`.
    pub target: &'a str,
    /// The remote, or `None` if the project has none.
    pub remote: Option<&'a str>,
    /// The worktree in which the branch is checked out, if any.
    pub worktree: Option<&'a Checkout>,
    /// Policy for commits that cannot be combined.
    pub on_divergence: OnDivergence,
    /// Whether the branch's own commits are pushed.
    pub publish: Publish,
    /// A remote tip that the branch should replace, as decided earlier.
    pub replaces: Option<&'a CommitId>,
    /// Plan, run and reason for any backup.
    pub pin: BackupRequest<'a>,
}

/// A branch of a remote, and drydock's ref that records its position.
pub(crate) struct RemoteBranch<'a> {
    pub(crate) branch: &'a str,
    pub(crate) tracking: &'a str,
}

/// Returns the ref that records the last seen position of a remote's branch.
pub(crate) fn tracking_name(remote: &str, branch: &str) -> Result<String, GitError> {
    let name = format!("refs/drydock/remote/{}/{branch}", part(remote)?);
    name::full_ref(&name)?;
    Ok(name)
}

/// Encodes a remote's name as one path component, so that remotes named `a` and `a/b` do not conflict.
fn part(remote: &str) -> Result<String, GitError> {
    Ok(name::remote(remote)?.replace('/', "%2F"))
}

/// The refs of one sync.
pub(crate) struct SyncRefNames {
    pub(crate) branch: String,
    /// The last seen position of the remote's branch. Used only by drydock: the user's `refs/remotes` stay
    /// unchanged.
    pub(crate) tracking: String,
    /// The position of the remote's branch before it was deleted there.
    pub(crate) gone: String,
    /// The marker of an unfinished recovery.
    pub(crate) recovery: String,
}

impl SyncRefNames {
    pub(crate) fn new(order: &SyncRequest<'_>, remote: &str) -> Result<SyncRefNames, GitError> {
        let SyncRequest { branch, pin, .. } = order;
        Ok(SyncRefNames {
            branch: name::branch_ref(branch)?,
            tracking: tracking_name(remote, branch)?,
            gone: format!("refs/drydock/gone/{}/{branch}", part(remote)?),
            recovery: recovery_name(pin.plan)?,
        })
    }

    pub(crate) fn at_remote(&self) -> RemoteBranch<'_> {
        RemoteBranch { branch: &self.branch, tracking: &self.tracking }
    }
}

/// Returns the ref that marks a recovery of a plan.
pub(crate) fn recovery_name(plan: &str) -> Result<String, GitError> {
    let name = format!("refs/drydock/recovery/{plan}");
    name::full_ref(&name)?;
    Ok(name)
}
