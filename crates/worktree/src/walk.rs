//! Checks every file of a worktree with `lstat` before git reads it. The walk follows no links, opens no file
//! except a `.git` file that names a directory elsewhere, and does not enter a `.git` directory.
//!
//! Git opens `.gitignore`, `.gitattributes` and the files that describe a repository without checking their
//! type, and blocks forever on a pipe (F5). Pipes, sockets and devices with other names do no harm: git
//! ignores them, or fails if a commit has a file with that name.

use std::collections::HashSet;
use std::ffi::{CStr, OsStr};
use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, RawDir, ResolveFlags, openat, openat2, statat, unlinkat,
};
use rustix::io::Errno;

use crate::error::GitError;
use crate::patience::{Over, Patience};
use crate::submodule::short_line;

/// Files that git reads in any directory.
const READ_BY_GIT: [&[u8]; 3] = [b".gitignore", b".gitattributes", b".gitmodules"];
/// Files that git reads to determine whether a `.git` is a repository.
const READ_OF_REPOSITORY: [&str; 3] = ["HEAD", "commondir", "config"];
/// Size of the buffer for directory entries.
const BUFFER: usize = 32 * 1024;

/// Totals of a worktree, including ignored files.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct WorktreeTotals {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    /// Size of the largest file.
    pub(crate) largest: u64,
    /// Directories that are repositories. They were not entered.
    pub(crate) repositories: Vec<Vec<u8>>,
}

/// A pipe, socket or device on which git would block.
#[derive(Debug)]
pub(crate) struct Special {
    path: Vec<u8>,
    kind: &'static str,
    /// The entry of the worktree that leads to it, relative to the root: the file itself, or a `.git` that
    /// names a directory elsewhere.
    entry: Vec<u8>,
}

/// Why git must not read a worktree.
#[derive(Debug)]
pub(crate) enum WalkRefusal {
    Special(Special),
    Over(Over),
    Unreadable(io::Error),
}

impl WalkRefusal {
    pub(crate) fn named(self, root: &Path, attempt: &str) -> GitError {
        match self {
            WalkRefusal::Special(Special { path, kind, .. }) => {
                GitError::SpecialFile { path: String::from_utf8_lossy(&path).into_owned(), kind }
            }
            WalkRefusal::Over(over) => over.named(attempt),
            WalkRefusal::Unreadable(source) => GitError::file(attempt, root, source),
        }
    }
}

/// Checks all files below these folders of a worktree, except those in `left_out`. The empty path is the
/// whole worktree.
pub(crate) fn walk(
    root: &Path,
    folders: Vec<Vec<u8>>,
    left_out: &HashSet<Vec<u8>>,
    patience: &Patience,
) -> Result<WorktreeTotals, WalkRefusal> {
    let top = open_top(root)?;
    let mut walked = WorktreeTotals::default();
    let mut found = Folder::new();
    let mut waiting = folders.clone();
    while let Some(folder) = waiting.pop() {
        patience.next_wait().map_err(WalkRefusal::Over)?;
        let entered = folder.is_empty() || folders.contains(&folder);
        let Some(open) = open_below(&top, &folder) else { continue };
        let has_git = found.look(&open, &folder, &mut walked);
        found.refuse()?;
        if has_git && !entered {
            let is_repository = found.is_repository(root, &folder);
            found.refuse()?;
            if is_repository {
                walked.repositories.push(folder);
                continue;
            }
        }
        waiting.extend(found.inner.drain(..).filter(|inner| !left_out.contains(inner)));
    }
    Ok(walked)
}

/// Removes the special files on which git would block, also in nested repositories. Only entries below the
/// root are removed: a `.git` that points elsewhere is removed, its target is not.
pub(crate) fn remove_special(root: &Path, patience: &Patience) -> Result<(), WalkRefusal> {
    let top = open_top(root)?;
    let mut found = Folder::new();
    let mut waiting = vec![Vec::new()];
    while let Some(folder) = waiting.pop() {
        patience.next_wait().map_err(WalkRefusal::Over)?;
        let Some(open) = open_below(&top, &folder) else { continue };
        if found.look(&open, &folder, &mut WorktreeTotals::default()) {
            found.is_repository(root, &folder);
        }
        for special in found.special.drain(..) {
            remove_below(&top, &special.entry).map_err(|errno| WalkRefusal::Unreadable(errno.into()))?;
        }
        waiting.append(&mut found.inner);
    }
    Ok(())
}

fn open_top(root: &Path) -> Result<OwnedFd, WalkRefusal> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(CWD, root, flags, Mode::empty()).map_err(|errno| WalkRefusal::Unreadable(errno.into()))
}

/// Removes one entry, unless the path of its folder now contains a symbolic link.
fn remove_below(top: &OwnedFd, entry: &[u8]) -> Result<(), Errno> {
    let slash = entry.iter().rposition(|b| *b == b'/');
    let (folder, name) = slash.map_or((&entry[..0], entry), |at| (&entry[..at], &entry[at + 1..]));
    let Some(open) = open_below(top, folder) else { return Ok(()) };
    match unlinkat(&open, OsStr::from_bytes(name), AtFlags::empty()) {
        Err(Errno::NOENT) => Ok(()),
        removed => removed,
    }
}

