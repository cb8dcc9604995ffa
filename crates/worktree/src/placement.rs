//! Verifies the state of a checkout, and moves its branch without touching its files.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, openat};

use crate::capture::Staged;
use crate::checkout::{Checkout, Verified};
use crate::error::GitError;
use crate::id::CommitId;
use crate::name;
use crate::private_index::{IndexCopy, PrivateIndex};
use crate::repository::{commit_at, head_branch, is_ancestor, standing};
use crate::run::LIMIT_FILES;
use crate::submodule::short_line;
use crate::walk::remove_special;

/// Files that git creates in a worktree's git directory during an operation, and the text that describes it.
const UNDER_WAY: &[(&str, &str)] = &[
    ("MERGE_HEAD", "a merge is in progress"),
    ("rebase-merge", "a rebase is in progress"),
    ("rebase-apply", "a rebase is in progress"),
    ("CHERRY_PICK_HEAD", "a cherry-pick is in progress"),
    ("REVERT_HEAD", "a revert is in progress"),
    ("sequencer", "a cherry-pick is in progress"),
];

/// Further files of these operations, removed when an operation is aborted.
const REMAINS: &[&str] = &["MERGE_MSG", "MERGE_MODE", "AUTO_MERGE", "REBASE_HEAD", "SQUASH_MSG"];

/// The state in which a worktree's `.git` file was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// The file links the worktree to its repository.
    Sound,
    /// Something else was in its place and was moved away; the file is restored.
    Replaced,
    /// The file was missing and is restored.
    Removed,
    /// The worktree itself or git's record of it is missing.
    Gone,
}

impl Checkout {
    /// Returns the directory of the checkout.
    pub fn path(&self) -> &Path {
        &self.place.work_tree
    }

    /// Returns the branch for which it was created, or `None` if it was created detached.
    pub fn branch(&self) -> Option<&str> {
        self.branch.as_deref()
    }

    /// Checks whether the checkout is still in the state in which it was created.
    pub fn verify(&self, base: &CommitId) -> Result<Verified, GitError> {
        let there = fs::symlink_metadata(self.path()).is_ok_and(|meta| meta.is_dir());
        if !there {
            return Ok(Verified::Missing);
        }
        if !self.place.git_dir.is_dir() {
            return Ok(Verified::Unrecorded);
        }
        if !self.is_linked() {
            return Ok(Verified::Unlinked);
        }
        match standing(&self.place)? {
            (None, None) => {
                Err(GitError::unexpected("verify a worktree", "HEAD is neither a branch nor a commit"))
            }
            (None, Some(head)) if self.branch.is_some() => Ok(Verified::Detached { head }),
            (Some(branch), head) if Some(&branch) != self.branch.as_ref() => {
                Ok(Verified::Switched { branch, head })
            }
            (Some(branch), None) => Ok(Verified::Switched { branch, head: None }),
            (_, Some(head)) if is_ancestor(&self.place, base, &head)? => Ok(Verified::Sound { head }),
            (_, Some(head)) => Ok(Verified::Moved { head }),
        }
    }

    /// Restores the `.git` file that links the directory to this repository if it is missing or was replaced.
    /// Otherwise a git command in the directory would run programs that a foreign configuration names (F8). A
    /// replacement is moved to `aside`, which must not exist.
    pub fn restore_link(&self, aside: &Path) -> Result<Link, GitError> {
        let link = self.path().join(".git");
        let attempt = format!("restore {}", link.display());
        let failed = |source| GitError::file(&attempt, &link, source);
        let there = fs::symlink_metadata(self.path()).is_ok_and(|meta| meta.is_dir());
        if !there || !self.place.git_dir.is_dir() {
            return Ok(Link::Gone);
        }
        // An agent can remove write permission from the directory, or from a `.git` directory that has to be
        // moved.
        let let_owner_write = |path: &Path| let_owner_write(path).map_err(failed);
        let_owner_write(self.path())?;
        let replaced = match fs::symlink_metadata(&link) {
            Ok(meta) if meta.is_file() && self.is_linked() => return Ok(Link::Sound),
            Ok(meta) => {
                if meta.is_dir() {
                    let_owner_write(&link)?;
                }
                fs::rename(&link, aside).map_err(failed)?;
                true
            }
            Err(error) if error.kind() == ErrorKind::NotFound => false,
            Err(source) => return Err(failed(source)),
        };
        let mut text = b"gitdir: ".to_vec();
        text.extend_from_slice(self.place.git_dir.as_os_str().as_bytes());
        text.push(b'\n');
        let written = File::create_new(&link).and_then(|mut file| file.write_all(&text));
        written.map_err(failed)?;
        Ok(if replaced { Link::Replaced } else { Link::Removed })
    }

    /// Resets the directory to a commit: restores changed files and removes others. Ignored files and
    /// drydock's own folder stay.
    pub fn put_back(&self, commit: &CommitId) -> Result<(), GitError> {
        let attempt = format!("reset {} to {commit}", self.path().display());
        let patience = self.terms.patience();
        // Git would block on special files. They are not part of the work, because no commit can contain
        // them.
        remove_special(self.path(), &patience).map_err(|blocked| blocked.named(self.path(), &attempt))?;
        let guard = self.place.guard()?;
        let call = self.place.call(&attempt).settings(&guard).patience(&patience);
        call.args(["read-tree", "--reset", "-u", commit.as_str()]).run()?;
        let call = self.place.call(&attempt).settings(&guard).patience(&patience);
        call.args(["clean", "--force", "--force", "-d", "--quiet", "--exclude=/.drydock"]).run()?;
        Ok(())
    }

