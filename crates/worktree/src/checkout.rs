//! Creates, finds and removes worktrees. Each operation is safe to repeat after a crash at any point.
//!
//! Only directories that are verified checkouts of this repository are removed, never the main worktree or a
//! worktree outside the directory in which drydock creates its own.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::error::GitError;
use crate::id::CommitId;
use crate::name;
use crate::patience::CaptureTerms;
use crate::repository::{Repository, commit_at};
use crate::run::{GitContext, LIMIT_FILES, Output};
use crate::submodule::short_line;
use crate::worktrees::{Worktree, is_half_made, resolved, retry_past_partial_record};

/// File in a worktree's git directory that names the branch the worktree was created for.
const BRANCH_FILE: &str = "drydock-branch";

/// The reason shown by git for a locked worktree. Begins with [`crate::worktrees::LOCK_MARK`].
const LOCK_REASON: &str = "drydock: in use by a run; `drydock gc` removes the worktrees of ended runs";

/// A worktree directory that drydock created.
#[derive(Debug, Clone)]
pub struct Checkout {
    pub(crate) place: GitContext,
    /// `None` for a detached worktree.
    pub(crate) branch: Option<String>,
    pub(crate) terms: CaptureTerms,
}

/// The state of a checkout compared with the state in which it was created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verified {
    /// The checkout is on its branch, and the branch contains the base.
    Sound {
        /// The checked out commit.
        head: CommitId,
    },
    /// The directory does not exist.
    Missing,
    /// The directory exists, but git has no record of it.
    Unrecorded,
    /// The directory exists, but is no longer linked to this repository.
    Unlinked,
    /// The checkout is on its branch, but the branch does not contain the base.
    Moved {
        /// The checked out commit.
        head: CommitId,
    },
    /// The checkout is on another branch.
    Switched {
        /// The branch that is checked out.
        branch: String,
        /// The checked out commit, or `None` if that branch has no commits.
        head: Option<CommitId>,
    },
    /// The checkout is detached, but was created for a branch.
    Detached {
        /// The checked out commit.
        head: CommitId,
    },
}

impl Repository {
    /// Creates a worktree at `path` on a branch that starts at `base`, replacing the remains of an earlier
    /// attempt.
    ///
    /// An existing branch is moved to `base`.
    pub fn checkout_add(&self, path: &Path, branch: &str, base: &CommitId) -> Result<Checkout, GitError> {
        let full = name::branch_ref(branch)?;
        let args = ["--no-track", "-B", branch];
        self.add(path, Some((branch, &full)), &args, base)
    }

    /// Creates a detached worktree at a path and commit.
    pub fn checkout_detached(&self, path: &Path, commit: &CommitId) -> Result<Checkout, GitError> {
        self.add(path, None, &["--detach"], commit)
    }