/// Opens a folder, unless its path now contains a symbolic link. A folder that cannot be opened is skipped
/// here, because git reports it.
fn open_below(top: &OwnedFd, folder: &[u8]) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let path = if folder.is_empty() { b".".as_slice() } else { folder };
    let path = OsStr::from_bytes(path);
    match openat2(top, path, flags, Mode::empty(), ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS) {
        // Some container runtimes do not support this system call.
        Err(Errno::NOSYS | Errno::PERM) => openat(top, path, flags, Mode::empty()).ok(),
        opened => opened.ok(),
    }
}

/// The entries of one folder.
struct Folder {
    buffer: Vec<MaybeUninit<u8>>,
    /// The subfolders.
    inner: Vec<Vec<u8>>,
    special: Vec<Special>,
}

impl Folder {
    fn new() -> Folder {
        Folder { buffer: vec![MaybeUninit::uninit(); BUFFER], inner: Vec::new(), special: Vec::new() }
    }

    fn refuse(&mut self) -> Result<(), WalkRefusal> {
        if self.special.is_empty() { Ok(()) } else { Err(WalkRefusal::Special(self.special.swap_remove(0))) }
    }

    /// Counts the files of a folder, and returns true if it contains a `.git`.
    fn look(&mut self, open: &OwnedFd, folder: &[u8], walked: &mut WorktreeTotals) -> bool {
        self.inner.clear();
        let mut has_git = false;
        let mut entries = RawDir::new(open.as_fd(), &mut self.buffer);
        while let Some(entry) = entries.next() {
            // A folder that is removed meanwhile has no more entries.
            let Ok(entry) = entry else { break };
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let is_git = name.to_bytes() == b".git";
            has_git |= is_git;
            let Some((kind, size)) = kind_and_size(open, name, entry.file_type()) else { continue };
            match kind {
                FileType::Directory if is_git => {}
                FileType::Directory => self.inner.push(joined(folder, name.to_bytes())),
                FileType::RegularFile | FileType::Symlink => {
                    walked.files += 1;
                    walked.bytes = walked.bytes.saturating_add(size);
                    walked.largest = walked.largest.max(size);
                }
                kind if READ_BY_GIT.contains(&name.to_bytes()) => {
                    let path = joined(folder, name.to_bytes());
                    self.special.push(Special { entry: path.clone(), path, kind: named(kind) });
                }
                _ => {}
            }
        }
        has_git && !folder.is_empty()
    }

    /// Returns true if git would treat a folder with a `.git` as a repository. First checks the files that
    /// git would read to determine this.
    fn is_repository(&mut self, root: &Path, folder: &[u8]) -> bool {
        let folder = Path::new(OsStr::from_bytes(folder));
        let dot_git = folder.join(".git");
        let link = || short_line(&root.join(&dot_git));
        let is_folder = fs::metadata(root.join(&dot_git)).is_ok_and(|meta| meta.is_dir());
        let is_inside = fs::symlink_metadata(root.join(&dot_git)).is_ok_and(|meta| meta.is_dir());
        let git_dir = if is_folder {
            dot_git.clone()
        } else if let Some(target) = link().as_deref().and_then(|link| link.strip_prefix("gitdir: ")) {
            folder.join(target)
        } else {
            return false;
        };
        for name in READ_OF_REPOSITORY {
            let path = git_dir.join(name);
            let Ok(meta) = fs::metadata(root.join(&path)) else { continue };
            let kind = meta.file_type();
            let special = [(kind.is_fifo(), "pipe"), (kind.is_socket(), "socket")];
            let special = special.into_iter().find(|(is_one, _)| *is_one).map(|(_, kind)| kind);
            if let Some(kind) = special.or((!kind.is_file() && !kind.is_dir()).then_some("device")) {
                let bytes = |path: &Path| path.as_os_str().as_bytes().to_vec();
                let entry = bytes(if is_inside { &path } else { &dot_git });
                self.special.push(Special { path: bytes(&path), kind, entry });
            }
        }
        // A worktree's git directory keeps its objects elsewhere.
        let there = |name: &str| root.join(&git_dir).join(name).exists();
        there("HEAD") && (there("commondir") || (there("objects") && there("refs")))
    }
}

/// Returns the type of an entry, and the size of a file; `None` if the entry no longer exists.
fn kind_and_size(open: &OwnedFd, name: &CStr, listed: FileType) -> Option<(FileType, u64)> {
    if !matches!(listed, FileType::RegularFile | FileType::Unknown) {
        return Some((listed, 0));
    }
    let stat = statat(open, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some((FileType::from_raw_mode(stat.st_mode), u64::try_from(stat.st_size).unwrap_or(0)))
}

fn joined(folder: &[u8], name: &[u8]) -> Vec<u8> {
    if folder.is_empty() { name.to_vec() } else { [folder, b"/", name].concat() }
}

fn named(kind: FileType) -> &'static str {
    match kind {
        FileType::Fifo => "pipe",
        FileType::Socket => "socket",
        _ => "device",
    }
}
