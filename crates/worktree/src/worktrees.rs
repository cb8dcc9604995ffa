//! The list of a repository's worktrees, and which git directory belongs to which.
//!
//! A worktree's git directory is found from the repository's side (`worktrees/<id>/gitdir`), never
//! from the `.git` file in the worktree, which an agent can rewrite.
//!
//! Git writes such a record file by file. Whichever git looks at all worktrees while one is made, or
//! after a crash in between, dies of a `commondir` that is still empty: also a `fetch`, which cannot
//! wait for the repository's lock. `past_half_made` completes the record and asks again.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{ErrorKind, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::error::GitError;
use crate::repository::Repository;
use crate::run::Place;

/// How often a call is made that may meet a record which is being written.
const ATTEMPTS: usize = 5;
/// What git writes into `commondir` of every linked worktree.
const COMMON_DIR: &str = "../..\n";
/// The start of the reason of a lock on a record, if it is ours.
pub(crate) const LOCK_MARK: &str = "drydock";
/// A file `.git` that is longer names no directory.
const LINK_MAX: u64 = 8192;

/// One worktree, the main one included.
#[derive(Debug, Clone)]
pub(crate) struct Worktree {
    pub(crate) path: PathBuf,
    pub(crate) git_dir: PathBuf,
    pub(crate) branch: Option<String>,
    /// There is no `.git` in its directory, if there is one, and no one but drydock asked for the record to be kept.
    pub(crate) absent: bool,
}

impl Repository {
    /// Returns all worktrees, read from the records themselves: `git worktree list` takes a third of a landing where there are
    /// a thousand.
    pub(crate) fn worktrees(&self) -> Result<Vec<Worktree>, GitError> {
        let place = self.place();
        // There, HEAD is not in the file of that name.
        if self.common_dir().join("reftable").is_dir() {
            return self.worktrees_listed();
        }
        // Opened elsewhere than in the common directory, the main entry is that of a bare repository, which is not a worktree.
        let main = (place.git_dir == place.common_dir).then(|| Worktree {
            path: place.work_tree.clone(),
            git_dir: place.common_dir.clone(),
            branch: head_ref(&place.common_dir),
            absent: false,
        });
        let records = linked(self.common_dir()).into_iter().map(|record| Worktree {
            branch: head_ref(&record.git_dir),
            absent: record.is_absent(),
            path: record.tree,
            git_dir: record.git_dir,
        });
        Ok(main.into_iter().chain(records).collect())
    }

    /// Tells whether a worktree has a branch checked out. Of the others only HEAD is read.
    pub(crate) fn is_checked_out(&self, full: &str) -> Result<bool, GitError> {
        if self.common_dir().join("reftable").is_dir() {
            let has_branch = |one: &Worktree| !one.absent && one.branch.as_deref() == Some(full);
            return Ok(self.worktrees_listed()?.iter().any(has_branch));
        }
        let place = self.place();
        if place.git_dir == place.common_dir && head_ref(&place.common_dir).as_deref() == Some(full) {
            return Ok(true);
        }
        let records = fs::read_dir(self.common_dir().join("worktrees")).into_iter().flatten().flatten();
        let mut holders =
            records.map(|entry| entry.path()).filter(|at| head_ref(at).as_deref() == Some(full));
        Ok(holders.any(|git_dir| read_record(git_dir).is_some_and(|record| !record.is_absent())))
    }

    /// Returns all worktrees as git lists them.
    fn worktrees_listed(&self) -> Result<Vec<Worktree>, GitError> {
        let output = past_half_made(self.common_dir(), || {
            let call = self.place().call_without_files("list the worktrees");
            call.args(["worktree", "list", "--porcelain", "-z"]).run()
        })?;
        let linked: HashMap<PathBuf, Record> =
            linked(self.common_dir()).into_iter().map(|record| (resolved(&record.tree), record)).collect();
        let mut found: Vec<Worktree> = Vec::new();
        for field in output.fields() {
            let (word, value) = match field.iter().position(|b| *b == b' ') {
                Some(space) => (&field[..space], &field[space + 1..]),
                None => (field, &field[..0]),
            };
            match (word, found.last_mut()) {
                (b"worktree", _) => {
                    let path = PathBuf::from(OsStr::from_bytes(value));
                    let own = linked.get(&resolved(&path));
                    let absent = own.is_some_and(Record::is_absent);
                    let main = || (self.common_dir().to_owned(), self.main_path(&path));
                    let (git_dir, path) =
                        own.map_or_else(main, |record| (record.git_dir.clone(), path.clone()));
                    found.push(Worktree { path, git_dir, branch: None, absent });
                }
                (b"branch", Some(last)) => last.branch = Some(String::from_utf8_lossy(value).into_owned()),
                // The main entry of a bare repository is no worktree.
                (b"bare", Some(_)) => drop(found.pop()),
                // HEAD, detached, locked, prunable, and the empty field between two entries.
                (_, _) => {}
            }
        }
        Ok(found)
    }

