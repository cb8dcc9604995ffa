//! A repository in a temporary directory, and git as a user would call it.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use drydock_worktree::{CommitId, Git, GitError, LandOutcome, Repository, Signature};
use tempfile::TempDir;

pub(crate) struct Fixture {
    pub(crate) folder: TempDir,
    pub(crate) git: Git,
}

impl Fixture {
    /// Creates `repo` with a first commit on `main`: `a.txt`, `b.txt` and `dir/c.txt`.
    pub(crate) fn new() -> Fixture {
        let fixture = Fixture::empty();
        fixture.user(&["init", "-q", "-b", "main", "repo"], &fixture.path(""));
        fixture.write("a.txt", "a\n");
        fixture.write("b.txt", "b\n");
        fixture.write("dir/c.txt", "c\n");
        fixture.commit_all("first");
        fixture
    }

    pub(crate) fn empty() -> Fixture {
        let folder = TempDir::new().unwrap();
        fs::create_dir(folder.path().join("home")).unwrap();
        let config = "[user]\n\tname = Ada\n\temail = ada@example.org\n[init]\n\tdefaultBranch = main\n";
        fs::write(folder.path().join("home/.gitconfig"), config).unwrap();
        let git = Git::find().unwrap().with_home(&folder.path().join("home"));
        Fixture { folder, git }
    }

    pub(crate) fn path(&self, below: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(below)
    }

    pub(crate) fn repo(&self) -> PathBuf {
        self.path("repo")
    }

    pub(crate) fn tree(&self, name: &str) -> PathBuf {
        self.path("store/worktrees").join(name).join("1")
    }

    pub(crate) fn open(&self) -> Repository {
        Repository::open(&self.git, &self.repo()).unwrap()
    }

    /// Runs git as the user in a directory, and returns its output.
    pub(crate) fn user(&self, args: &[&str], folder: &Path) -> String {
        let output = self.user_command(args, folder).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "git {args:?}: {said}");
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    pub(crate) fn user_command(&self, args: &[&str], folder: &Path) -> Command {
        let mut command = Command::new("git");
        command.args(args).current_dir(folder).env("HOME", self.path("home")).env_remove("GIT_DIR");
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("LC_ALL", "C");
        command
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        write(&self.repo().join(name), text);
    }

    pub(crate) fn commit_all(&self, message: &str) -> CommitId {
        self.commit_in(&self.repo(), message)
    }

    pub(crate) fn commit_in(&self, folder: &Path, message: &str) -> CommitId {
        self.user(&["add", "-A"], folder);
        self.user(&["commit", "-q", "--allow-empty", "-m", message], folder);
        self.head(folder)
    }

    pub(crate) fn head(&self, folder: &Path) -> CommitId {
        self.user(&["rev-parse", "HEAD"], folder).parse().unwrap()
    }

    pub(crate) fn tip(&self, branch: &str) -> CommitId {
        self.user(&["rev-parse", &format!("refs/heads/{branch}")], &self.repo()).parse().unwrap()
    }

    /// Creates a commit on top of another, in a worktree that is removed again.
    pub(crate) fn build(&self, base: &CommitId, edit: impl FnOnce(&Path)) -> CommitId {
        let folder = self.path("build");
        let path = folder.to_str().unwrap();
        self.user(&["worktree", "add", "-q", "--detach", path, base.as_str()], &self.repo());
        edit(&folder);
        let commit = self.commit_in(&folder, "built");
        self.user(&["worktree", "remove", "--force", path], &self.repo());
        commit
    }

    pub(crate) fn status(&self, folder: &Path) -> String {
        self.user(&["status", "--porcelain"], folder)
    }

    /// Returns everything a user could notice: files with content and mode, index, refs and HEAD.
    pub(crate) fn witness(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut seen = BTreeMap::new();
        collect(&self.repo(), &mut seen);
        seen.retain(|path, _| {
            let inside = path.strip_prefix(self.repo()).unwrap();
            // Objects may be added, and drydock's own lock file may appear.
            !inside.starts_with(".git/objects") && !inside.ends_with("drydock.lock")
        });
        seen
    }
}

fn collect(folder: &Path, seen: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let meta = fs::symlink_metadata(&path).unwrap();
        if meta.is_dir() {
            collect(&path, seen);
        } else if meta.is_symlink() {
            seen.insert(path.clone(), fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes());
        } else {
            let mut bytes = fs::read(&path).unwrap();
            bytes.extend(meta.permissions().mode().to_le_bytes());
            seen.insert(path, bytes);
        }
    }
}

/// Writes a file and creates the folders above it. Programs are written by another process: a child forked by
/// a concurrent test would inherit the file open for writing, and the kernel does not run such a program
/// (ETXTBSY).
pub(crate) fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    if !text.starts_with("#!") {
        return fs::write(path, text).unwrap();
    }
    let mut writer = Command::new("sh");
    let mut writer = writer.args(["-c", "cat > \"$0\""]).arg(path).stdin(Stdio::piped()).spawn().unwrap();
    writer.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(writer.wait().unwrap().success());
}

pub(crate) fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

pub(crate) fn ada() -> Signature {
    Signature { name: "Ada".to_owned(), email: "ada@example.org".to_owned(), at_seconds: 1_700_000_000 }
}

/// Lands under its own intent ref, as the holder of a plan does.
pub(crate) fn land(
    repository: &Repository,
    branch: &str,
    from: &CommitId,
    to: &CommitId,
) -> Result<LandOutcome, GitError> {
    let permit = format!("refs/drydock/intent/test/{to}");
    repository.ref_create(&permit, to)?;
    let landing = repository.land(branch, from, to, &permit);
    repository.ref_delete(&permit, to)?;
    landing
}
