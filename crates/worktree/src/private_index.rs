//! A private copy of a worktree's index, so that the visible index changes atomically.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::error::GitError;
use crate::id::TreeId;
use crate::index_file;
use crate::run::{GitCall, GitContext, Output};

/// An index file of our own, next to the worktree's.
#[derive(Debug)]
pub(crate) struct PrivateIndex {
    // Git creates its lock file next to the index, so the copy has its own directory. The directory is inside
    // the worktree's git directory, so that a rename installs the index and removing the worktree removes it.
    folder: TempDir,
}

/// The copy, and whether there was an index to copy.
pub(crate) enum IndexCopy {
    Index(PrivateIndex),
    Nothing(PrivateIndex),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IndexEntry {
    pub(crate) mark: IndexFlag,
    pub(crate) mode: u32,
    pub(crate) id: String,
    pub(crate) stage: u8,
    pub(crate) path: Vec<u8>,
}

/// Flags that make git ignore changes to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IndexFlag {
    None,
    AssumeUnchanged,
    SkipWorktree,
}

/// File mode of a gitlink, which refers to a commit of another repository.
pub(crate) const GITLINK: u32 = 0o160_000;

impl PrivateIndex {
    pub(crate) fn empty(place: &GitContext, attempt: &str) -> Result<PrivateIndex, GitError> {
        let git_dir = &place.git_dir;
        let folder = tempfile::Builder::new().prefix("drydock-index-").tempdir_in(git_dir);
        let folder = folder.map_err(|source| GitError::file(attempt, git_dir, source))?;
        Ok(PrivateIndex { folder })
    }

    pub(crate) fn copy_of(place: &GitContext, attempt: &str) -> Result<IndexCopy, GitError> {
        let index = PrivateIndex::empty(place, attempt)?;
        let original = place.git_dir.join("index");
        match copy(&original, &index.path()) {
            Ok(()) => Ok(IndexCopy::Index(index)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(IndexCopy::Nothing(index)),
            Err(source) => Err(GitError::file(attempt, &original, source)),
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("index")
    }

    /// Sets the mode and content of paths; mode 0 removes a path.
    pub(crate) fn put(
        &self,
        place: &GitContext,
        sides: &[(u32, &str, &[u8])],
        attempt: &str,
    ) -> Result<(), GitError> {
        // Removals come first, so that a file can be replaced by a directory and the reverse.
        let (gone, kept): (Vec<_>, Vec<_>) = sides.iter().partition(|(mode, _, _)| *mode == 0);
        let mut records = Vec::new();
        for (mode, id, path) in gone.into_iter().chain(kept) {
            records.extend_from_slice(format!("{mode:o} {id}\t").as_bytes());
            records.extend_from_slice(path);
            records.push(0);
        }
        let arranged =
            |call: GitCall| call.args(["update-index", "--replace", "-z", "--index-info"]).stdin(records);
        self.entries_only(place, attempt, arranged).map(drop)
    }

    /// Makes a call that changes this index and needs no files.
    ///
    /// When git writes an index, it also reads files: those modified in the same second, and attribute files.
    /// An agent can make these reads block (F5). The call therefore runs with a work tree without these
    /// files, and the index keeps its modification time, from which the next call determines the files it has
    /// to read.
    pub(crate) fn entries_only(
        &self,
        place: &GitContext,
        attempt: &str,
        arranged: impl FnOnce(GitCall) -> GitCall,
    ) -> Result<Output, GitError> {
        let path = self.path();
        let elsewhere = GitContext { work_tree: place.common_dir.clone(), ..place.clone() };
        let written = fs::metadata(&path).and_then(|meta| meta.modified()).ok();
        let output = arranged(elsewhere.call(attempt).index(&path)).run()?;
        if let Some(written) = written {
            let kept = File::options().write(true).open(&path).and_then(|file| file.set_modified(written));
            kept.map_err(|source| GitError::file(attempt, &path, source))?;
        }
        Ok(output)
    }

    pub(crate) fn write_tree(&self, place: &GitContext, attempt: &str) -> Result<TreeId, GitError> {
        let text = self.entries_only(place, attempt, |call| call.arg("write-tree"))?.text(attempt)?;
        text.trim_end().parse().map_err(|_| GitError::unexpected(attempt, text))
    }

    /// Renames this index over the worktree's own.
    pub(crate) fn install(self, git_dir: &Path, attempt: &str) -> Result<(), GitError> {
        let target = git_dir.join("index");
        fs::rename(self.path(), &target).map_err(|source| GitError::file(attempt, &target, source))
    }

    /// Returns true if no entry hides changes or is a gitlink, as far as this can be determined without git.
    pub(crate) fn is_plain(&self) -> bool {
        fs::read(self.path()).is_ok_and(|bytes| index_file::is_plain(&bytes))
    }

    pub(crate) fn entries(&self, place: &GitContext, attempt: &str) -> Result<Vec<IndexEntry>, GitError> {
        let call = place.call(attempt).args(["ls-files", "--stage", "-v", "-z"]).index(&self.path());
        parse(&call.run()?, attempt)
    }
}

/// Copies an index and preserves its modification time.
///
/// Git considers a file unchanged if its size and modification second match the index, unless the index was
/// written in or before that second: then git reads the file. A copy with a newer time than the original
/// would hide files that an agent wrote in the same second as the checkout.
fn copy(original: &Path, copied: &Path) -> io::Result<()> {
    // Git replaces an index by rename, so an open file is always one complete version.
    let mut from = File::open(original)?;
    let mut to = File::create_new(copied)?;
    io::copy(&mut from, &mut to)?;
    to.set_modified(from.metadata()?.modified()?)
}

/// Reads records such as `H 100644 <id> 0<TAB>path`.
fn parse(output: &Output, attempt: &str) -> Result<Vec<IndexEntry>, GitError> {
    let read = |record: &[u8]| -> Option<IndexEntry> {
        let tab = record.iter().position(|b| *b == b'\t')?;
        let head = std::str::from_utf8(&record[..tab]).ok()?;
        let [mark, mode, id, stage]: [&str; 4] = head.split(' ').collect::<Vec<_>>().try_into().ok()?;
        let mark = match mark {
            "S" | "s" => IndexFlag::SkipWorktree,
            other if other.bytes().all(|b| b.is_ascii_lowercase()) => IndexFlag::AssumeUnchanged,
            _ => IndexFlag::None,
        };
        Some(IndexEntry {
            mark,
            mode: u32::from_str_radix(mode, 8).ok()?,
            id: id.to_owned(),
            stage: stage.parse().ok()?,
            path: record[tab + 1..].to_vec(),
        })
    };
    let entries = output.fields().map(|record| {
        read(record).ok_or_else(|| GitError::unexpected(attempt, String::from_utf8_lossy(record)))
    });
    entries.collect()
}
