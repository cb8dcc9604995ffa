//! Resets a branch to the remote's commit after its own commits were backed up. Safe to repeat.

use std::collections::HashSet;

use drydock_domain::{BackupRef, SyncOutcome, WorktreeState, error_chain};

use crate::crash;
use crate::diff::raw_changes;
use crate::error::GitError;
use crate::id::{CommitId, TreeId};
use crate::pin::{BackupContent, MarkerWrite, UncommittedWork};
use crate::refs::{RefCondition, update};
use crate::repository::{Repository, tree_of};
use crate::sync::folder::{LockOutcome, LockedWorktree};
use crate::sync::footing::footing;
use crate::sync::order::{SyncRefNames, SyncRequest};
use crate::sync::recovery::RecoveryMarker;
use crate::sync::shift::{BranchMove, BranchMoveOutcome};

impl Repository {
    /// Backs up the commits that cannot be combined, marks the recovery, and sets the branch to the remote's
    /// commit.
    pub(crate) fn recover(
        &self,
        order: &SyncRequest<'_>,
        names: &SyncRefNames,
        unpinned: &RecoveryMarker,
        held: Option<&UncommittedWork>,
        folder: Option<LockedWorktree<'_>>,
    ) -> Result<SyncOutcome, GitError> {
        let (marker, blob) = self.mark(order, names, unpinned, held, None)?;
        crash::hit("sync.pinned");
        Ok(self.reset(names, &marker, &blob, folder))
    }

    /// Completes an interrupted recovery and returns its outcome. Returns `None` if the branch has since
    /// moved elsewhere; the marker is then obsolete and is deleted.
    pub(crate) fn resume(
        &self,
        order: &SyncRequest<'_>,
        names: &SyncRefNames,
        blob: &str,
        local: &CommitId,
    ) -> Result<Option<SyncOutcome>, GitError> {
        let attempt = format!("complete the recovery of {}", order.branch);
        let marker = self.marker_read(blob)?;
        let target = commit(&marker.remote, &attempt)?;
        let own = commit(&marker.local, &attempt)?;
        // A branch beyond the remote's commit and without its own old commit was reset and then received new
        // commits. If it contains both, someone merged them manually.
        let reset = *local == target
            || (*local != own && self.is_ancestor(&target, local)? && !self.is_ancestor(&own, local)?);
        if reset {
            return Ok(Some(done(marker)));
        }
        if local.as_str() != marker.local {
            update(self.place(), &attempt, format!("delete {}\0{blob}\0", names.recovery))?;
            return Ok(None);
        }
        let _lock = self.lock(&attempt)?;
        let checkout = match order.worktree {
            Some(checkout) => match footing(checkout, &names.branch)? {
                WorktreeState::Unattached => None,
                WorktreeState::OnBranch => Some(checkout),
                WorktreeState::Locked { lock } => {
                    return Ok(Some(failed(marker, format!("{lock} is held"))));
                }
                WorktreeState::Elsewhere { on } => {
                    return Ok(Some(failed(marker, format!("the worktree is on {on}"))));
                }
                WorktreeState::MidOperation { operation } => {
                    return Ok(Some(failed(marker, format!("a {operation} is in progress"))));
                }
            },
            None => None,
        };
        let Some(checkout) = checkout else {
            return Ok(Some(self.reset(names, &marker, blob, None)));
        };
        let folder = match LockedWorktree::open(checkout, local, &target, &attempt) {
            Ok(LockOutcome::Ready(folder)) => folder,
            Ok(LockOutcome::Busy(what)) => {
                return Ok(Some(failed(marker, format!("blocked by {what}"))));
            }
            Err(error) => return Ok(Some(failed(marker, error_chain(&error)))),
        };
        let (marker, blob) = if self.is_kept(&folder, &marker, &target, &attempt)? {
            (marker, blob.to_owned())
        } else {
            // The directory has changed since; the changes are backed up as well.
            self.mark(order, names, &marker, folder.held.as_ref(), Some(blob))?
        };
        Ok(Some(self.reset(names, &marker, &blob, Some(folder))))
    }

