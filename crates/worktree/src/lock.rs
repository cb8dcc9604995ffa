//! Two locks: drydock's lock per repository, and git's own lock on an index, marked as drydock's.
//!
//! `git worktree add` and `remove` read each other's partially written directories, so they are serialised: a
//! mutex for the threads of this process, and a file lock, which the kernel releases when its process ends,
//! for processes. The file names its holder, so that a waiter can check for a frozen one (`holder`).
//!
//! A landing holds `index.lock` of the user's worktree, so that no git process of the user writes the index
//! meanwhile. The lock is created by hard-linking a file that already contains our mark, so a crash can never
//! leave a lock that we do not recognise as ours. Only the holder of the repository lock creates one. A
//! marked index lock that is found while holding the repository lock was therefore left by a crash.

use std::collections::HashMap;
use std::fs::{self, File, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, TryLockError as MutexBusy};
use std::thread;
use std::time::{Duration, Instant};

use drydock_domain::error_chain;

use crate::error::GitError;
use crate::holder::{self, HolderWatch, LockHolder, Terms};

/// The lock file, in the common directory of the repository.
const NAME: &str = "drydock.lock";
/// Content of an `index.lock` created by drydock.
const MARK: &[u8] = b"drydock is landing a commit here\n";
/// The names of files that become such a lock begin like this.
const MARK_PREFIX: &str = "drydock-mark-";
/// Enough for several of the longest calls made under the lock.
const WAIT_MAX: Duration = Duration::from_secs(30 * 60);
const PAUSE: Duration = Duration::from_millis(10);
/// How often a waiter reads the holder.
const LOOK_EVERY: Duration = Duration::from_millis(100);

static TURNS: LazyLock<Mutex<HashMap<PathBuf, Arc<Mutex<()>>>>> = LazyLock::new(Mutex::default);

/// Exclusive access of one thread of one process to the worktrees of a repository.
pub(crate) struct RepositoryLock<'a> {
    _turn: MutexGuard<'a, ()>,
    file: File,
}

impl Drop for RepositoryLock<'_> {
    fn drop(&mut self) {
        // The file is emptied first, so that a waiter does not mistake this process for the next holder. It
        // is unlocked explicitly, because closing is not enough: a process that another thread is starting
        // has a copy of the descriptor until it calls exec.
        let released = self.file.set_len(0).and_then(|()| self.file.unlock());
        if let Err(error) = released {
            tracing::warn!(error = %error_chain(&error), "could not release the repository's lock");
        }
    }
}

/// Returns the mutex of a repository, shared by all users of the repository in this process.
pub(crate) fn turns(common_dir: &Path) -> Arc<Mutex<()>> {
    let mut all = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    all.entry(common_dir.to_owned()).or_default().clone()
}

impl<'a> RepositoryLock<'a> {
    pub(crate) fn take(
        turns: &'a Mutex<()>,
        common_dir: &Path,
        terms: &Terms,
        attempt: &str,
    ) -> Result<Self, GitError> {
        let path = common_dir.join(NAME);
        let deadline = Instant::now() + WAIT_MAX;
        let busy = |holder: Option<LockHolder>| GitError::Busy {
            attempt: attempt.to_owned(),
            lock: path.clone(),
            holder: holder.map_or_else(|| "another process".to_owned(), |holder| holder.to_string()),
        };
        let turn = loop {
            match turns.try_lock() {
                Ok(turn) => break turn,
                // The mutex guards no data, so a poisoned one is safe to use.
                Err(MutexBusy::Poisoned(poisoned)) => break poisoned.into_inner(),
                Err(MutexBusy::WouldBlock) if Instant::now() < deadline => thread::sleep(PAUSE),
                Err(MutexBusy::WouldBlock) => return Err(busy(holder::read(&path))),
            }
        };
        let failed = |source| GitError::file(attempt, &path, source);
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        let (mut watch, mut next_look) = (HolderWatch::default(), Instant::now());
        loop {
            match file.try_lock() {
                Ok(()) => {
                    let lock = RepositoryLock { _turn: turn, file };
                    terms.sign(&lock.file, attempt).map_err(failed)?;
                    return Ok(lock);
                }
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                    if Instant::now() >= next_look {
                        next_look = Instant::now() + LOOK_EVERY;
                        if let Some(holder) = watch.look(&path, terms) {
                            return Err(busy(Some(holder)));
                        }
                    }
                    thread::sleep(PAUSE);
                }
                Err(TryLockError::WouldBlock) => return Err(busy(holder::read(&path))),
                Err(TryLockError::Error(source)) => return Err(failed(source)),
            }
        }
    }
}

