//! Moves a branch together with the files of its worktree.
//!
//! The order is files, index, ref. A crash in between leaves the old head with newer files. This looks like
//! an edit that merges without conflict with the commit it came from; with the reverse order it would look
//! like an edit that reverts that commit. Before the first file is written, git has compared the old value of
//! the ref and locked it.

use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;

use crate::capture::is_own;
use crate::checkout::Checkout;
use crate::crash;
use crate::diff::raw_changes;
use crate::error::GitError;
use crate::id::{CommitId, TreeId};
use crate::land::CheckedOutIn;
use crate::private_index::{GITLINK, IndexCopy, PrivateIndex};
use crate::refs::{Moved, Prepared, PreparedMove, RefCondition};
use crate::repository::{Repository, commit_at, head_branch, tree_of};
use crate::run::{GitContext, LIMIT_FILES};
use crate::sync::folder::LockedWorktree;

/// A move of a branch.
pub(crate) struct BranchMove<'a> {
    /// Full name of the branch.
    pub(crate) full: &'a str,
    pub(crate) from: &'a CommitId,
    pub(crate) to: &'a CommitId,
    /// The new content of the directory: the commit's own files, with or without edits.
    pub(crate) files: &'a TreeId,
    pub(crate) permit: RefCondition<'a>,
}

/// The outcome of a move.
pub(crate) enum BranchMoveOutcome {
    Done,
    /// Nothing was changed, for this reason.
    Refused(String),
}

impl Repository {
    /// Moves a branch. The caller must hold the repository lock.
    pub(crate) fn move_branch(
        &self,
        shift: &BranchMove<'_>,
        folder: Option<LockedWorktree<'_>>,
    ) -> Result<BranchMoveOutcome, GitError> {
        let own = folder.as_ref().map(|folder| folder.checkout);
        if let Some(reason) = self.held_elsewhere(shift.full, own)? {
            return Ok(BranchMoveOutcome::Refused(reason));
        }
        let Some(folder) = folder else {
            return match self.branch_move(shift.full, shift.from, shift.to, &shift.permit)? {
                Moved::Done => {
                    crash::hit("sync.moved");
                    Ok(BranchMoveOutcome::Done)
                }
                Moved::Revoked => Ok(BranchMoveOutcome::Refused(revoked(shift))),
                Moved::Elsewhere(found) => Ok(BranchMoveOutcome::Refused(elsewhere(shift, found))),
            };
        };
        let attempt = format!("move {} to {}", folder.checkout.path().display(), shift.to);
        let place = folder.checkout.place.clone();
        let BranchMove { full, from, to, .. } = shift;
        let prepared = match PreparedMove::prepare(&place, full, from, to, &shift.permit)? {
            Prepared::Ready(prepared) => prepared,
            Prepared::Revoked => return Ok(BranchMoveOutcome::Refused(revoked(shift))),
            Prepared::Elsewhere(found) => return Ok(BranchMoveOutcome::Refused(elsewhere(shift, found))),
        };
        if let Err(error) = write_files(&folder, &place, shift, &attempt) {
            // A partial update must not appear as a user's edits later.
            take_back(&folder, &place, shift, &attempt)?;
            return Err(error);
        }
        let LockedWorktree { lock, index, .. } = folder;
        index.install(&place.git_dir, &attempt)?;
        lock.release(&attempt)?;
        crash::hit("sync.index");
        prepared.commit()?;
        crash::hit("sync.moved");
        verify(&place, shift, &attempt)?;
        Ok(BranchMoveOutcome::Done)
    }

    /// Returns where else the branch is checked out, if anywhere. Moving the ref would make the files there
    /// look like edits.
    pub(crate) fn held_elsewhere(
        &self,
        full: &str,
        own: Option<&Checkout>,
    ) -> Result<Option<String>, GitError> {
        let mut worktrees = self.worktrees()?;
        worktrees.retain(|worktree| own.is_none_or(|own| own.place.git_dir != worktree.git_dir));
        Ok(match self.holder(&worktrees, full) {
            CheckedOutIn::Nobody => None,
            CheckedOutIn::Worktree(place) => {
                Some(format!("the branch is checked out in {}", place.work_tree.display()))
            }
            CheckedOutIn::Occupied { worktree, operation } => {
                Some(format!("{operation} in {}", worktree.display()))
            }
        })
    }
}

