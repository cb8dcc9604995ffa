//! Lands a commit: moves a user's branch forward and updates the files of the worktree in which it is checked
//! out.
//!
//! `git merge --ff-only` is not used because it writes files, then the index, then the ref. A crash in
//! between leaves files that git then rejects as dirty, and an `index.lock` that stays. The steps below can
//! be repeated from any point:
//!
//! 1. take the repository lock; remove an index lock that a crashed landing left (it contains our mark);
//! 2. take the index lock, so that no git process of the user changes the index from here on;
//! 3. check every path that the landing would write, on a private copy of the index; refuse if one is in the
//!    way;
//! 4. prepare the ref update: git locks the ref and compares its old value. Nothing of the user's was written
//!    so far, so a refusal changes nothing;
//! 5. write the files (`read-tree -m -u`, which checks again) with the private index;
//! 6. rename the private index into place, and release the index lock;
//! 7. commit the ref update.
//!
//! A crash before step 5 leaves only the marked index lock. A crash during step 5 leaves some new files with
//! an old index and ref: step 3 recognises these files by their content and accepts them as done. A crash
//! after step 6 leaves new files, a new index and an old ref: step 3 accepts everything as done. The ref
//! moves last, so if a branch contains the commit, its files are up to date too, and `Already` is correct.
//! After a power failure git's own ref lock may remain and is reported as `RefLocked`; a killed process
//! leaves none.

use std::path::{Path, PathBuf};

use crate::error::GitError;
use crate::id::CommitId;
use crate::landing_check::{Checked, check};
use crate::lock::IndexLock;
use crate::name;
use crate::placement::operation_under_way;
use crate::private_index::{IndexCopy, PrivateIndex};
use crate::refs::{Moved, Prepared, PreparedMove, RefCondition};
use crate::repository::Repository;
use crate::run::{GitContext, LIMIT_FILES};
use crate::worktrees::Worktree;

/// The outcome of landing a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LandOutcome {
    /// The intent ref was deleted or names another commit. Nothing was changed.
    Revoked,
    /// The branch is at the commit, and so are the files of the worktree in which it is checked out.
    Moved,
    /// The branch already contained the commit.
    Already,
    /// The branch is not at the expected commit.
    Stale {
        /// The current commit, or `None` if the branch does not exist.
        found: Option<CommitId>,
    },
    /// The landing would overwrite files of the user.
    Dirty {
        /// The worktree in which the branch is checked out.
        worktree: PathBuf,
        /// The affected paths, sorted.
        paths: Vec<String>,
    },
    /// An operation is in progress in the worktree in which the branch is checked out.
    Occupied {
        /// The worktree in which the branch is checked out.
        worktree: PathBuf,
        /// The operation in progress.
        operation: &'static str,
    },
}

/// Where a branch is checked out.
pub(crate) enum CheckedOutIn {
    Nobody,
    Worktree(GitContext),
    Occupied { worktree: PathBuf, operation: &'static str },
}

impl Repository {
    /// Moves a branch forward from one commit to another. Safe to repeat after a crash at any point.
    ///
    /// The intent ref `permit` must point to the landed commit. The transaction that moves the branch
    /// compares it, so once the ref is deleted, nothing can land under it, even if the process that created
    /// it resumes much later.
    pub fn land(
        &self,
        branch: &str,
        from: &CommitId,
        to: &CommitId,
        permit: &str,
    ) -> Result<LandOutcome, GitError> {
        let full = name::branch_ref(branch)?;
        let attempt = format!("land {to} on {branch}");
        let _lock = self.lock(&attempt)?;
        let worktrees = self.worktrees()?;
        for worktree in &worktrees {
            IndexLock::clear_left_over(&worktree.git_dir, &attempt)?;
        }
        let Some(tip) = self.ref_read(&full)? else { return Ok(LandOutcome::Stale { found: None }) };
        if self.is_ancestor(to, &tip)? {
            return Ok(LandOutcome::Already);
        }
        if tip != *from {
            return Ok(LandOutcome::Stale { found: Some(tip) });
        }
        if !self.is_ancestor(from, to)? {
            return Err(GitError::NotForward { from: from.to_string(), to: to.to_string() });
        }
        let permit = RefCondition { name: permit, object: to.as_str(), note: "drydock: land" };
        match self.holder(&worktrees, &full) {
            CheckedOutIn::Nobody => match self.branch_move(&full, from, to, &permit)? {
                Moved::Done => Ok(LandOutcome::Moved),
                Moved::Elsewhere(found) => Ok(LandOutcome::Stale { found }),
                Moved::Revoked => Ok(LandOutcome::Revoked),
            },
            CheckedOutIn::Worktree(place) => match land_files(&place, &full, from, to, &permit, &attempt) {
                // Same as after a crash: files that were already written are accepted as done.
                Err(error) if error.is_by_signal() => land_files(&place, &full, from, to, &permit, &attempt),
                landing => landing,
            },
            CheckedOutIn::Occupied { worktree, operation } => {
                Ok(LandOutcome::Occupied { worktree, operation })
            }
        }
    }