    /// Writes the backup and the marker in one transaction.
    fn mark(
        &self,
        order: &SyncRequest<'_>,
        names: &SyncRefNames,
        unpinned: &RecoveryMarker,
        held: Option<&UncommittedWork>,
        before: Option<&str>,
    ) -> Result<(RecoveryMarker, String), GitError> {
        let attempt = "mark a recovery";
        let marked = |pin: &BackupRef| RecoveryMarker {
            pin: pin.clone(),
            tree: held.map(|held| held.tree.to_string()),
            staged: held.and_then(|held| held.staged.as_ref()).map(TreeId::to_string),
            ..unpinned.clone()
        };
        let text = |pin: &BackupRef| marked(pin).text();
        let write = MarkerWrite { name: &names.recovery, before, text: &text };
        let (local, remote) = (commit(&unpinned.local, attempt)?, commit(&unpinned.remote, attempt)?);
        let content = BackupContent { head: &local, held: held.cloned(), remote: Some(&remote) };
        let pinned = self.backup_write(&order.pin, &content, Some(&write))?;
        let blob = pinned.marker.ok_or_else(|| GitError::unexpected(attempt, "no marker was written"))?;
        Ok((marked(&pinned.line), blob))
    }

    /// Returns true if all content of the directory is in the backup or equals the remote's.
    fn is_kept(
        &self,
        folder: &LockedWorktree<'_>,
        marker: &RecoveryMarker,
        target: &CommitId,
        attempt: &str,
    ) -> Result<bool, GitError> {
        let place = self.place();
        let pinned = match &marker.tree {
            Some(tree) => tree.parse().map_err(|_| GitError::unexpected(attempt, tree.as_str()))?,
            None => tree_of(place, &commit(&marker.local, attempt)?)?,
        };
        let target = tree_of(place, target)?;
        let staged = folder.held.as_ref().and_then(|held| held.staged.as_ref());
        let known = |tree: &TreeId| -> Result<bool, GitError> {
            let other = raw_changes(place, &pinned, tree)?;
            let new: HashSet<Vec<u8>> =
                other.into_iter().filter(|c| c.mode_after != 0).map(|c| c.path).collect();
            Ok(!raw_changes(place, &target, tree)?.iter().any(|change| new.contains(&change.path)))
        };
        let staged_known = match staged {
            Some(staged) if marker.staged.as_deref() != Some(staged.as_str()) => known(staged)?,
            Some(_) | None => true,
        };
        Ok(staged_known && known(&folder.tree)?)
    }

    /// Resets the branch. The backup was written and read back, and the marker names it, so commits may be
    /// removed from the branch now.
    fn reset(
        &self,
        names: &SyncRefNames,
        marker: &RecoveryMarker,
        blob: &str,
        folder: Option<LockedWorktree<'_>>,
    ) -> SyncOutcome {
        match self.try_reset(names, marker, blob, folder) {
            Ok(BranchMoveOutcome::Done) => done(marker.clone()),
            Ok(BranchMoveOutcome::Refused(reason)) => failed(marker.clone(), reason),
            Err(error) => failed(marker.clone(), error_chain(&error)),
        }
    }

    fn try_reset(
        &self,
        names: &SyncRefNames,
        marker: &RecoveryMarker,
        blob: &str,
        folder: Option<LockedWorktree<'_>>,
    ) -> Result<BranchMoveOutcome, GitError> {
        let attempt = format!("reset {} to {}", names.branch, marker.remote);
        let (local, target) = (commit(&marker.local, &attempt)?, commit(&marker.remote, &attempt)?);
        let files = self.tree_of(&target)?;
        let permit = RefCondition { name: &names.recovery, object: blob, note: "drydock: sync" };
        let shift = BranchMove { full: &names.branch, from: &local, to: &target, files: &files, permit };
        self.move_branch(&shift, folder)
    }
}

fn done(marker: RecoveryMarker) -> SyncOutcome {
    let RecoveryMarker { pin, discarded, remote, arrived, clash, .. } = marker;
    SyncOutcome::RecoveredByReset { pin, discarded, to: remote, arrived, clash }
}

fn failed(marker: RecoveryMarker, reason: String) -> SyncOutcome {
    let RecoveryMarker { pin, discarded, remote, arrived, clash, .. } = marker;
    SyncOutcome::ResetFailed { pin, discarded, remote, arrived, clash, reason }
}

fn commit(text: &str, attempt: &str) -> Result<CommitId, GitError> {
    text.parse().map_err(|_| GitError::unexpected(attempt, text))
}