fn write_files(
    folder: &LockedWorktree<'_>,
    place: &GitContext,
    shift: &BranchMove<'_>,
    attempt: &str,
) -> Result<(), GitError> {
    let LockedWorktree { index, tree, .. } = folder;
    let files = left_in_place(place, tree, shift.files, attempt)?;
    let settings = [place.guard()?, vec![("core.sparseCheckout".to_owned(), "false".to_owned())]].concat();
    let call = || place.call(attempt).index(&index.path()).settings(&settings).limit(LIMIT_FILES);
    // Before it writes the first file, git checks again that every file is as captured. The call is not
    // repeated, because a second run would treat files written by the first as edits.
    call().args(["read-tree", "-m", "-u", tree.as_str(), files.as_str()]).once().run()?;
    crash::hit("sync.files");
    call().args(["read-tree", "-m", shift.to.as_str()]).run()?;
    // Exit code 1 means that some file differs from the commit: an edit.
    call().args(["update-index", "-q", "--refresh"]).accept(&[0, 1]).run().map(drop)
}

/// Restores the directory to its captured content.
fn take_back(
    folder: &LockedWorktree<'_>,
    place: &GitContext,
    shift: &BranchMove<'_>,
    attempt: &str,
) -> Result<(), GitError> {
    let LockedWorktree { index, tree, .. } = folder;
    let call = place.call(attempt).index(&index.path()).settings(&place.guard()?).limit(LIMIT_FILES);
    call.args(["read-tree", "--reset", "-u", tree.as_str()]).run()?;
    for change in raw_changes(place, tree, shift.files)?.iter().filter(|change| change.mode_before == 0) {
        let path = place.work_tree.join(OsStr::from_bytes(&change.path));
        match fs::remove_file(&path) {
            Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Err(GitError::file(attempt, &path, error));
            }
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

/// Returns the tree to write. In it, `.drydock/` and submodules are as captured, because they stay unchanged
/// on disk: `.drydock/` belongs to drydock, and only the index records the commit of a submodule.
fn left_in_place(place: &GitContext, from: &TreeId, to: &TreeId, attempt: &str) -> Result<TreeId, GitError> {
    let changes = raw_changes(place, from, to)?;
    let stays = changes.iter().filter(|change| is_own(change) || change.mode_before == GITLINK);
    let sides: Vec<_> = stays.map(|c| (c.mode_before, c.before.as_str(), c.path.as_slice())).collect();
    if sides.is_empty() {
        return Ok(to.clone());
    }
    let index = PrivateIndex::empty(place, attempt)?;
    place.call(attempt).index(&index.path()).args(["read-tree", to.as_str()]).run()?;
    index.put(place, &sides, attempt)?;
    index.write_tree(place, attempt)
}

/// Verifies branch, commit and index after the move, because git has been known to report success with
/// unmerged files.
fn verify(place: &GitContext, shift: &BranchMove<'_>, attempt: &str) -> Result<(), GitError> {
    let wrong = |detail: String| Err(GitError::unexpected(attempt, detail));
    let branch = head_branch(place)?.map(|branch| format!("refs/heads/{branch}"));
    if branch.as_deref() != Some(shift.full) {
        return wrong(format!("after the move, the worktree is on {branch:?}"));
    }
    let head = commit_at(place, "HEAD")?;
    if head.as_ref() != Some(shift.to) {
        return wrong(format!("after the move, the branch is at {head:?}"));
    }
    let (IndexCopy::Index(index) | IndexCopy::Nothing(index)) = PrivateIndex::copy_of(place, attempt)?;
    // `write_tree` fails for an index with unmerged entries.
    if index.write_tree(place, attempt)? != tree_of(place, shift.to)? {
        return wrong("after the move, the index differs from the commit".to_owned());
    }
    Ok(())
}

fn revoked(shift: &BranchMove<'_>) -> String {
    format!("{} was changed concurrently", shift.permit.name)
}

fn elsewhere(shift: &BranchMove<'_>, found: Option<CommitId>) -> String {
    let found = found.map_or_else(|| "gone".to_owned(), |id| format!("at {id}"));
    format!("{} was expected at {}, but is {found}", shift.full, shift.from)
}
