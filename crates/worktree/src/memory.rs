//! What this process has learned from git and need not ask again: the trees of commits, which never change, and the
//! configuration, for as long as the files that it is read from stay the same.
//!
//! A configuration that names further files, or that differs between worktrees, is read each time.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use crate::error::GitError;
use crate::git::Git;
use crate::guard::Entry;
use crate::id::{CommitId, TreeId};
use crate::run::{Call, Place};

/// How many commits' trees are remembered at the most; then all are forgotten.
const TREES_MAX: usize = 4096;
/// Of how many repositories the configuration is remembered at the most.
const CONFIGURATIONS_MAX: usize = 64;
/// How long files must have been the same before what is read from them is kept. A file system's clock ticks in steps of
/// some milliseconds: of two writes within one step, the second cannot be seen by the time that it leaves.
const SETTLED: Duration = Duration::from_millis(100);

/// What git has answered before.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    trees: Mutex<HashMap<(PathBuf, CommitId), TreeId>>,
    configurations: Mutex<HashMap<PathBuf, Known>>,
    /// The files of the user and of the system; none when this git does not say where they are.
    outside: OnceLock<Option<Vec<PathBuf>>>,
}

/// A configuration that was read.
#[derive(Debug, Clone)]
struct Known {
    files: Option<Vec<Stamp>>,
    /// When the files were first seen like this.
    since: Instant,
    /// Kept only where the files had been the same for a while before they were read.
    entries: Option<Arc<[Entry]>>,
}

/// A file as it is now, which no other content leaves the same; none when there is no such file.
type Stamp = Option<[i64; 7]>;

impl Memory {
    /// Returns the tree of a commit, which is read where it was not before.
    pub(crate) fn tree(
        &self,
        place: &Place,
        commit: &CommitId,
        read: impl FnOnce() -> Result<TreeId, GitError>,
    ) -> Result<TreeId, GitError> {
        let key = (place.common_dir.clone(), commit.clone());
        if let Some(tree) = lock(&self.trees).get(&key) {
            return Ok(tree.clone());
        }
        let tree = read()?;
        let mut trees = lock(&self.trees);
        if trees.len() >= TREES_MAX {
            trees.clear();
        }
        trees.insert(key, tree.clone());
        Ok(tree)
    }

    /// Returns the configuration, which is read unless all of its files are as they were.
    pub(crate) fn configuration(
        &self,
        place: &Place,
        read: impl FnOnce() -> Result<Vec<Entry>, GitError>,
    ) -> Result<Arc<[Entry]>, GitError> {
        let known = lock(&self.configurations).get(&place.common_dir).cloned();
        let Some(known) = known else {
            // Whoever looks only once pays for nothing more.
            self.keep(place, Known { files: None, since: Instant::now(), entries: None });
            return read().map(Arc::from);
        };
        let looked = Instant::now();
        let files = self.files(place);
        let same = files.is_some() && files == known.files;
        if let (true, Some(entries)) = (same, &known.entries) {
            return Ok(Arc::clone(entries));
        }
        let since = if same { known.since } else { Instant::now() };
        // The files were looked at before they are read: what is written meanwhile is seen by the next look.
        let entries: Arc<[Entry]> = read()?.into();
        let settled = same && looked.duration_since(since) >= SETTLED && !needs_more(&entries);
        self.keep(place, Known { files, since, entries: settled.then(|| Arc::clone(&entries)) });
        Ok(entries)
    }

    fn keep(&self, place: &Place, known: Known) {
        let mut configurations = lock(&self.configurations);
        if configurations.len() >= CONFIGURATIONS_MAX && !configurations.contains_key(&place.common_dir) {
            configurations.clear();
        }
        configurations.insert(place.common_dir.clone(), known);
    }

    fn files(&self, place: &Place) -> Option<Vec<Stamp>> {
        let outside = self.outside.get_or_init(|| outside(&place.git)).as_ref()?;
        let own = place.common_dir.join("config");
        outside.iter().map(PathBuf::as_path).chain([own.as_path()]).map(stamp).collect()
    }
}

/// Tells whether a configuration depends on more than the files that are looked at.
fn needs_more(entries: &[Entry]) -> bool {
    let more = |key: &str| {
        key.starts_with("include.") || key.starts_with("includeif.") || key == "extensions.worktreeconfig"
    };
    entries.iter().any(|entry| more(&entry.key))
}

/// Asks git where the configuration of the user and of the system would be, whether or not there is any.
fn outside(git: &Git) -> Option<Vec<PathBuf>> {
    let mut files = Vec::new();
    for name in ["GIT_CONFIG_SYSTEM", "GIT_CONFIG_GLOBAL"] {
        let call = Call::new(git, Path::new("/"), "find the configuration").args(["var", name]);
        // Exit code 1 says that there is no such place.
        let output = call.accept(&[0, 1]).run().ok()?;
        let lines = output.stdout.split(|b| *b == b'\n').filter(|line| !line.is_empty());
        files.extend(lines.map(|line| PathBuf::from(OsStr::from_bytes(line))));
    }
    files.iter().all(|file| file.is_absolute()).then_some(files)
}

/// Looks at a file; nothing when that cannot be done, or when its file system counts in seconds: those are too coarse.
fn stamp(path: &Path) -> Option<Stamp> {
    match fs::metadata(path) {
        Ok(meta) if meta.mtime_nsec() == 0 && meta.ctime_nsec() == 0 => None,
        Ok(meta) => {
            let number = |value: u64| value.cast_signed();
            Some(Some([
                number(meta.dev()),
                number(meta.ino()),
                number(meta.size()),
                meta.mtime(),
                meta.mtime_nsec(),
                meta.ctime(),
                meta.ctime_nsec(),
            ]))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Some(None),
        Err(_) => None,
    }
}

/// A panic while one of these was held left nothing half done: each is a plain value.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
