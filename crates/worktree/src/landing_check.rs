//! Checks whether a landing would overwrite changes of the user.
//!
//! Only paths that the landing changes matter; all other files of the user stay as they are, staged or not.
//! Such a path must have either the branch's content or already the landed commit's content (because the user
//! made the same change, or an earlier landing was interrupted). Ignored files count too, because git would
//! overwrite them.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::diff::{RawChange, raw_changes};
use crate::error::GitError;
use crate::guard::Replacements;
use crate::id::CommitId;
use crate::private_index::{GITLINK, IndexEntry, IndexFlag, PrivateIndex};
use crate::run::{GitContext, LIMIT_FILES};

/// The result of the check.
pub(crate) enum Checked {
    /// No path is in the way. `start` is the tree that the files match now, as far as the landing changes
    /// them.
    Free {
        start: String,
    },
    Dirty(Vec<String>),
    Unmerged,
}

/// Mode and id of a path, or `None` if it does not exist.
type PathVersion = Option<(u32, String)>;

/// Checks all paths, and adds those that are already done to the private index.
pub(crate) fn check(
    place: &GitContext,
    index: &PrivateIndex,
    guard: &Replacements,
    from: &CommitId,
    to: &CommitId,
    attempt: &str,
) -> Result<Checked, GitError> {
    let call = || place.call(attempt).index(&index.path()).settings(guard).limit(LIMIT_FILES);
    // Exit code 1 means that some file differs. Such files are checked below.
    call().args(["update-index", "-q", "--unmerged", "--refresh"]).accept(&[0, 1]).run()?;
    let changes = raw_changes(place, from, to)?;
    let staged = index.entries(place, attempt)?;
    if staged.iter().any(|entry| entry.stage != 0) {
        return Ok(Checked::Unmerged);
    }
    let staged = by_path(staged);
    let mut dirty = obstructions(&place.work_tree, &changes);
    let output = call().args(["diff-files", "--name-only", "-z", "--ignore-submodules=dirty"]).run()?;
    let edited: HashSet<&[u8]> = output.fields().collect();
    let uncertain: Vec<&RawChange> = changes
        .iter()
        .filter(|change| !is_link(change) && !dirty.contains(&change.path))
        .filter(|change| match staged.get(&change.path) {
            Some(_) => edited.contains(change.path.as_slice()),
            None => exists(&place.work_tree, &change.path),
        })
        .collect();
    let mut found = staged.clone();
    if dirty.is_empty() && !uncertain.is_empty() {
        // The comparison uses the content that git would store (line endings, filters, links, modes).
        let paths = uncertain.iter().flat_map(|change| [change.path.as_slice(), b"\0"].concat()).collect();
        let call = call().args(["update-index", "--add", "--remove", "--replace", "-z", "--stdin"]);
        call.stdin(paths).run()?;
        found = by_path(index.entries(place, attempt)?);
    } else {
        // The landing is already refused, so it does not matter which of these are dirty too.
        dirty.extend(uncertain.iter().map(|change| change.path.clone()));
    }
    for change in &changes {
        if !is_free(change, staged.get(&change.path), found.get(&change.path), &place.work_tree) {
            dirty.insert(change.path.clone());
        }
    }
    if dirty.is_empty() {
        let is_done = |change: &&RawChange| side_of(found.get(&change.path)) == after(change);
        let done: Vec<&RawChange> = changes.iter().filter(is_done).collect();
        return Ok(Checked::Free { start: start(place, from, &done, attempt)? });
    }
    let mut paths: Vec<String> =
        dirty.iter().map(|path| String::from_utf8_lossy(path).into_owned()).collect();
    paths.sort();
    Ok(Checked::Dirty(paths))
}

fn is_free(
    change: &RawChange,
    staged: Option<&IndexEntry>,
    found: Option<&IndexEntry>,
    work_tree: &Path,
) -> bool {
    // These flags make git skip the file, so `found` is meaningless.
    match staged.map_or(IndexFlag::None, |entry| entry.mark) {
        IndexFlag::AssumeUnchanged => return false,
        IndexFlag::SkipWorktree if exists(work_tree, &change.path) => return false,
        IndexFlag::SkipWorktree | IndexFlag::None => {}
    }
    let (staged, found) = (side_of(staged), side_of(found));
    let (before, after) = (before(change), after(change));
    let untouched = staged == before && found == before;
    let done = found == after && (staged == before || staged == after);
    untouched || done
}

