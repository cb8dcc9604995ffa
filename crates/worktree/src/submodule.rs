//! Checks the directory of a submodule without git. The directory may contain anything, and git would use its
//! configuration.
//!
//! In a worktree created by drydock, submodules are empty directories. Files inside one belong to no commit
//! of this repository, so leaving them out would lose them.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::private_index::IndexEntry;

/// More than the length of any file that names a git directory or a commit.
const LINE_MAX: u64 = 8 * 1024;

/// The state of a submodule's directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SubmoduleState {
    /// An empty directory, or a checkout of exactly the recorded commit.
    Untouched,
    /// Nothing, or something other than a directory.
    Replaced,
    /// A directory with files.
    Files,
}

/// Checks the directory of a gitlink in a worktree.
pub(crate) fn look(worktree: &Path, link: &IndexEntry) -> io::Result<SubmoduleState> {
    let path = worktree.join(OsStr::from_bytes(&link.path));
    match fs::symlink_metadata(&path) {
        Ok(found) if found.is_dir() => {}
        Ok(_) => return Ok(SubmoduleState::Replaced),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(SubmoduleState::Replaced);
        }
        Err(error) => return Err(error),
    }
    if fs::read_dir(&path)?.next().is_none() || commit_in(&path).is_some_and(|commit| commit == link.id) {
        return Ok(SubmoduleState::Untouched);
    }
    Ok(SubmoduleState::Files)
}

/// Returns the commit of a submodule's checkout with a detached HEAD, which is the state after
/// `git submodule update`.
fn commit_in(path: &Path) -> Option<String> {
    let git_dir = short_line(&path.join(".git"))?;
    let git_dir = path.join(PathBuf::from(git_dir.strip_prefix("gitdir: ")?));
    short_line(&git_dir.join("HEAD"))
}

/// Reads a short file without blocking on a pipe.
pub(crate) fn short_line(path: &Path) -> Option<String> {
    let waitless = OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(waitless).open(path).ok()?;
    let mut text = String::new();
    file.take(LINE_MAX).read_to_string(&mut text).ok()?;
    Some(text.trim_end().to_owned())
}
