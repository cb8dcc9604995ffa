//! What became of a submodule's directory, seen without git: what is in there may be anybody's, and git would follow its
//! configuration.
//!
//! A worktree that drydock made has submodules as empty directories. Files in one belong to no commit of this repository: to
//! leave them out would lose them.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::private_index::Entry;

/// More than any file that names a git directory or a commit has.
const LINE_MAX: u64 = 8 * 1024;

/// What is where a submodule belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// An empty directory, or a checkout of the very commit that is recorded.
    Untouched,
    /// Nothing, or something that is no directory.
    Replaced,
    /// A directory with files.
    Files,
}

/// Looks at the directory of a link in a worktree.
pub(crate) fn look(worktree: &Path, link: &Entry) -> io::Result<Found> {
    let path = worktree.join(OsStr::from_bytes(&link.path));
    match fs::symlink_metadata(&path) {
        Ok(found) if found.is_dir() => {}
        Ok(_) => return Ok(Found::Replaced),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Found::Replaced);
        }
        Err(error) => return Err(error),
    }
    if fs::read_dir(&path)?.next().is_none() || commit_in(&path).is_some_and(|commit| commit == link.id) {
        return Ok(Found::Untouched);
    }
    Ok(Found::Files)
}

/// Returns the commit that a checkout of a submodule is at, where it is on no branch: as `git submodule update` leaves it.
fn commit_in(path: &Path) -> Option<String> {
    let git_dir = short_line(&path.join(".git"))?;
    let git_dir = path.join(PathBuf::from(git_dir.strip_prefix("gitdir: ")?));
    short_line(&git_dir.join("HEAD"))
}

/// Reads a short file, without waiting for one that is a pipe.
pub(crate) fn short_line(path: &Path) -> Option<String> {
    let waitless = OFlags::NONBLOCK.bits().cast_signed();
    let file = File::options().read(true).custom_flags(waitless).open(path).ok()?;
    let mut text = String::new();
    file.take(LINE_MAX).read_to_string(&mut text).ok()?;
    Some(text.trim_end().to_owned())
}