    pub(crate) fn holder(&self, worktrees: &[Worktree], full: &str) -> CheckedOutIn {
        let mut holders = Vec::new();
        for worktree in worktrees {
            // A rebase detaches HEAD. When it finishes, it sets the branch to commits based on the branch's
            // old position.
            if rebases(&worktree.git_dir, full) {
                return CheckedOutIn::Occupied {
                    worktree: worktree.path.clone(),
                    operation: "a rebase is in progress",
                };
            }
            if worktree.branch.as_deref() == Some(full) && !worktree.absent {
                holders.push(worktree);
            }
        }
        let occupied = |worktree: &Worktree, operation| CheckedOutIn::Occupied {
            worktree: worktree.path.clone(),
            operation,
        };
        match holders.as_slice() {
            [] => CheckedOutIn::Nobody,
            [one] if !one.path.is_dir() => {
                occupied(one, "a locked worktree whose directory is missing has the branch checked out")
            }
            [one] => match operation_under_way(&one.git_dir) {
                Some(operation) => occupied(one, operation),
                None => CheckedOutIn::Worktree(self.place_of(one)),
            },
            [_, second, ..] => occupied(second, "two worktrees have the branch checked out"),
        }
    }
}

fn land_files(
    place: &GitContext,
    full: &str,
    from: &CommitId,
    to: &CommitId,
    permit: &RefCondition<'_>,
    attempt: &str,
) -> Result<LandOutcome, GitError> {
    let worktree = || place.work_tree.clone();
    let guard = place.guard()?;
    sweep(&place.git_dir);
    let index_lock = IndexLock::take(&place.git_dir, attempt)?;
    let (IndexCopy::Index(index) | IndexCopy::Nothing(index)) = PrivateIndex::copy_of(place, attempt)?;
    let start = match check(place, &index, &guard, from, to, attempt)? {
        Checked::Free { start } => start,
        Checked::Dirty(paths) => return Ok(LandOutcome::Dirty { worktree: worktree(), paths }),
        Checked::Unmerged => {
            return Ok(LandOutcome::Occupied { worktree: worktree(), operation: "a merge is in progress" });
        }
    };
    let prepared = match PreparedMove::prepare(place, full, from, to, permit)? {
        Prepared::Ready(prepared) => prepared,
        Prepared::Revoked => return Ok(LandOutcome::Revoked),
        Prepared::Elsewhere(found) => return Ok(LandOutcome::Stale { found }),
    };
    let call = place.call(attempt).index(&index.path()).settings(&guard).limit(LIMIT_FILES);
    match call.args(["read-tree", "-m", "-u", start.as_str(), to.as_str()]).once().run() {
        Ok(_) => {}
        // A file was changed between our check and git's own check, which precedes its first write.
        Err(GitError::Failed { detail, .. }) if in_the_way(&detail) => {
            return Ok(LandOutcome::Dirty { worktree: worktree(), paths: quoted(&detail) });
        }
        Err(error) => return Err(error),
    }
    index.install(&place.git_dir, attempt)?;
    index_lock.release(attempt)?;
    prepared.commit()?;
    Ok(LandOutcome::Moved)
}

/// Removes the temporary files of a killed landing from this git directory. Only landings create such files
/// in a user's worktree, and landings are serialised by the repository lock, so none of the files is in use.
fn sweep(git_dir: &Path) {
    let ours = |name: &str| name.starts_with("drydock-index-");
    let entries = std::fs::read_dir(git_dir).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| ours(&entry.file_name().to_string_lossy())) {
        let path = entry.path();
        // A file that cannot be removed does no harm; the next landing tries again.
        drop(if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) });
    }
}

fn in_the_way(detail: &str) -> bool {
    let words =
        ["not uptodate", "would be overwritten", "would be removed", "would lose untracked", "would overlap"];
    words.iter().any(|words| detail.contains(words))
}

/// Returns the first quoted text of each line.
fn quoted(detail: &str) -> Vec<String> {
    let name = |line: &str| line.split('\'').nth(1).map(str::to_owned);
    detail.lines().filter_map(name).collect()
}

fn rebases(git_dir: &Path, full: &str) -> bool {
    ["rebase-merge/head-name", "rebase-apply/head-name"]
        .iter()
        .any(|name| std::fs::read_to_string(git_dir.join(name)).is_ok_and(|head| head.trim_end() == full))
}
