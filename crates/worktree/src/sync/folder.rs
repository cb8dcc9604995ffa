//! A worktree that is about to be moved: its index is locked and its content captured.
//!
//! The capture includes tracked, changed, new and deleted files, and ignored files that the remote's files
//! would overwrite. It excludes `.drydock/`, which belongs to drydock and always stays in place.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::capture::{CapturedTree, OwnFolder, is_own};
use crate::checkout::Checkout;
use crate::diff::{RawChange, raw_changes};
use crate::error::GitError;
use crate::id::{CommitId, TreeId};
use crate::landing_check::{file_above, files_in};
use crate::lock::IndexLock;
use crate::pin::UncommittedWork;
use crate::private_index::{GITLINK, IndexCopy, PrivateIndex};
use crate::repository::tree_of;
use crate::run::GitContext;

/// A worktree that no other git process can change meanwhile.
pub(crate) struct LockedWorktree<'a> {
    pub(crate) checkout: &'a Checkout,
    pub(crate) lock: IndexLock,
    /// Matches the current files.
    pub(crate) index: PrivateIndex,
    /// The content of the directory.
    pub(crate) tree: TreeId,
    /// The uncommitted work, if there is any.
    pub(crate) held: Option<UncommittedWork>,
}

/// Whether a worktree can be moved.
pub(crate) enum LockOutcome<'a> {
    Ready(LockedWorktree<'a>),
    /// Why the worktree cannot be moved now.
    Busy(String),
}

impl<'a> LockedWorktree<'a> {
    /// Locks and captures a worktree at `head`, whose files are to be replaced by those of `coming`. The
    /// caller must hold the repository lock.
    pub(crate) fn open(
        checkout: &'a Checkout,
        head: &CommitId,
        coming: &CommitId,
        attempt: &str,
    ) -> Result<LockOutcome<'a>, GitError> {
        let place = &checkout.place;
        IndexLock::clear_left_over(&place.git_dir, attempt)?;
        let lock = match IndexLock::take(&place.git_dir, attempt) {
            Ok(lock) => lock,
            Err(GitError::IndexLocked { .. }) => return Ok(LockOutcome::Busy("index.lock".to_owned())),
            Err(error) => return Err(error),
        };
        let staged = match PrivateIndex::copy_of(place, attempt)? {
            IndexCopy::Nothing(_) => None,
            IndexCopy::Index(copy) => {
                if copy.entries(place, attempt)?.iter().any(|entry| entry.stage != 0) {
                    return Ok(LockOutcome::Busy("files that are not merged".to_owned()));
                }
                Some(copy.write_tree(place, attempt)?)
            }
        };
        let CapturedTree { index, mut tree, .. } = checkout.snapshot(head, OwnFolder::AsInParent, attempt)?;
        let ignored = in_the_way(&place.work_tree, &raw_changes(place, &tree, coming)?)?;
        if !ignored.is_empty() {
            let paths = ignored.iter().flat_map(|path| [path.as_slice(), b"\0"].concat()).collect();
            let call = place.call(attempt).index(&index.path()).settings(&place.guard()?);
            let call = call.args(["update-index", "--add", "--replace", "-z", "--stdin"]);
            call.stdin(paths).run()?;
            tree = index.write_tree(place, attempt)?;
        }
        let head_tree = tree_of(place, head)?;
        let staged = match staged {
            Some(staged) if staged_only(place, &head_tree, &staged, &tree)? => Some(staged),
            Some(_) | None => None,
        };
        let held =
            (tree != head_tree || staged.is_some()).then(|| UncommittedWork { tree: tree.clone(), staged });
        Ok(LockOutcome::Ready(LockedWorktree { checkout, lock, index, tree, held }))
    }
}

/// Returns true if the index has staged content that is neither committed nor in the directory.
pub(crate) fn staged_only(
    place: &GitContext,
    head: &TreeId,
    staged: &TreeId,
    found: &TreeId,
) -> Result<bool, GitError> {
    if staged == head || staged == found {
        return Ok(false);
    }
    let changed = raw_changes(place, head, staged)?;
    let replaced = raw_changes(place, staged, found)?;
    let there = changed.iter().filter(|change| change.mode_after != 0 && !is_own(change));
    Ok(there.into_iter().any(|change| replaced.iter().any(|other| other.path == change.path)))
}

/// Returns the files at paths where new files are to be written and that the capture does not contain.
fn in_the_way(work_tree: &Path, changes: &[RawChange]) -> Result<Vec<Vec<u8>>, GitError> {
    let mut found = Vec::new();
    for change in changes.iter().filter(|change| change.mode_after != 0 && !is_own(change)) {
        if let Some(above) = file_above(work_tree, &change.path) {
            found.push(above.to_vec());
            continue;
        }
        let full = work_tree.join(OsStr::from_bytes(&change.path));
        let Ok(meta) = fs::symlink_metadata(&full) else { continue };
        if meta.is_dir() && change.mode_before != GITLINK && change.mode_after != GITLINK {
            let inside = files_in(&full);
            let names = inside.iter().filter_map(|path| path.strip_prefix(work_tree).ok());
            found.extend(names.map(|path| path.as_os_str().as_bytes().to_vec()));
        } else if !meta.is_dir() && change.mode_before == 0 {
            found.push(change.path.clone());
        }
    }
    let inner = |path: &Vec<u8>| path.split(|b| *b == b'/').any(|part| part == b".git");
    if let Some(path) = found.iter().find(|path| inner(path)) {
        return Err(GitError::NestedRepository { path: String::from_utf8_lossy(path).into_owned() });
    }
    found.sort();
    found.dedup();
    Ok(found)
}