    /// Git derives the main worktree from the git directory's name, which fails when the git
    /// directory lies apart; we know better when we were opened there.
    fn main_path(&self, listed: &Path) -> PathBuf {
        let place = self.place();
        if place.git_dir == place.common_dir { place.work_tree.clone() } else { listed.to_owned() }
    }

    /// Returns the directories of all linked worktrees, whether or not they are there.
    pub fn linked_trees(&self) -> Vec<PathBuf> {
        linked(self.common_dir()).into_iter().map(|record| record.tree).collect()
    }

    /// Returns the directories below this one that git has records of and that are not there, or were never filled: HEAD points
    /// at nothing, and no file exists. Git itself removes none of them, since the records are locked.
    pub fn unfilled_trees(&self, below: &Path) -> Vec<PathBuf> {
        let below = fs::canonicalize(below).unwrap_or_else(|_| below.to_owned());
        let records = linked(self.common_dir()).into_iter().filter(|record| record.tree.starts_with(&below));
        records.filter(|record| record.is_gone() || record.is_half_made()).map(|record| record.tree).collect()
    }

    /// Finds the git directory of a linked worktree, whether or not its directory is there.
    pub(crate) fn linked_git_dir(&self, path: &Path) -> Option<PathBuf> {
        if let Some(git_dir) = self.mutually_linked(path) {
            return Some(git_dir);
        }
        let records = linked(self.common_dir());
        let exact = records.iter().find(|record| record.tree == path);
        // The last part of a path is not resolved, so only records with the same one can be another spelling of it.
        let respelled = || {
            let wanted = resolved(path);
            let named = records.iter().filter(|record| record.tree.file_name() == path.file_name());
            named.into_iter().find(|record| resolved(&record.tree) == wanted)
        };
        exact.or_else(respelled).map(|record| record.git_dir.clone())
    }

    /// The same, where the worktree names a record of this repository that names the worktree: others need not be looked at.
    /// What an agent wrote into `.git` alone leads nowhere.
    fn mutually_linked(&self, path: &Path) -> Option<PathBuf> {
        let link = path.join(".git");
        if !fs::symlink_metadata(&link).is_ok_and(|meta| meta.is_file() && meta.len() < LINK_MAX) {
            return None;
        }
        let link = fs::read(&link).ok()?;
        let target = link.strip_prefix(b"gitdir: ")?.strip_suffix(b"\n")?;
        let git_dir = PathBuf::from(OsStr::from_bytes(target));
        // Without a name of its own it is `..`, and leads out of there.
        if git_dir.parent()? != self.common_dir().join("worktrees") || git_dir.file_name().is_none() {
            return None;
        }
        read_record(git_dir).filter(|record| record.tree == path).map(|record| record.git_dir)
    }

    pub(crate) fn place_of(&self, worktree: &Worktree) -> Place {
        let Place { git, common_dir, .. } = self.place().clone();
        Place { git, common_dir, git_dir: worktree.git_dir.clone(), work_tree: worktree.path.clone() }
    }
}

/// Makes a call that looks at the records of all worktrees, again when one of them was half made.
pub(crate) fn past_half_made<T>(
    common_dir: &Path,
    call: impl Fn() -> Result<T, GitError>,
) -> Result<T, GitError> {
    for _ in 1..ATTEMPTS {
        match call() {
            Err(GitError::Failed { detail, .. }) if names_record(&detail) => complete_records(common_dir),
            answer => return answer,
        }
    }
    call()
}

/// Recognises the words in which git dies of a record that is being written or removed.
fn names_record(detail: &str) -> bool {
    detail.lines().any(|line| {
        line.contains("/worktrees") && (line.contains("failed to read ") || line.contains("Invalid path "))
    })
}

