//! Landing: moving a user's branch forward, with the files of the worktree that has it checked out.
//!
//! Why not `git merge --ff-only`: it writes files, then the index, then the ref, and a crash in between
//! leaves files that it refuses as dirty the next time, and an `index.lock` that nobody clears. So the
//! same steps are taken here, in an order that can be repeated from any point:
//!
//! 1. take the repository lock; clear an index lock that a crashed landing left (it bears our mark);
//! 2. take the index lock, so that no git of the user's changes the index from here on;
//! 3. check every path that the landing would write, on a private copy of the index; refuse here;
//! 4. prepare the move of the ref: git locks it and compares its old value. Nothing the user has was
//!    written so far, so every refusal leaves all of it as it was;
//! 5. write the files (`read-tree -m -u`, which checks once more) with the private index;
//! 6. put the private index in place by a rename, and let go of the index lock;
//! 7. commit the move of the ref.
//!
//! A crash before 5 left nothing but the marked lock. In 5, it left some files as they are to be while
//! index and ref are old: step 3 knows such files by their content and takes them as done. After 6, files
//! and index are new and the ref is old: all is taken as done. The ref moves last, so a branch that
//! contains the commit has its files as well, and `Already` is the truth.
//! A ref lock that a power cut leaves is git's own and reported as `RefLocked`; a killed process leaves none.

use std::path::{Path, PathBuf};

use crate::error::GitError;
use crate::id::CommitId;
use crate::landing_check::{Checked, check};
use crate::lock::IndexLock;
use crate::name;
use crate::placement::operation_under_way;
use crate::private_index::{Copied, PrivateIndex};
use crate::refs::{Moved, Permit, Prepared, PreparedMove};
use crate::repository::Repository;
use crate::run::{LIMIT_FILES, Place};
use crate::worktrees::Worktree;

/// What came of landing a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Landing {
    /// The permit is gone or names another commit; nothing was touched.
    Revoked,
    /// The branch is at the commit, and so are the files where it is checked out.
    Moved,
    /// The branch contained the commit before.
    Already,
    /// The branch is not where it was expected.
    Stale {
        /// Where it is; none when it does not exist.
        found: Option<CommitId>,
    },
    /// Files of the user would be overwritten.
    Dirty {
        /// The worktree that has the branch checked out.
        worktree: PathBuf,
        /// The paths in the way, sorted.
        paths: Vec<String>,
    },
    /// The worktree that has the branch is in the middle of something.
    Occupied {
        /// The worktree.
        worktree: PathBuf,
        /// What it is in the middle of.
        operation: &'static str,
    },
}

/// Who has a branch checked out.
pub(crate) enum Holder {
    Nobody,
    Worktree(Place),
    Occupied { worktree: PathBuf, operation: &'static str },
}

impl Repository {
    /// Moves a branch from one commit forward to another; safe to repeat after a crash at any point.
    ///
    /// The ref `permit` must point to the landed commit, and that is compared in the very transaction that moves the
    /// branch: whoever deletes it can be sure that nothing lands under it any more, however late its maker wakes up.
    pub fn land(
        &self,
        branch: &str,
        from: &CommitId,
        to: &CommitId,
        permit: &str,
    ) -> Result<Landing, GitError> {
        let full = name::branch_ref(branch)?;
        let attempt = format!("land {to} on {branch}");
        let _lock = self.lock(&attempt)?;
        let worktrees = self.worktrees()?;
        for worktree in &worktrees {
            IndexLock::clear_left_over(&worktree.git_dir, &attempt)?;
        }
        let Some(tip) = self.ref_read(&full)? else { return Ok(Landing::Stale { found: None }) };
        if self.is_ancestor(to, &tip)? {
            return Ok(Landing::Already);
        }
        if tip != *from {
            return Ok(Landing::Stale { found: Some(tip) });
        }
        if !self.is_ancestor(from, to)? {
            return Err(GitError::NotForward { from: from.to_string(), to: to.to_string() });
        }
        let permit = Permit { name: permit, object: to.as_str(), note: "drydock: land" };
        match self.holder(&worktrees, &full) {
            Holder::Nobody => match self.branch_move(&full, from, to, &permit)? {
                Moved::Done => Ok(Landing::Moved),
                Moved::Elsewhere(found) => Ok(Landing::Stale { found }),
                Moved::Revoked => Ok(Landing::Revoked),
            },
            Holder::Worktree(place) => match land_files(&place, &full, from, to, &permit, &attempt) {
                // As after a crash: files that were written are found to be done.
                Err(error) if error.is_by_signal() => land_files(&place, &full, from, to, &permit, &attempt),
                landing => landing,
            },
            Holder::Occupied { worktree, operation } => Ok(Landing::Occupied { worktree, operation }),
        }
    }

