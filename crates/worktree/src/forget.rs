//! Removes the refs of a landed plan from the repository and its remote: branch, checkpoints, remote-tracking
//! ref.
//!
//! Refs are removed only if the landed work contains their commits. A branch with other commits or checked
//! out in a worktree stays. The remote's branch stays if it moved since the last fetch: the remote compares
//! its position with ours.

use crate::error::GitError;
use crate::id::CommitId;
use crate::name;
use crate::push::Push;
use crate::refs::update;
use crate::remote_land::SentBranch;
use crate::repository::Repository;

impl Repository {
    /// Removes a branch if all its commits landed, and all refs with these prefixes, in one transaction.
    /// Returns the removed names.
    pub fn branch_forget(
        &self,
        branch: &str,
        landed: &CommitId,
        prefixes: &[String],
    ) -> Result<Vec<String>, GitError> {
        let attempt = format!("remove {branch}");
        // Prevents a worktree from being created for the branch in the meantime.
        let _lock = self.lock(&attempt)?;
        let removed = self.forgettable(branch, landed, prefixes)?;
        let records: String = removed.iter().map(|(name, at)| format!("delete {name}\0{at}\0")).collect();
        if !records.is_empty() {
            update(self.place(), &attempt, records)?;
        }
        Ok(removed.into_iter().map(|(name, _)| name).collect())
    }

    /// Returns the refs that `branch_forget` would remove.
    pub fn branch_forgettable(
        &self,
        branch: &str,
        landed: &CommitId,
        prefixes: &[String],
    ) -> Result<Vec<String>, GitError> {
        Ok(self.forgettable(branch, landed, prefixes)?.into_iter().map(|(name, _)| name).collect())
    }

    fn forgettable(
        &self,
        branch: &str,
        landed: &CommitId,
        prefixes: &[String],
    ) -> Result<Vec<(String, CommitId)>, GitError> {
        let full = name::branch_ref(branch)?;
        let mut found = Vec::new();
        for prefix in prefixes {
            found.extend(self.refs(prefix)?);
        }
        if let Some(tip) = self.ref_read(&full)?
            && self.is_ancestor(&tip, landed)?
            && !self.is_checked_out(&full)?
        {
            found.push((full, tip));
        }
        Ok(found)
    }

    /// Removes a branch from a remote if it has not moved since it was last seen and all its commits landed.
    /// Returns `None` if it was never seen there or has other commits. A remote that rejects the removal has
    /// already removed or moved the branch, or allows no deletions, so there is no retry.
    pub fn branch_forget_at(
        &self,
        remote: &str,
        branch: &str,
        landed: &CommitId,
    ) -> Result<Option<Push>, GitError> {
        let Some(sent) = self.sent_branch(remote, branch, landed)? else { return Ok(None) };
        let pushed = self.push_removal(remote, &sent)?;
        self.forget_sent(&sent)?;
        Ok(Some(pushed))
    }

    /// Removes the remote-tracking ref of a branch that the remote no longer has.
    pub(crate) fn forget_sent(&self, sent: &SentBranch) -> Result<(), GitError> {
        let SentBranch { tracking, seen, .. } = sent;
        update(self.place(), &format!("delete {tracking}"), format!("delete {tracking}\0{seen}\0"))
    }
}

/// Prefix of remote-tracking refs: the last known positions of remote branches.
const SENT: &str = "refs/drydock/remote/";

impl Repository {
    /// Lists the branches that were seen at remotes, without the names of the remotes.
    pub fn sent_branches(&self) -> Result<Vec<String>, GitError> {
        let branch =
            |name: &str| name.strip_prefix(SENT)?.split_once('/').map(|(_, branch)| branch.to_owned());
        Ok(self.refs(SENT)?.iter().filter_map(|(name, _)| branch(name)).collect())
    }
}
