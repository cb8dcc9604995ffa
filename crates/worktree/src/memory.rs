//! Caches of git data: the trees of commits, which never change, and the configuration, which is revalidated
//! by comparing the files it was read from.
//!
//! A configuration that includes further files, or that differs between worktrees, is not cached.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::error::GitError;
use crate::git::Git;
use crate::guard::ConfigEntry;
use crate::id::{CommitId, TreeId};
use crate::run::{GitCall, GitContext};

/// Maximum number of cached trees. When it is reached, the cache is cleared.
const TREES_MAX: usize = 4096;
/// Maximum number of repositories whose configuration is cached.
const CONFIGURATIONS_MAX: usize = 64;
/// Name of the operation in errors while locating the configuration files.
const FIND: &str = "find the configuration";
/// Longer configuration files are not compared, so the configuration is not cached.
const FILE_MAX: u64 = 1024 * 1024;

/// Cached results of git calls.
#[derive(Debug, Default)]
pub(crate) struct GitCache {
    trees: Mutex<HashMap<(PathBuf, CommitId), TreeId>>,
    configurations: Mutex<HashMap<PathBuf, CachedConfig>>,
    /// Configuration files of the user and the system; `None` if this git does not report their paths.
    outside: OnceLock<Option<Vec<PathBuf>>>,
}

/// A cached configuration and the content of the files it was read from.
#[derive(Debug, Clone)]
struct CachedConfig {
    files: FileContents,
    entries: Arc<[ConfigEntry]>,
}

/// The content of each file, or `None` if it does not exist. Modification times are not used, because a
/// process that has the file mapped into memory can change it without updating them.
type FileContents = Vec<Option<Vec<u8>>>;

impl GitCache {
    /// Returns the tree of a commit, and calls `read` if it is not cached.
    pub(crate) fn tree(
        &self,
        place: &GitContext,
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

    /// Returns the configuration, and calls `read` unless all its files are unchanged.
    pub(crate) fn configuration(
        &self,
        place: &GitContext,
        read: impl FnOnce() -> Result<Vec<ConfigEntry>, GitError>,
    ) -> Result<Arc<[ConfigEntry]>, GitError> {
        let files = self.files(place);
        let known = lock(&self.configurations).get(&place.common_dir).cloned();
        if let (Some(files), Some(known)) = (&files, known)
            && *files == known.files
        {
            return Ok(known.entries);
        }
        let entries: Arc<[ConfigEntry]> = read()?.into();
        // If the files changed during the read, we cannot know which version git read, so the result is not
        // cached.
        if let Some(files) = files.filter(|files| self.files(place).as_ref() == Some(files))
            && !needs_more(&entries)
        {
            self.keep(place, CachedConfig { files, entries: Arc::clone(&entries) });
        }
        Ok(entries)
    }

    fn keep(&self, place: &GitContext, known: CachedConfig) {
        let mut configurations = lock(&self.configurations);
        if configurations.len() >= CONFIGURATIONS_MAX && !configurations.contains_key(&place.common_dir) {
            configurations.clear();
        }
        configurations.insert(place.common_dir.clone(), known);
    }

    fn files(&self, place: &GitContext) -> Option<FileContents> {
        let outside = self.outside.get_or_init(|| outside(&place.git)).as_ref()?;
        let own = place.common_dir.join("config");
        outside.iter().map(PathBuf::as_path).chain([own.as_path()]).map(content).collect()
    }
}

/// Returns true if a configuration depends on files other than those compared.
fn needs_more(entries: &[ConfigEntry]) -> bool {
    let more = |key: &str| {
        key.starts_with("include.") || key.starts_with("includeif.") || key == "extensions.worktreeconfig"
    };
    entries.iter().any(|entry| more(&entry.key))
}

/// Uses git to find the paths of the user's and the system's configuration, whether or not the files exist.
fn outside(git: &Git) -> Option<Vec<PathBuf>> {
    let mut files = Vec::new();
    for name in ["GIT_CONFIG_SYSTEM", "GIT_CONFIG_GLOBAL"] {
        let call = GitCall::new(git, Path::new("/"), FIND).args(["var", name]);
        // Exit code 1: this git has no such path.
        let output = match call.accept(&[0, 1]).run() {
            Ok(output) => output,
            // Git before 2.42 does not know these names.
            Err(GitError::UnknownOption { .. }) => return outside_by_rule(git),
            Err(_) => return None,
        };
        let lines = output.stdout.split(|b| *b == b'\n').filter(|line| !line.is_empty());
        files.extend(lines.map(|line| PathBuf::from(OsStr::from_bytes(line))));
    }
    all_absolute(files)
}

/// Derives the same paths from the rules in git's documentation. An extra file does no harm: it is only
/// compared.
fn outside_by_rule(git: &Git) -> Option<Vec<PathBuf>> {
    let set = |name: &str| {
        let found = git.environment().iter().find(|(variable, _)| variable == name);
        found.map(|(_, value)| value).filter(|value| !value.is_empty()).map(PathBuf::from)
    };
    let system = match set("GIT_CONFIG_SYSTEM") {
        Some(path) => path,
        None => system_file(git)?,
    };
    let home = set("HOME");
    let below_home = [".gitconfig", ".config/git/config"];
    let below_home = home.iter().flat_map(|home| below_home.map(|name| home.join(name)));
    let xdg = set("XDG_CONFIG_HOME").map(|folder| folder.join("git/config"));
    all_absolute([system].into_iter().chain(set("GIT_CONFIG_GLOBAL")).chain(xdg).chain(below_home).collect())
}

/// Uses git to find the system configuration file. Git does not name an empty file; then nothing is cached.
fn system_file(git: &Git) -> Option<PathBuf> {
    let call =
        GitCall::new(git, Path::new("/"), FIND).args(["config", "--system", "--list", "-z", "--show-origin"]);
    let output = call.accept(&[0, 128]).run().ok()?;
    if let Some(path) = output.fields().next().and_then(|origin| origin.strip_prefix(b"file:")) {
        return Some(PathBuf::from(OsStr::from_bytes(path)));
    }
    let missing = output.stderr.strip_prefix("fatal: unable to read config file '")?;
    missing.split_once("': No such file").map(|(path, _)| PathBuf::from(path))
}

fn all_absolute(files: Vec<PathBuf>) -> Option<Vec<PathBuf>> {
    files.iter().all(|file| file.is_absolute()).then_some(files)
}

/// Path with which users disable a part of the configuration, as in `GIT_CONFIG_GLOBAL=/dev/null`.
const NO_FILE: &str = "/dev/null";

/// Reads a file: `Some(None)` if it does not exist, `None` if it cannot be read.
fn content(path: &Path) -> Option<Option<Vec<u8>>> {
    if path == Path::new(NO_FILE) {
        return Some(None);
    }
    // Reading something other than a regular file could block.
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return None;
    }
    let mut bytes = Vec::new();
    match File::open(path).and_then(|file| file.take(FILE_MAX + 1).read_to_end(&mut bytes)) {
        Ok(length) => (length as u64 <= FILE_MAX).then_some(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Some(None),
        Err(_) => None,
    }
}

/// Ignores poisoning: each value is replaced as a whole, so a panic cannot leave it inconsistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks when git is called for the configuration each time because the user has no configuration file.
    #[test]
    fn a_configuration_that_is_left_out_is_no_reason_to_ask_again() {
        assert_eq!(content(Path::new("/dev/null")), Some(None));
        assert_eq!(content(Path::new("/dev/zero")), None, "a device could keep its readers waiting");
    }
}
