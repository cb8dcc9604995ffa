//! Reads and writes files on behalf of an agent. Drydock itself is not in the sandbox, so the kernel resolves
//! each path below the worktree only: a check of our own could be raced with a symbolic link.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, mkdirat, openat, openat2};
use rustix::io::Errno;

/// Maximum size of a file that is read for an agent; it must fit into a message.
const READ_MAX: u64 = 4 * 1024 * 1024;

/// Reads a file that an agent left below a directory. No symbolic link leads outside, only a regular file of
/// limited size is read, and the call does not block.
pub fn read_below(directory: &Path, path: &Path) -> io::Result<String> {
    WorktreeFiles::at(directory).read(path, None, None)
}

/// The directory of an agent's files.
pub(super) struct WorktreeFiles {
    root: PathBuf,
    /// The resolved path, which an agent may use too.
    real: PathBuf,
}

impl WorktreeFiles {
    pub(super) fn at(root: &Path) -> Self {
        Self { root: root.to_owned(), real: root.canonicalize().unwrap_or_else(|_| root.to_owned()) }
    }

    /// Returns the text of a file, or at most `limit` lines starting at `line`, counted from 1.
    pub(super) fn read(&self, path: &Path, line: Option<u32>, limit: Option<u32>) -> io::Result<String> {
        let below = self.below(path)?;
        let file = regular(self.open(&self.directory()?, &below, OFlags::RDONLY)?)?;
        let length = file.metadata()?.len();
        if length > READ_MAX {
            return Err(io::Error::other(format!("it has {length} bytes, more than the {READ_MAX} allowed")));
        }
        let mut text = String::new();
        file.take(READ_MAX).read_to_string(&mut text)?;
        if line.is_none() && limit.is_none() {
            return Ok(text);
        }
        let skipped = line.unwrap_or(1).saturating_sub(1) as usize;
        let taken = limit.map_or(usize::MAX, |limit| limit as usize);
        Ok(text.split_inclusive('\n').skip(skipped).take(taken).collect())
    }

    /// Writes a file and creates the directories above it. Paths with a `.git` component are rejected: they
    /// belong to drydock, or would hide work from it.
    pub(super) fn write(&self, path: &Path, content: &str) -> io::Result<()> {
        let (below, root) = (self.below(path)?, self.directory()?);
        if below.components().any(|part| part.as_os_str() == ".git") {
            return Err(io::Error::other(
                "files of git cannot be written; change files of the worktree only",
            ));
        }
        let mut made = PathBuf::new();
        for part in below.parent().into_iter().flat_map(Path::components) {
            let above = self.open(&root, &made, OFlags::PATH | OFlags::DIRECTORY)?;
            match (part, mkdirat(&above, part.as_os_str(), Mode::from_raw_mode(0o777))) {
                (Component::Normal(_), Ok(()) | Err(Errno::EXIST)) => made.push(part),
                (Component::Normal(_), Err(errno)) => return Err(errno.into()),
                // `..` and `.` name directories that already exist.
                _ => made.push(part),
            }
        }
        let mut file = regular(self.open(&root, &below, OFlags::WRONLY | OFlags::CREATE)?)?;
        file.set_len(0)?;
        file.write_all(content.as_bytes())
    }

    fn directory(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(openat(CWD, &self.root, flags, Mode::empty())?)
    }

    /// Removes the worktree's prefix from a path; the kernel checks that the rest stays below it.
    fn below(&self, path: &Path) -> io::Result<PathBuf> {
        let below = [&self.root, &self.real].into_iter().find_map(|root| path.strip_prefix(root).ok());
        match below {
            Some(below) => Ok(below.to_owned()),
            None if path.is_relative() => Ok(path.to_owned()),
            None => Err(outside(path)),
        }
    }

    fn open(&self, root: &OwnedFd, below: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let path = if below.as_os_str().is_empty() { Path::new(".") } else { below };
        // Non-blocking, so that a pipe created by the agent does not block drydock.
        let waitless = if flags.contains(OFlags::PATH) { OFlags::empty() } else { OFlags::NONBLOCK };
        let flags = flags | OFlags::CLOEXEC | waitless;
        let mode = if flags.contains(OFlags::CREATE) { Mode::from_raw_mode(0o666) } else { Mode::empty() };
        let inside = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        match openat2(root.as_fd(), path, flags, mode, inside) {
            Ok(opened) => Ok(opened),
            Err(Errno::XDEV | Errno::LOOP) => Err(outside(below)),
            Err(errno) => Err(errno.into()),
        }
    }
}