    /// Finds the worktree at a path, or returns `None` if git has no record of one there.
    pub fn checkout_open(&self, path: &Path) -> Result<Option<Checkout>, GitError> {
        let path = resolved(path);
        let Some(git_dir) = self.linked_git_dir(&path) else { return Ok(None) };
        let file = git_dir.join(BRANCH_FILE);
        let branch = match fs::read_to_string(&file) {
            Ok(branch) => Some(branch).filter(|branch| !branch.is_empty()),
            // drydock crashed before writing the file. Nothing has run in the worktree, so it is still on its
            // own branch.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                crate::repository::head_branch(&self.linked_place(git_dir.clone(), path.clone()))?
            }
            Err(source) => return Err(GitError::file("read the branch of a worktree", &file, source)),
        };
        let terms = self.capture_terms().clone();
        Ok(Some(Checkout { place: self.linked_place(git_dir, path), branch, terms }))
    }

    /// Returns true if the creation of a worktree was interrupted before git wrote a file into it.
    pub fn is_half_made(&self, checkout: &Checkout) -> bool {
        is_half_made(&checkout.place.git_dir, checkout.path())
    }

    /// Removes a worktree with all its files; its branch stays. A missing worktree is not an error.
    pub fn checkout_remove(&self, path: &Path) -> Result<(), GitError> {
        let attempt = format!("remove the worktree {}", path.display());
        let _lock = self.lock(&attempt)?;
        self.remove(&resolved(path), &attempt)
    }

    fn add(
        &self,
        path: &Path,
        branch: Option<(&str, &str)>,
        args: &[&str],
        base: &CommitId,
    ) -> Result<Checkout, GitError> {
        let attempt = format!("create the worktree {}", path.display());
        let parent = path.parent().unwrap_or(Path::new("/"));
        make_folder(parent).map_err(|source| GitError::file(&attempt, parent, source))?;
        let path = resolved(path);
        let _lock = self.lock(&attempt)?;
        // Usually two calls, one of which only reads a file. The cause is investigated only if git fails.
        if let Err(first) = self.add_once(&path, args, base, &attempt) {
            if !matches!(first, GitError::Failed { .. }) {
                return Err(first);
            }
            self.clear_the_way(&path, branch, &attempt)?;
            self.add_once(&path, args, base, &attempt)?;
        }
        let unlisted = || GitError::unexpected(&attempt, "git created it, but does not list it");
        let git_dir = self.linked_git_dir(&path).ok_or_else(unlisted)?;
        let file = git_dir.join(BRANCH_FILE);
        let branch = branch.map(|(short, _)| short.to_owned());
        fs::write(&file, branch.as_deref().unwrap_or_default())
            .map_err(|source| GitError::file(&attempt, &file, source))?;
        let terms = self.capture_terms().clone();
        Ok(Checkout { place: self.linked_place(git_dir, path), branch, terms })
    }

    fn add_once(
        &self,
        path: &Path,
        args: &[&str],
        base: &CommitId,
        attempt: &str,
    ) -> Result<Output, GitError> {
        // The user's sparse checkout must not hide files from an agent.
        let sparse = [("core.sparseCheckout".to_owned(), "false".to_owned())];
        let guard = self.place().guard()?;
        retry_past_partial_record(self.common_dir(), || {
            let call = self.place().call(attempt).settings(&guard).settings(&sparse);
            // The worktree is locked so that `git worktree prune` keeps its record even where the directory
            // is not visible (BUG-6).
            let call = call.args(["worktree", "add", "--quiet", "--lock", "--reason", LOCK_REASON]);
            let call = args.iter().fold(call, |call, arg| call.arg(arg));
            call.arg("--").arg(path).arg(base.as_str()).limit(LIMIT_FILES).run()
        })
    }

    /// Removes the remains of an interrupted attempt at this path, and frees the branch from worktrees whose
    /// directories are missing or on another machine. Any other worktree with the branch may be in use, so it
    /// is never touched here.
    fn clear_the_way(
        &self,
        path: &Path,
        branch: Option<(&str, &str)>,
        attempt: &str,
    ) -> Result<(), GitError> {
        for worktree in self.worktrees()? {
            let has_branch = branch.is_some_and(|(_, full)| worktree.branch.as_deref() == Some(full));
            let here = resolved(&worktree.path) == path;
            if !here && !has_branch {
                continue;
            }
            if worktree.git_dir == self.common_dir() || !here {
                let (short, full) = branch.unwrap_or(("HEAD", "HEAD"));
                if !self.detach_absent(&worktree, full, attempt)? {
                    return Err(GitError::BranchInUse { branch: short.to_owned(), worktree: worktree.path });
                }
                continue;
            }
            self.remove(&resolved(&worktree.path), attempt)?;
        }
        self.remove(path, attempt)
    }

    /// Detaches a worktree without a directory on this machine from the branch. Returns whether it did. The
    /// record and its index stay, so a directory that exists on another machine loses nothing.
    fn detach_absent(&self, worktree: &Worktree, branch: &str, attempt: &str) -> Result<bool, GitError> {
        let gone =
            fs::symlink_metadata(&worktree.path).is_err_and(|error| error.kind() == ErrorKind::NotFound);
        let tip = if worktree.absent && gone { commit_at(self.place(), branch)? } else { None };
        let Some(tip) = tip else { return Ok(false) };
        let (head, new) = (worktree.git_dir.join("HEAD"), worktree.git_dir.join("HEAD.drydock"));
        let written = fs::write(&new, format!("{tip}\n")).and_then(|()| fs::rename(&new, &head));
        written.map_err(|source| GitError::file(attempt, &head, source))?;
        Ok(true)
    }

    /// Removes the directory first and git's record last: after a crash the record still leads to the
    /// directory.
    fn remove(&self, path: &Path, attempt: &str) -> Result<(), GitError> {
        let git_dir = self.linked_git_dir(path);
        let failed = |source| GitError::file(attempt, path, source);
        match fs::symlink_metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(source) => return Err(failed(source)),
            Ok(meta) => {
                if self.root().starts_with(path) || self.common_dir().starts_with(path) {
                    return Err(GitError::Occupied { path: path.to_owned() });
                }
                if git_dir.is_none() && !self.is_checkout_or_empty(path) {
                    return Err(GitError::Occupied { path: path.to_owned() });
                }
                let removed = if meta.is_dir() { remove_folder(path) } else { fs::remove_file(path) };
                removed.map_err(failed)?;
            }
        }
        let Some(git_dir) = git_dir else { return Ok(()) };
        // Does the same as `git worktree remove` with a missing directory, but also accepts a record that a
        // crash left incomplete.
        match fs::remove_dir_all(&git_dir) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(GitError::file(attempt, &git_dir, error))
            }
            Ok(()) | Err(_) => {
                // Like git, remove `worktrees` once it is empty. The call fails if it is not.
                fs::remove_dir(self.common_dir().join("worktrees")).ok();
                Ok(())
            }
        }
    }

    /// Git creates `.git` before any other file, so a directory without it is either empty or not a checkout.
    fn is_checkout_or_empty(&self, path: &Path) -> bool {
        if let Some(link) = short_line(&path.join(".git")) {
            let target = link.strip_prefix("gitdir: ").map(|target| path.join(target));
            return target.is_some_and(|target| target.starts_with(self.common_dir().join("worktrees")));
        }
        fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
    }

    fn linked_place(&self, git_dir: PathBuf, work_tree: PathBuf) -> GitContext {
        let GitContext { git, common_dir, .. } = self.place().clone();
        GitContext { git, common_dir, git_dir, work_tree }
    }
}

/// Creates a directory and its missing parents, accessible only to this user. The umask is unchanged: files
/// that git checks out inside keep the modes the user wants.
pub fn make_folder(path: &Path) -> std::io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Removes a directory even if an agent or a package cache removed its write permission.
pub fn remove_folder(path: &Path) -> std::io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            make_writable(path)?;
            fs::remove_dir_all(path)
        }
        other => other,
    }
}

fn make_writable(folder: &Path) -> std::io::Result<()> {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            make_writable(&entry.path())?;
        }
    }
    Ok(())
}
