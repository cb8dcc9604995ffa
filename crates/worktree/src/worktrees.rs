//! Lists a repository's worktrees and maps each to its git directory.
//!
//! The git directory of a worktree is found through the repository (`worktrees/<id>/gitdir`), never through
//! the `.git` file in the worktree, which an agent can rewrite.
//!
//! Git writes such a record file by file. A git call that reads all worktrees while one is being created, or
//! after a crash in between, fails on a `commondir` that is still empty. This includes `fetch`, which cannot
//! wait for the repository lock. `retry_past_partial_record` completes the record and retries.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{ErrorKind, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::error::GitError;
use crate::repository::Repository;
use crate::run::GitContext;

/// Maximum number of attempts of a call that may read a record which is being written.
const ATTEMPTS: usize = 5;
/// Content that git writes into `commondir` of every linked worktree.
const COMMON_DIR: &str = "../..\n";
/// Prefix of the lock reason of a record that drydock locked.
pub(crate) const LOCK_MARK: &str = "drydock";
/// A longer `.git` file does not name a directory.
const LINK_MAX: u64 = 8192;

/// One worktree, including the main one.
#[derive(Debug, Clone)]
pub(crate) struct Worktree {
    pub(crate) path: PathBuf,
    pub(crate) git_dir: PathBuf,
    pub(crate) branch: Option<String>,
    /// Its directory is missing or has no `.git`, and the record is not locked by anyone other than drydock.
    pub(crate) absent: bool,
}

