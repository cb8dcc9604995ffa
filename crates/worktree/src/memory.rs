//! What this process has learned from git and need not ask again: the trees of commits, which never change, and the
//! configuration, for as long as the files that it is read from stay the same.
//!
//! A configuration that names further files, or that differs between worktrees, is read each time.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::error::GitError;
use crate::git::Git;
use crate::guard::Entry;
use crate::id::{CommitId, TreeId};
use crate::run::{Call, Place};

/// How many commits' trees are remembered at the most; then all are forgotten.
const TREES_MAX: usize = 4096;
/// Of how many repositories the configuration is remembered at the most.
const CONFIGURATIONS_MAX: usize = 64;
/// The name of the operation in errors when the files of the configuration are looked for.
const FIND: &str = "find the configuration";
/// A file of the configuration that is longer is not compared.
const FILE_MAX: u64 = 1024 * 1024;

/// What git has answered before.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    trees: Mutex<HashMap<(PathBuf, CommitId), TreeId>>,
    configurations: Mutex<HashMap<PathBuf, Known>>,
    /// The files of the user and of the system; none when this git does not say where they are.
    outside: OnceLock<Option<Vec<PathBuf>>>,
}

/// A configuration that was read, and the files that it was read from.
#[derive(Debug, Clone)]
struct Known {
    files: Files,
    entries: Arc<[Entry]>,
}

/// What is in each file; nothing where there is none. Not its times: who has it mapped into memory changes it without those.
type Files = Vec<Option<Vec<u8>>>;

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
        let files = self.files(place);
        let known = lock(&self.configurations).get(&place.common_dir).cloned();
        if let (Some(files), Some(known)) = (&files, known)
            && *files == known.files
        {
            return Ok(known.entries);
        }
        let entries: Arc<[Entry]> = read()?.into();
        // Whether git read what was there before or what is there now, nobody knows where these differ.
        if let Some(files) = files.filter(|files| self.files(place).as_ref() == Some(files))
            && !needs_more(&entries)
        {
            self.keep(place, Known { files, entries: Arc::clone(&entries) });
        }
        Ok(entries)
    }

    fn keep(&self, place: &Place, known: Known) {
        let mut configurations = lock(&self.configurations);
        if configurations.len() >= CONFIGURATIONS_MAX && !configurations.contains_key(&place.common_dir) {
            configurations.clear();
        }
        configurations.insert(place.common_dir.clone(), known);
    }

    fn files(&self, place: &Place) -> Option<Files> {
        let outside = self.outside.get_or_init(|| outside(&place.git)).as_ref()?;
        let own = place.common_dir.join("config");
        outside.iter().map(PathBuf::as_path).chain([own.as_path()]).map(content).collect()
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
        let call = Call::new(git, Path::new("/"), FIND).args(["var", name]);
        // Exit code 1 says that there is no such place.
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

/// Finds the same by the rules of git's documentation. A file too many does no harm: it is compared for nothing.
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

/// Asks git for the file of the system. An empty one is not named: then nothing is remembered.
fn system_file(git: &Git) -> Option<PathBuf> {
    let call =
        Call::new(git, Path::new("/"), FIND).args(["config", "--system", "--list", "-z", "--show-origin"]);
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

/// The file by which users leave a part of the configuration out, as in `GIT_CONFIG_GLOBAL=/dev/null`.
const NO_FILE: &str = "/dev/null";

/// Reads a file, if there is one; nothing when that cannot be done.
fn content(path: &Path) -> Option<Option<Vec<u8>>> {
    if path == Path::new(NO_FILE) {
        return Some(None);
    }
    // What is no file may keep its readers waiting.
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

/// A panic while one of these was held left nothing half done: each is a plain value.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks when a user without a configuration of their own has git asked for it before each call.
    #[test]
    fn a_configuration_that_is_left_out_is_no_reason_to_ask_again() {
        assert_eq!(content(Path::new("/dev/null")), Some(None));
        assert_eq!(content(Path::new("/dev/zero")), None, "a device could keep its readers waiting");
    }
}