/// Writes what git is about to write, or did not come to write. One that is gone meanwhile is not made again.
fn complete_records(common_dir: &Path) {
    for record in fs::read_dir(common_dir.join("worktrees")).into_iter().flatten().flatten() {
        let path = record.path().join("commondir");
        if fs::metadata(&path).is_ok_and(|found| found.len() == 0) {
            let written = fs::File::options().write(true).open(&path);
            let written = written.and_then(|mut file| file.write_all(COMMON_DIR.as_bytes()));
            tracing::debug!(path = %path.display(), ?written, "completed the record of a worktree");
        }
    }
}

/// What git keeps about a linked worktree.
struct Record {
    git_dir: PathBuf,
    /// The worktree's directory.
    tree: PathBuf,
    /// The file by which the worktree names this record.
    dot_git: PathBuf,
}

impl Record {
    fn is_gone(&self) -> bool {
        fs::symlink_metadata(&self.tree).is_err_and(|error| error.kind() == ErrorKind::NotFound)
    }

    fn is_half_made(&self) -> bool {
        is_half_made(&self.git_dir, &self.tree)
    }

    /// Judges as `git worktree prune` does, except that a lock of ours says nothing about whether the directory is there.
    fn is_absent(&self) -> bool {
        let is_ours = || match fs::read(self.git_dir.join("locked")) {
            Ok(reason) => reason.starts_with(LOCK_MARK.as_bytes()),
            Err(error) => error.kind() == ErrorKind::NotFound,
        };
        fs::symlink_metadata(&self.dot_git).is_err() && is_ours()
    }
}

/// Tells whether the making of a worktree was cut short before git wrote a file into it.
pub(crate) fn is_half_made(git_dir: &Path, tree: &Path) -> bool {
    // Until it knows better, git writes an id of zeros. A record without HEAD is not even that far.
    let nothing = match fs::read(git_dir.join("HEAD")) {
        Ok(head) => head.trim_ascii().iter().all(|b| *b == b'0'),
        Err(error) => error.kind() == ErrorKind::NotFound,
    };
    let is_link = |entry: std::io::Result<fs::DirEntry>| entry.is_ok_and(|entry| entry.file_name() == ".git");
    nothing && fs::read_dir(tree).is_ok_and(|mut entries| entries.all(is_link))
}

/// Reads all records. An unreadable one is one that git does not see either.
fn linked(common_dir: &Path) -> Vec<Record> {
    let Ok(entries) = fs::read_dir(common_dir.join("worktrees")) else { return Vec::new() };
    entries.filter_map(|entry| read_record(entry.ok()?.path())).collect()
}

/// Reads which worktree the record in a git directory names.
fn read_record(git_dir: PathBuf) -> Option<Record> {
    let mut link = fs::read(git_dir.join("gitdir")).ok()?;
    while link.last().is_some_and(|b| matches!(b, b'\n' | b'\r')) {
        link.pop();
    }
    let link = Path::new(OsStr::from_bytes(&link));
    let tree = link.parent()?;
    // A relative one is relative to the record.
    let tree = if link.is_absolute() { tree.to_owned() } else { resolved(&git_dir.join(tree)) };
    let dot_git = tree.join(link.file_name()?);
    Some(Record { git_dir, tree, dot_git })
}

/// Returns the ref that HEAD of a worktree names; none when it is detached or cannot be read.
fn head_ref(git_dir: &Path) -> Option<String> {
    let head = git_dir.join("HEAD");
    let name = match fs::read_link(&head) {
        // `core.preferSymlinkRefs` makes it a link.
        Ok(target) => target.to_str()?.to_owned(),
        Err(_) => fs::read_to_string(&head).ok()?.strip_prefix("ref:")?.trim().to_owned(),
    };
    name.starts_with("refs/").then_some(name)
}

/// Resolves links in a path whose last part need not exist.
pub(crate) fn resolved(path: &Path) -> PathBuf {
    let parent_resolved = || {
        let parent = fs::canonicalize(path.parent()?).ok()?;
        Some(parent.join(path.file_name()?))
    };
    // The last part itself is not followed: an agent could have put a link in its place.
    parent_resolved().unwrap_or_else(|| path.to_owned())
}