    /// Moves the checkout's branch to a commit and updates the index; files are not touched.
    ///
    /// Use it only while no agent runs in the checkout. If an agent switched the branch, it is switched back;
    /// an unfinished operation is aborted; and an index lock left by a killed agent is removed.
    pub fn branch_set(&self, commit: &CommitId) -> Result<(), GitError> {
        let attempt = format!("move the branch of {} to {commit}", self.path().display());
        // The ref is updated first: if the index were first, after a crash the agent's work would appear as
        // reverted.
        match &self.branch {
            Some(branch) => {
                let full = name::branch_ref(branch)?;
                self.point(&full, commit, &attempt)?;
                if head_branch(&self.place)?.as_ref() != Some(branch) {
                    self.place.call_without_files(&attempt).args(["symbolic-ref", "HEAD", &full]).run()?;
                }
            }
            None => self.point("HEAD", commit, &attempt)?,
        }
        let (IndexCopy::Index(index) | IndexCopy::Nothing(index)) =
            PrivateIndex::copy_of(&self.place, &attempt)?;
        let call = self.place.call(&attempt).index(&index.path()).limit(LIMIT_FILES);
        call.args(["read-tree", "--reset", commit.as_str()]).run()?;
        // Exit code 1 means that some file differs from the commit, which callers allow.
        let call = self.place.call(&attempt).index(&index.path()).limit(LIMIT_FILES);
        let call = call.settings(&self.place.guard()?).accept(&[0, 1]);
        call.args(["update-index", "-q", "--really-refresh"]).run()?;
        index.install(&self.place.git_dir, &attempt)?;
        self.give_up_operations(&attempt)
    }

    /// Moves the checkout's branch to the staged commit and updates the index, like [`Checkout::branch_set`].
    /// The caller must have verified the checkout after the agent's last work and found the branch at `tip`.
    /// A branch that moved since then stays unchanged.
    pub fn branch_to(&self, staged: Staged, tip: &CommitId) -> Result<(), GitError> {
        let attempt = format!("move the branch of {} to {}", self.path().display(), staged.commit());
        let full = self.branch.as_deref().map_or_else(|| Ok("HEAD".to_owned()), name::branch_ref)?;
        // The ref is updated first, as in `branch_set`.
        self.swing(&full, Some(tip), staged.commit(), &attempt)?;
        staged.index.install(&self.place.git_dir, &attempt)?;
        self.give_up_operations(&attempt)
    }

    fn give_up_operations(&self, attempt: &str) -> Result<(), GitError> {
        let names =
            UNDER_WAY.iter().map(|(name, _)| *name).chain(REMAINS.iter().copied()).chain(["index.lock"]);
        for name in names {
            remove_any(&self.place.git_dir.join(name), attempt)?;
        }
        Ok(())
    }

    fn point(&self, name: &str, commit: &CommitId, attempt: &str) -> Result<(), GitError> {
        let found = commit_at(&self.place, name)?;
        self.swing(name, found.as_ref(), commit, attempt)
    }

    /// Moves a ref, if it is still at `found`.
    fn swing(
        &self,
        name: &str,
        found: Option<&CommitId>,
        commit: &CommitId,
        attempt: &str,
    ) -> Result<(), GitError> {
        if found == Some(commit) {
            return Ok(());
        }
        // All zeros means that the ref must not exist.
        let old = found.map_or_else(|| "0".repeat(commit.as_str().len()), CommitId::to_string);
        let record = format!("option no-deref\0update {name}\0{commit}\0{old}\0");
        let call = self.place.call_without_files(attempt).args(["update-ref", "-m", "drydock: capture"]);
        call.args(["--stdin", "-z"]).stdin(record.into_bytes()).run()?;
        Ok(())
    }

    fn is_linked(&self) -> bool {
        let Some(link) = short_line(&self.path().join(".git")) else { return false };
        let target = link.strip_prefix("gitdir: ").map(|target| self.path().join(target));
        let same = |target: &Path| target.canonicalize().ok() == self.place.git_dir.canonicalize().ok();
        target.is_some_and(|target| same(&target))
    }
}

/// Returns the operation in progress in a worktree.
pub(crate) fn operation_under_way(git_dir: &Path) -> Option<&'static str> {
    let found = UNDER_WAY.iter().find(|(name, _)| fs::symlink_metadata(git_dir.join(name)).is_ok());
    found.map(|(_, operation)| *operation)
}

/// Gives the owner of a directory full permissions. Does not follow a symbolic link in its place.
fn let_owner_write(folder: &Path) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = File::from(openat(CWD, folder, flags, Mode::empty())?);
    let mode = open.metadata()?.permissions().mode();
    if mode & 0o700 == 0o700 {
        return Ok(());
    }
    let same = format!("/proc/self/fd/{}", open.as_raw_fd());
    fs::set_permissions(same, fs::Permissions::from_mode((mode & 0o7777) | 0o700))
}

fn remove_any(path: &Path, attempt: &str) -> Result<(), GitError> {
    let removed = match fs::symlink_metadata(path) {
        Ok(meta) if meta.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(GitError::file(attempt, path, error)),
        _ => Ok(()),
    }
}