/// Returns `from`, or a tree that equals `from` except for the paths that are already done.
///
/// With `from` itself, `read-tree` would treat a done file as untracked if a directory was at its path
/// before.
fn start(
    place: &GitContext,
    from: &CommitId,
    done: &[&RawChange],
    attempt: &str,
) -> Result<String, GitError> {
    if done.is_empty() {
        return Ok(from.to_string());
    }
    let index = PrivateIndex::empty(place, attempt)?;
    place.call(attempt).index(&index.path()).args(["read-tree", from.as_str()]).run()?;
    let sides: Vec<_> = done.iter().map(|c| (c.mode_after, c.after.as_str(), c.path.as_slice())).collect();
    index.put(place, &sides, attempt)?;
    Ok(index.write_tree(place, attempt)?.to_string())
}

fn before(change: &RawChange) -> PathVersion {
    (change.mode_before != 0).then(|| (change.mode_before, change.before.clone()))
}

fn after(change: &RawChange) -> PathVersion {
    (change.mode_after != 0).then(|| (change.mode_after, change.after.clone()))
}

fn side_of(entry: Option<&IndexEntry>) -> PathVersion {
    entry.map(|entry| (entry.mode, entry.id.clone()))
}

/// Finds files where the landing needs a directory, and directories where it needs a file.
fn obstructions(work_tree: &Path, changes: &[RawChange]) -> HashSet<Vec<u8>> {
    let paths = |is: fn(&RawChange) -> bool| -> HashSet<&[u8]> {
        changes.iter().filter(|change| is(change)).map(|change| change.path.as_slice()).collect()
    };
    // Paths that are part of the landing are checked with their own change.
    let leaving = paths(|change| change.mode_after == 0);
    let coming = paths(|change| change.mode_after != 0);
    let mut found = HashSet::new();
    for change in changes.iter().filter(|change| !is_link(change)) {
        if let Some(parent) = file_above(work_tree, &change.path) {
            if !leaving.contains(parent) && !coming.contains(parent) {
                found.insert(parent.to_vec());
            }
            continue;
        }
        let full = work_tree.join(OsStr::from_bytes(&change.path));
        if !fs::symlink_metadata(&full).is_ok_and(|meta| meta.is_dir()) {
            continue;
        }
        // A directory may replace a file that the landing deletes, or be replaced by a file that it creates,
        // if the landing also creates or deletes everything inside the directory.
        let expected = match (change.mode_before, change.mode_after) {
            (_, 0) => &coming,
            (0, _) => &leaving,
            (_, _) => {
                found.insert(change.path.clone());
                continue;
            }
        };
        let inside = files_in(&full);
        let names = inside.iter().filter_map(|path| path.strip_prefix(work_tree).ok());
        let names = names.map(|path| path.as_os_str().as_bytes());
        found.extend(names.filter(|name| !expected.contains(name)).map(<[u8]>::to_vec));
    }
    found
}

/// Returns the first parent of a path that exists and is not a directory.
pub(crate) fn file_above<'a>(work_tree: &Path, path: &'a [u8]) -> Option<&'a [u8]> {
    let slashes = path.iter().enumerate().filter(|(_, b)| **b == b'/').map(|(at, _)| at);
    for slash in slashes {
        match fs::symlink_metadata(work_tree.join(OsStr::from_bytes(&path[..slash]))) {
            Ok(meta) if meta.is_dir() => {}
            Ok(_) => return Some(&path[..slash]),
            Err(_) => return None,
        }
    }
    None
}

pub(crate) fn files_in(folder: &Path) -> Vec<PathBuf> {
    // A directory that cannot be read blocks the landing as a whole.
    let Ok(entries) = fs::read_dir(folder) else { return vec![folder.to_owned()] };
    let mut files = Vec::new();
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            files.extend(files_in(&entry.path()));
        } else {
            files.push(entry.path());
        }
    }
    files
}

fn exists(work_tree: &Path, path: &[u8]) -> bool {
    file_above(work_tree, path).is_none()
        && fs::symlink_metadata(work_tree.join(OsStr::from_bytes(path))).is_ok_and(|meta| !meta.is_dir())
}

/// Submodules stay unchanged on disk; only the index records their commit.
fn is_link(change: &RawChange) -> bool {
    change.mode_before == GITLINK || change.mode_after == GITLINK
}

fn by_path(entries: Vec<IndexEntry>) -> HashMap<Vec<u8>, IndexEntry> {
    entries.into_iter().map(|entry| (entry.path.clone(), entry)).collect()
}