    pub(crate) fn holder(&self, worktrees: &[Worktree], full: &str) -> Holder {
        let mut holders = Vec::new();
        for worktree in worktrees {
            // A rebase detaches HEAD and comes back to the branch with what the branch was at its start.
            if rebases(&worktree.git_dir, full) {
                return Holder::Occupied {
                    worktree: worktree.path.clone(),
                    operation: "a rebase is under way",
                };
            }
            if worktree.branch.as_deref() == Some(full) && !worktree.absent {
                holders.push(worktree);
            }
        }
        let occupied =
            |worktree: &Worktree, operation| Holder::Occupied { worktree: worktree.path.clone(), operation };
        match holders.as_slice() {
            [] => Holder::Nobody,
            [one] if !one.path.is_dir() => {
                occupied(one, "a locked worktree that is not there has the branch")
            }
            [one] => match operation_under_way(&one.git_dir) {
                Some(operation) => occupied(one, operation),
                None => Holder::Worktree(self.place_of(one)),
            },
            [_, second, ..] => occupied(second, "two worktrees have the branch"),
        }
    }
}

fn land_files(
    place: &Place,
    full: &str,
    from: &CommitId,
    to: &CommitId,
    permit: &Permit<'_>,
    attempt: &str,
) -> Result<Landing, GitError> {
    let worktree = || place.work_tree.clone();
    let guard = place.guard()?;
    sweep(&place.git_dir);
    let index_lock = IndexLock::take(&place.git_dir, attempt)?;
    let (Copied::Index(index) | Copied::Nothing(index)) = PrivateIndex::copy_of(place, attempt)?;
    let start = match check(place, &index, &guard, from, to, attempt)? {
        Checked::Free { start } => start,
        Checked::Dirty(paths) => return Ok(Landing::Dirty { worktree: worktree(), paths }),
        Checked::Unmerged => {
            return Ok(Landing::Occupied { worktree: worktree(), operation: "a merge is under way" });
        }
    };
    let prepared = match PreparedMove::prepare(place, full, from, to, permit)? {
        Prepared::Ready(prepared) => prepared,
        Prepared::Revoked => return Ok(Landing::Revoked),
        Prepared::Elsewhere(found) => return Ok(Landing::Stale { found }),
    };
    let call = place.call(attempt).index(&index.path()).settings(&guard).limit(LIMIT_FILES);
    match call.args(["read-tree", "-m", "-u", start.as_str(), to.as_str()]).once().run() {
        Ok(_) => {}
        // Written to between our look and git's own, which comes before its first write.
        Err(GitError::Failed { detail, .. }) if in_the_way(&detail) => {
            return Ok(Landing::Dirty { worktree: worktree(), paths: quoted(&detail) });
        }
        Err(error) => return Err(error),
    }
    index.install(&place.git_dir, attempt)?;
    index_lock.release(attempt)?;
    prepared.commit()?;
    Ok(Landing::Moved)
}

/// Removes what a landing that was killed left in this git directory. Only landings make such files in a worktree of
/// the user's, and they take turns by the repository's lock, so none of them is in use.
fn sweep(git_dir: &Path) {
    let ours = |name: &str| name.starts_with("drydock-index-") || name.starts_with("drydock-mark-");
    let entries = std::fs::read_dir(git_dir).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| ours(&entry.file_name().to_string_lossy())) {
        let path = entry.path();
        // What cannot be removed is in nobody's way; the next landing tries again.
        drop(if path.is_dir() { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) });
    }
}

fn in_the_way(detail: &str) -> bool {
    let words =
        ["not uptodate", "would be overwritten", "would be removed", "would lose untracked", "would overlap"];
    words.iter().any(|words| detail.contains(words))
}

/// Returns what stands between quotes, one per line.
fn quoted(detail: &str) -> Vec<String> {
    let name = |line: &str| line.split('\'').nth(1).map(str::to_owned);
    detail.lines().filter_map(name).collect()
}

fn rebases(git_dir: &Path, full: &str) -> bool {
    ["rebase-merge/head-name", "rebase-apply/head-name"]
        .iter()
        .any(|name| std::fs::read_to_string(git_dir.join(name)).is_ok_and(|head| head.trim_end() == full))
}