impl Repository {
    /// Returns all worktrees, read directly from the records: with a thousand worktrees, `git worktree list`
    /// takes a third of the time of a landing.
    pub(crate) fn worktrees(&self) -> Result<Vec<Worktree>, GitError> {
        let place = self.place();
        // With reftable, HEAD is not stored in the file of that name.
        if self.common_dir().join("reftable").is_dir() {
            return self.worktrees_listed();
        }
        // If the repository was not opened through its common directory, the main entry is a bare repository,
        // which is not a worktree.
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

    /// Returns true if a branch is checked out in a worktree. For worktrees with another branch only HEAD is
    /// read.
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

    /// Returns all worktrees as listed by git.
    fn worktrees_listed(&self) -> Result<Vec<Worktree>, GitError> {
        let output = retry_past_partial_record(self.common_dir(), || {
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
                // The main entry of a bare repository is not a worktree.
                (b"bare", Some(_)) => drop(found.pop()),
                // HEAD, detached, locked, prunable, and the empty field between two entries.
                (_, _) => {}
            }
        }
        Ok(found)
    }

    /// Returns the path of the main worktree. Git derives it from the name of the git directory, which is
    /// wrong if the git directory is elsewhere; if the repository was opened there, the path is known.
    fn main_path(&self, listed: &Path) -> PathBuf {
        let place = self.place();
        if place.git_dir == place.common_dir { place.work_tree.clone() } else { listed.to_owned() }
    }

    /// Returns the directories of all linked worktrees, including missing ones.
    pub fn linked_trees(&self) -> Vec<PathBuf> {
        linked(self.common_dir()).into_iter().map(|record| record.tree).collect()
    }

    /// Returns the directories below `below` that have a record but are missing or were never filled (HEAD
    /// points to nothing and there is no file). Git removes none of them, because the records are locked.
    pub fn unfilled_trees(&self, below: &Path) -> Vec<PathBuf> {
        let below = fs::canonicalize(below).unwrap_or_else(|_| below.to_owned());
        let records = linked(self.common_dir()).into_iter().filter(|record| record.tree.starts_with(&below));
        records.filter(|record| record.is_gone() || record.is_half_made()).map(|record| record.tree).collect()
    }

    /// Finds the git directory of a linked worktree, even if the worktree's directory is missing.
    pub(crate) fn linked_git_dir(&self, path: &Path) -> Option<PathBuf> {
        if let Some(git_dir) = self.mutually_linked(path) {
            return Some(git_dir);
        }
        let records = linked(self.common_dir());
        let exact = records.iter().find(|record| record.tree == path);
        // The last component of a path is not resolved, so only records with the same last component can be
        // another spelling of it.
        let respelled = || {
            let wanted = resolved(path);
            let named = records.iter().filter(|record| record.tree.file_name() == path.file_name());
            named.into_iter().find(|record| resolved(&record.tree) == wanted)
        };
        exact.or_else(respelled).map(|record| record.git_dir.clone())
    }

    /// Finds the git directory if the worktree names a record of this repository and that record names the
    /// worktree. Then no other record has to be read. A `.git` file rewritten by an agent does not match a
    /// record.
    fn mutually_linked(&self, path: &Path) -> Option<PathBuf> {
        let link = path.join(".git");
        if !fs::symlink_metadata(&link).is_ok_and(|meta| meta.is_file() && meta.len() < LINK_MAX) {
            return None;
        }
        let link = fs::read(&link).ok()?;
        let target = link.strip_prefix(b"gitdir: ")?.strip_suffix(b"\n")?;
        let git_dir = PathBuf::from(OsStr::from_bytes(target));
        // A path without a file name ends in `..` and leads out of the directory.
        if git_dir.parent()? != self.common_dir().join("worktrees") || git_dir.file_name().is_none() {
            return None;
        }
        read_record(git_dir).filter(|record| record.tree == path).map(|record| record.git_dir)
    }

    pub(crate) fn place_of(&self, worktree: &Worktree) -> GitContext {
        let GitContext { git, common_dir, .. } = self.place().clone();
        GitContext { git, common_dir, git_dir: worktree.git_dir.clone(), work_tree: worktree.path.clone() }
    }
}

/// Makes a call that reads the records of all worktrees, and retries if one of them was incomplete.
pub(crate) fn retry_past_partial_record<T>(
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

/// Recognises git's messages about a record that is being written or removed.
fn names_record(detail: &str) -> bool {
    detail.lines().any(|line| {
        line.contains("/worktrees") && (line.contains("failed to read ") || line.contains("Invalid path "))
    })
}

/// Writes a missing `commondir`, which git is about to write or did not write before a crash. A record that
/// was removed in the meantime is not created again.
fn complete_records(common_dir: &Path) {
    for record in fs::read_dir(common_dir.join("worktrees")).into_iter().flatten().flatten() {
        let path = record.path().join("commondir");
        if fs::metadata(&path).is_ok_and(|found| found.len() == 0) {
            let written = fs::File::options().write(true).open(&path);
            let written = written.and_then(|mut file| file.write_all(COMMON_DIR.as_bytes()));
            tracing::debug!(path = %path.display(), ?written, "completed git's record of a worktree");
        }
    }
}

/// Git's record of a linked worktree.
struct Record {
    git_dir: PathBuf,
    /// The worktree's directory.
    tree: PathBuf,
    /// The file in the worktree that names this record.
    dot_git: PathBuf,
}

impl Record {
    fn is_gone(&self) -> bool {
        fs::symlink_metadata(&self.tree).is_err_and(|error| error.kind() == ErrorKind::NotFound)
    }

    fn is_half_made(&self) -> bool {
        is_half_made(&self.git_dir, &self.tree)
    }

    /// Uses the same criteria as `git worktree prune`, except that a lock by drydock does not count as
    /// evidence that the directory exists.
    fn is_absent(&self) -> bool {
        let is_ours = || match fs::read(self.git_dir.join("locked")) {
            Ok(reason) => reason.starts_with(LOCK_MARK.as_bytes()),
            Err(error) => error.kind() == ErrorKind::NotFound,
        };
        fs::symlink_metadata(&self.dot_git).is_err() && is_ours()
    }
}

/// Returns true if the creation of a worktree was interrupted before git wrote a file into it.
pub(crate) fn is_half_made(git_dir: &Path, tree: &Path) -> bool {
    // Git first writes an all-zero id. A record without HEAD is at an even earlier point.
    let nothing = match fs::read(git_dir.join("HEAD")) {
        Ok(head) => head.trim_ascii().iter().all(|b| *b == b'0'),
        Err(error) => error.kind() == ErrorKind::NotFound,
    };
    let is_link = |entry: std::io::Result<fs::DirEntry>| entry.is_ok_and(|entry| entry.file_name() == ".git");
    nothing && fs::read_dir(tree).is_ok_and(|mut entries| entries.all(is_link))
}

/// Reads all records. Unreadable records are skipped, as in git.
fn linked(common_dir: &Path) -> Vec<Record> {
    let Ok(entries) = fs::read_dir(common_dir.join("worktrees")) else { return Vec::new() };
    entries.filter_map(|entry| read_record(entry.ok()?.path())).collect()
}

/// Reads the record in a git directory.
fn read_record(git_dir: PathBuf) -> Option<Record> {
    let mut link = fs::read(git_dir.join("gitdir")).ok()?;
    while link.last().is_some_and(|b| matches!(b, b'\n' | b'\r')) {
        link.pop();
    }
    let link = Path::new(OsStr::from_bytes(&link));
    let tree = link.parent()?;
    // A relative path is relative to the record.
    let tree = if link.is_absolute() { tree.to_owned() } else { resolved(&git_dir.join(tree)) };
    let dot_git = tree.join(link.file_name()?);
    Some(Record { git_dir, tree, dot_git })
}

/// Returns the ref that HEAD of a worktree names, or `None` if it is detached or cannot be read.
fn head_ref(git_dir: &Path) -> Option<String> {
    let head = git_dir.join("HEAD");
    let name = match fs::read_link(&head) {
        // With `core.preferSymlinkRefs` HEAD is a symbolic link.
        Ok(target) => target.to_str()?.to_owned(),
        Err(_) => fs::read_to_string(&head).ok()?.strip_prefix("ref:")?.trim().to_owned(),
    };
    name.starts_with("refs/").then_some(name)
}

/// Resolves links in a path whose last component need not exist.
pub(crate) fn resolved(path: &Path) -> PathBuf {
    let parent_resolved = || {
        let parent = fs::canonicalize(path.parent()?).ok()?;
        Some(parent.join(path.file_name()?))
    };
    // The last component is not followed: an agent could have put a link in its place.
    parent_resolved().unwrap_or_else(|| path.to_owned())
}