fn regular(opened: OwnedFd) -> io::Result<File> {
    let file = File::from(opened);
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is not a regular file")) }
}

fn outside(path: &Path) -> io::Error {
    io::Error::other(format!("{} is outside the worktree", path.display()))
}

#[cfg(test)]
mod tests {
    use super::WorktreeFiles;
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    #[test]
    fn files_of_the_worktree_are_read_and_written() {
        let dock = tempfile::tempdir().unwrap();
        let root = dock.path().join("tree");
        fs::create_dir(&root).unwrap();
        let tree = WorktreeFiles::at(&root);
        tree.write(&root.join("a/b/c.txt"), "one\ntwo\nthree\n").unwrap();
        tree.write(Path::new("a/b/c.txt"), "1\n2\n3\n").unwrap();
        assert_eq!(tree.read(&root.join("a/b/c.txt"), None, None).unwrap(), "1\n2\n3\n");
        assert_eq!(tree.read(&root.join("a/b/../b/c.txt"), Some(2), Some(1)).unwrap(), "2\n");
        symlink("a/b/c.txt", root.join("link")).unwrap();
        assert_eq!(tree.read(&root.join("link"), Some(3), None).unwrap(), "3\n");
    }

    /// Breaks when any of these paths leads drydock, which is not sandboxed, out of the worktree.
    #[test]
    fn no_path_leads_out() {
        let dock = tempfile::tempdir().unwrap();
        let (root, secret) = (dock.path().join("tree"), dock.path().join("secret"));
        fs::create_dir(&root).unwrap();
        fs::write(&secret, "mine").unwrap();
        symlink(&secret, root.join("link")).unwrap();
        symlink(dock.path(), root.join("door")).unwrap();
        symlink("..", root.join("up")).unwrap();
        let tree = WorktreeFiles::at(&root);
        for path in [
            secret.clone(),
            root.join("../secret"),
            root.join("link"),
            root.join("door/secret"),
            root.join("up/secret"),
            "/proc/self/cwd".into(),
            "../secret".into(),
        ] {
            assert!(tree.read(&path, None, None).is_err(), "read {}", path.display());
            assert!(tree.write(&path, "theirs").is_err(), "written {}", path.display());
        }
        for path in ["door/new", "up/new", "../new", "door/deep/new"] {
            assert!(tree.write(&root.join(path), "theirs").is_err(), "{path}");
        }
        assert_eq!(fs::read_to_string(secret).unwrap(), "mine");
        assert!(!dock.path().join("new").exists() && !dock.path().join("deep").exists());
    }

    /// Breaks when a protocol agent can disconnect its worktree from the repository.
    #[test]
    fn what_belongs_to_git_is_not_written() {
        let dock = tempfile::tempdir().unwrap();
        fs::write(dock.path().join(".git"), "gitdir: elsewhere").unwrap();
        let tree = WorktreeFiles::at(dock.path());
        for path in [".git", "a/.git/config", "a/../.git"] {
            assert!(tree.write(Path::new(path), "x").is_err(), "{path}");
        }
        assert_eq!(fs::read_to_string(dock.path().join(".git")).unwrap(), "gitdir: elsewhere");
        assert!(!dock.path().join("a").exists());
        tree.write(Path::new(".gitignore"), "x").unwrap();
    }

    #[test]
    fn what_is_no_file_is_refused_at_once() {
        let dock = tempfile::tempdir().unwrap();
        let tree = WorktreeFiles::at(dock.path());
        assert!(
            std::process::Command::new("mkfifo").arg(dock.path().join("pipe")).status().unwrap().success()
        );
        assert!(tree.read(Path::new("pipe"), None, None).unwrap_err().to_string().contains("regular"));
        assert!(tree.write(Path::new("pipe"), "x").is_err());
        assert!(tree.read(Path::new(""), None, None).is_err());
    }
}
