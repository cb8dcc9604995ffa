//! Whether a landing would overwrite something of the user's.
//!
//! Only paths that the landing changes matter; everything else the user has stays, staged or not. Such a
//! path may be as the branch has it, or already as the commit to be landed has it (then the user did the
//! same, or an earlier landing was cut short), and nothing else. Ignored files count: git would overwrite them.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::diff::{RawChange, raw_changes};
use crate::error::GitError;
use crate::guard::Replacements;
use crate::id::CommitId;
use crate::private_index::{Entry, GITLINK, Mark, PrivateIndex};
use crate::run::{LIMIT_FILES, Place};

/// What was found.
pub(crate) enum Checked {
    /// Nothing is in the way; this is what the files are at, as far as the landing changes them.
    Free {
        start: String,
    },
    Dirty(Vec<String>),
    Unmerged,
}

/// Mode and id of a path; none when it is not there.
type Side = Option<(u32, String)>;

/// Checks all paths, and takes those that are done into the private index.
pub(crate) fn check(
    place: &Place,
    index: &PrivateIndex,
    guard: &Replacements,
    from: &CommitId,
    to: &CommitId,
    attempt: &str,
) -> Result<Checked, GitError> {
    let call = || place.call(attempt).index(&index.path()).settings(guard).limit(LIMIT_FILES);
    // Exit code 1 says that some file differs, which is looked at below.
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
        // Whatever git makes of the file (line ends, filters, links, modes) is what is compared.
        let paths = uncertain.iter().flat_map(|change| [change.path.as_slice(), b"\0"].concat()).collect();
        let call = call().args(["update-index", "--add", "--remove", "--replace", "-z", "--stdin"]);
        call.stdin(paths).run()?;
        found = by_path(index.entries(place, attempt)?);
    } else {
        // Already refused; no need to find out which of these are dirty as well.
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

fn is_free(change: &RawChange, staged: Option<&Entry>, found: Option<&Entry>, work_tree: &Path) -> bool {
    // These flags say that git is not to look, so what it found means nothing.
    match staged.map_or(Mark::None, |entry| entry.mark) {
        Mark::AssumeUnchanged => return false,
        Mark::SkipWorktree if exists(work_tree, &change.path) => return false,
        Mark::SkipWorktree | Mark::None => {}
    }
    let (staged, found) = (side_of(staged), side_of(found));
    let (before, after) = (before(change), after(change));
    let untouched = staged == before && found == before;
    let done = found == after && (staged == before || staged == after);
    untouched || done
}

/// Returns `from`, or a tree that is `from` but for the paths that are done.
///
/// Given `from` itself, `read-tree` would take a done file for an untracked one where a directory was.
fn start(place: &Place, from: &CommitId, done: &[&RawChange], attempt: &str) -> Result<String, GitError> {
    if done.is_empty() {
        return Ok(from.to_string());
    }
    let index = PrivateIndex::empty(place, attempt)?;
    place.call(attempt).index(&index.path()).args(["read-tree", from.as_str()]).run()?;
    let sides: Vec<_> = done.iter().map(|c| (c.mode_after, c.after.as_str(), c.path.as_slice())).collect();
    index.put(place, &sides, attempt)?;
    Ok(index.write_tree(place, attempt)?.to_string())
}

fn before(change: &RawChange) -> Side {
    (change.mode_before != 0).then(|| (change.mode_before, change.before.clone()))
}

fn after(change: &RawChange) -> Side {
    (change.mode_after != 0).then(|| (change.mode_after, change.after.clone()))
}

fn side_of(entry: Option<&Entry>) -> Side {
    entry.map(|entry| (entry.mode, entry.id.clone()))
}

/// Finds files where the landing needs a directory, and directories where it needs a file.
fn obstructions(work_tree: &Path, changes: &[RawChange]) -> HashSet<Vec<u8>> {
    let paths = |is: fn(&RawChange) -> bool| -> HashSet<&[u8]> {
        changes.iter().filter(|change| is(change)).map(|change| change.path.as_slice()).collect()
    };
    // Those that are themselves part of the landing are judged by their own change.
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
        // A directory may stand for a file that leaves, or give way to one that comes, as far as all that
        // is in it comes or leaves by this landing.
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

/// Returns the first part of the way to a path that is there and no directory.
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
    // A directory that cannot be read is in the way as a whole.
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

/// Submodules stay as they are on disk; only the index records where they should be.
fn is_link(change: &RawChange) -> bool {
    change.mode_before == GITLINK || change.mode_after == GITLINK
}

fn by_path(entries: Vec<Entry>) -> HashMap<Vec<u8>, Entry> {
    entries.into_iter().map(|entry| (entry.path.clone(), entry)).collect()
}