/// Removes the mark files of killed processes. A file that cannot be removed is harmless; the next holder of the lock tries
/// again.
fn clear_marks(git_dir: &Path) {
    let entries = fs::read_dir(git_dir).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(MARK_PREFIX)) {
        if let Err(error) = fs::remove_file(entry.path()) {
            tracing::debug!(mark = %entry.path().display(), error = %error_chain(&error), "could not remove the marker file of a killed process");
        }
    }
}

/// Git's index lock, held by this process. Dropping it releases the lock.
pub(crate) struct IndexLock {
    path: Option<PathBuf>,
}

impl IndexLock {
    /// Takes the lock. The caller must hold the repository lock.
    pub(crate) fn take(git_dir: &Path, attempt: &str) -> Result<IndexLock, GitError> {
        let path = git_dir.join("index.lock");
        let failed = |source| GitError::file(attempt, &path, source);
        let mut marked = tempfile::Builder::new().prefix(MARK_PREFIX).tempfile_in(git_dir).map_err(failed)?;
        std::io::Write::write_all(&mut marked, MARK).map_err(failed)?;
        match fs::hard_link(marked.path(), &path) {
            Ok(()) => Ok(IndexLock { path: Some(path.clone()) }),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(GitError::IndexLocked {
                attempt: attempt.to_owned(),
                detail: format!("{} exists", path.display()),
            }),
            Err(source) => Err(failed(source)),
        }
    }

    /// Returns true if there is an index lock that drydock did not create.
    pub(crate) fn is_foreign(git_dir: &Path) -> bool {
        match fs::read(git_dir.join("index.lock")) {
            Ok(bytes) => bytes != MARK,
            Err(error) => error.kind() != ErrorKind::NotFound,
        }
    }

    /// Removes an index lock left by a crash of drydock. The caller must hold the repository lock.
    pub(crate) fn clear_left_over(git_dir: &Path, attempt: &str) -> Result<(), GitError> {
        clear_marks(git_dir);
        let path = git_dir.join("index.lock");
        match fs::read(&path) {
            Ok(bytes) if bytes == MARK => {
                fs::remove_file(&path).map_err(|source| GitError::file(attempt, &path, source))
            }
            // There is a foreign lock, or none; the attempt to take the lock shows which.
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Releases the lock, and returns an error if that fails.
    pub(crate) fn release(mut self, attempt: &str) -> Result<(), GitError> {
        // Taken, so that drop cannot remove a lock that another process created since.
        let path = self.path.take().expect("only release takes it, and release consumes the lock");
        fs::remove_file(&path).map_err(|source| GitError::file(attempt, &path, source))
    }
}

impl Drop for IndexLock {
    fn drop(&mut self) {
        if let Some(path) = self.path.take() {
            // If removal fails, the next landing recognises the mark and clears the lock.
            fs::remove_file(path).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks when the mark of a process that was killed between making it and removing it stays forever, in a worktree that
    /// nothing lands in, or when a file of another program is removed.
    #[test]
    fn the_mark_of_a_killed_process_is_removed_before_the_lock_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let left = folder.path().join("drydock-mark-k1lled");
        let other = folder.path().join("COMMIT_EDITMSG");
        fs::write(&left, MARK).unwrap();
        fs::write(&other, "").unwrap();
        fs::hard_link(&left, folder.path().join("index.lock")).unwrap();
        IndexLock::clear_left_over(folder.path(), "test").unwrap();
        let lock = IndexLock::take(folder.path(), "test").unwrap();
        assert!(!left.exists() && other.exists());
        lock.release("test").unwrap();
        let names: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["COMMIT_EDITMSG"]);
    }
}
