//! Caches the git program and the repositories that this process has opened. Opening one takes five
//! processes, and a phase does it several times. A cached entry is used only while the same files are at its
//! paths.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use drydock_worktree::{Git, Repository};

use crate::error::EngineError;

/// The cached values, and the files by which they are revalidated.
#[derive(Debug, Default)]
pub(crate) struct RepositoryCache {
    git: Mutex<Option<(FileStamp, Git)>>,
    open: Mutex<HashMap<PathBuf, (Stamp, Repository)>>,
}

/// The identity of a file: a different file at the path, or different content, gives a different value.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FileStamp {
    path: PathBuf,
    identity: (u64, u64),
    written: (i64, i64, u64),
}

/// Differs if another repository is at the path now, or if this one was made bare or shallow.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    git: PathBuf,
    /// The device and inode of `.git`. Its modification time changes with every ref, so it is not compared.
    /// If `.git` is a file that links to a directory, `link` compares its content too.
    entry: (u64, u64),
    link: Option<FileStamp>,
    config: FileStamp,
    shallow: bool,
}

impl RepositoryCache {
    pub(crate) fn open(&self, path: &Path) -> Result<Repository, EngineError> {
        let git = self.git()?;
        let kept = lock(&self.open).get(path).cloned();
        if let Some((stamp, repository)) = kept
            && stamp_of(&git, path, &repository).is_ok_and(|now| now == stamp)
        {
            return Ok(repository);
        }
        let repository = Repository::open(&git, path)?;
        // If `.git` is not directly at the path, git must search for it each time.
        if let Ok(stamp) = stamp_of(&git, path, &repository) {
            lock(&self.open).insert(path.to_owned(), (stamp, repository.clone()));
        }
        Ok(repository)
    }

    fn git(&self) -> Result<Git, EngineError> {
        let path = Git::locate()?;
        let Ok(file) = FileStamp::at(path.clone()) else { return Ok(Git::at(path)?) };
        let kept = lock(&self.git).clone();
        match kept {
            Some((seen, git)) if seen == file => Ok(git),
            Some(_) | None => {
                let git = Git::at(path)?;
                *lock(&self.git) = Some((file, git.clone()));
                Ok(git)
            }
        }
    }
}

impl FileStamp {
    fn at(path: PathBuf) -> io::Result<FileStamp> {
        let meta = fs::metadata(&path)?;
        let written = (meta.mtime(), meta.mtime_nsec(), meta.size());
        Ok(FileStamp { path, identity: (meta.dev(), meta.ino()), written })
    }
}

fn stamp_of(git: &Git, path: &Path, repository: &Repository) -> io::Result<Stamp> {
    let (place, shared) = (path.join(".git"), repository.common_dir());
    let entry = fs::metadata(&place)?;
    Ok(Stamp {
        link: if entry.is_file() { Some(FileStamp::at(place)?) } else { None },
        git: git.program().to_owned(),
        entry: (entry.dev(), entry.ino()),
        config: FileStamp::at(shared.join("config"))?,
        shallow: shared.join("shallow").exists(),
    })
}

/// Ignores poisoning: each value is replaced as a whole, so a panic cannot leave it half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use drydock_testkit::repo::Repo;

    /// Breaks when the cache returns a repository although another one is at the path, or although it was
    /// made shallow.
    #[test]
    fn what_is_kept_is_what_is_there() {
        let (repo, other, kept) = (Repo::new(), Repo::new(), RepositoryCache::default());
        let first = kept.open(repo.path()).unwrap();
        assert_eq!(kept.open(repo.path()).unwrap().root(), first.root());
        fs::remove_dir_all(repo.path().join(".git")).unwrap();
        kept.open(repo.path()).unwrap_err();
        fs::rename(other.path().join(".git"), repo.path().join(".git")).unwrap();
        kept.open(repo.path()).unwrap();
        let (linked, moved) = (tempfile::tempdir().unwrap(), Repo::new());
        let link = |to: &Repo| {
            fs::write(linked.path().join(".git"), format!("gitdir: {}/.git\n", to.path().display())).unwrap()
        };
        link(&repo);
        let before = kept.open(linked.path()).unwrap().common_dir().to_owned();
        link(&moved);
        assert_ne!(kept.open(linked.path()).unwrap().common_dir(), before);
        fs::write(repo.path().join(".git/shallow"), format!("{}\n", repo.git(&["rev-parse", "HEAD"])))
            .unwrap();
        kept.open(repo.path()).unwrap_err();
    }
}
