//! What a sync is asked to do, and the refs that it keeps for itself.

use drydock_domain::{OnDivergence, Publish};

use crate::checkout::Checkout;
use crate::error::GitError;
use crate::id::CommitId;
use crate::name;
use crate::pin::PinOrder;

/// What to bring together, and how.
#[derive(Debug, Clone, Copy)]
pub struct SyncOrder<'a> {
    /// The branch, here and on the remote.
    pub branch: &'a str,
    /// Where the branch began; what it has beyond is its own.
    pub base: &'a CommitId,
    /// The remote; none when the project has none.
    pub remote: Option<&'a str>,
    /// The directory that has the branch checked out, if any.
    pub worktree: Option<&'a Checkout>,
    /// What to do about commits that cannot be joined.
    pub on_divergence: OnDivergence,
    /// Whether the branch's own commits are to be sent.
    pub publish: Publish,
    /// A tip of the remote of which it was decided that the branch replaces it.
    pub replaces: Option<&'a CommitId>,
    /// For whom and why something may be pinned.
    pub pin: PinOrder<'a>,
}

/// A branch of a remote, and the ref of ours that keeps where it was.
pub(crate) struct RemoteBranch<'a> {
    pub(crate) branch: &'a str,
    pub(crate) tracking: &'a str,
}

/// Returns the ref that keeps where a branch of a remote was when last seen.
pub(crate) fn tracking_name(remote: &str, branch: &str) -> Result<String, GitError> {
    let name = format!("refs/drydock/remote/{}/{branch}", part(remote)?);
    name::full_ref(&name)?;
    Ok(name)
}

/// One part of a ref, so that remotes called `a` and `a/b` do not get into each other's way.
fn part(remote: &str) -> Result<String, GitError> {
    Ok(name::remote(remote)?.replace('/', "%2F"))
}

/// The refs of one sync.
pub(crate) struct Names {
    /// The branch.
    pub(crate) branch: String,
    /// Where the remote's branch was when last seen. Ours alone: the user's `refs/remotes` stay as they are.
    pub(crate) tracking: String,
    /// Where the remote's branch was before somebody deleted it.
    pub(crate) gone: String,
    /// The marker of a recovery that is not settled.
    pub(crate) recovery: String,
}

impl Names {
    pub(crate) fn new(order: &SyncOrder<'_>, remote: &str) -> Result<Names, GitError> {
        let SyncOrder { branch, pin, .. } = order;
        Ok(Names {
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
