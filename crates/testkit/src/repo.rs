//! Temporary git repositories, independent of the machine's git configuration.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use crate::proc;

/// The maximum time of a git command. It is long because importing 100,000 files on a slow disk is one of them.
const GIT_LIMIT: Duration = Duration::from_secs(120);

/// The number of files per directory in [`Repo::with_files`].
const FILES_PER_DIRECTORY: usize = 100;

/// A git repository on branch `main` in a temporary directory, removed on drop.
#[derive(Debug)]
pub struct Repo {
    // Kept for its drop. `path` is a subdirectory, so that worktrees and clones can be created beside the repository.
    _directory: TempDir,
    path: PathBuf,
}

impl Repo {
    /// Creates a repository with one commit of a few files.
    #[track_caller]
    pub fn new() -> Self {
        let repo = Self::empty();
        repo.write("README.md", "# Example\n");
        repo.write("src/main.txt", "one\ntwo\nthree\n");
        repo.write("src/other.txt", "alpha\nbeta\n");
        repo.commit("first");
        repo
    }

    /// Creates a repository with one commit of `n` small files, imported in one stream.
    #[track_caller]
    pub fn with_files(n: usize) -> Self {
        let repo = Self::empty();
        let mut stream =
            String::from("commit refs/heads/main\ncommitter Test <test@example.org> 1700000000 +0000\n");
        stream.push_str("data 5\nfirst\n");
        for file in 0..n {
            let text = format!("file {file}\n");
            let directory = file / FILES_PER_DIRECTORY;
            write!(stream, "M 644 inline d{directory}/f{file}.txt\ndata {}\n{text}\n", text.len())
                .expect("writing to a string cannot fail");
        }
        proc::run_with_input(&mut repo.command(&["fast-import", "--quiet"]), &stream, GIT_LIMIT)
            .expect_code(0);
        repo.git(&["reset", "--quiet", "--hard", "main"]);
        repo
    }

    /// Returns the repository's working directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file of the working directory and creates its directories.
    #[track_caller]
    pub fn write(&self, path: impl AsRef<Path>, content: impl AsRef<[u8]>) {
        let path = self.path.join(path);
        let directory = path.parent().expect("a joined path has a parent");
        if let Err(error) = fs::create_dir_all(directory).and_then(|()| fs::write(&path, content)) {
            panic!("could not write {}: {error}", path.display());
        }
    }

    /// Commits everything in the working directory, even without changes, and returns the commit's id.
    #[track_caller]
    pub fn commit(&self, message: &str) -> String {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message", message]);
        self.head("HEAD")
    }

    /// Runs git in the repository and returns its output without the last line end. Panics with git's error message.
    #[track_caller]
    pub fn git(&self, args: &[&str]) -> String {
        let ended = proc::run(&mut self.command(args), GIT_LIMIT);
        assert!(
            ended.status.success(),
            "git {} failed ({}):\n{}",
            args.join(" "),
            ended.status,
            ended.stderr
        );
        ended.stdout.strip_suffix('\n').unwrap_or(&ended.stdout).to_owned()
    }

    /// Returns the id of the commit that a branch or revision points to.
    #[track_caller]
    pub fn head(&self, branch: &str) -> String {
        self.git(&["rev-parse", "--verify", &format!("{branch}^{{commit}}")])
    }

    /// Returns the subjects of a branch's commits, newest first.
    #[track_caller]
    pub fn log_subjects(&self, branch: &str) -> Vec<String> {
        self.git(&["log", "--format=%s", branch, "--"]).lines().map(str::to_owned).collect()
    }

    #[track_caller]
    fn empty() -> Self {
        let directory = match TempDir::with_prefix("drydock-repo-") {
            Ok(directory) => directory,
            Err(error) => panic!("could not create a temporary directory: {error}"),
        };
        let path = directory.path().join("repo");
        if let Err(error) = fs::create_dir(&path) {
            panic!("could not create {}: {error}", path.display());
        }
        let repo = Self { _directory: directory, path };
        repo.git(&["init", "--quiet", "--initial-branch=main"]);
        // In the repository's own configuration, so that the code under test has an identity too.
        repo.git(&["config", "user.name", "Test"]);
        repo.git(&["config", "user.email", "test@example.org"]);
        repo
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new("git");
        command.current_dir(&self.path).args(args);
        // A git hook that runs the tests, or a developer's settings, must not affect these repositories.
        for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR"] {
            command.env_remove(name);
        }
        command
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("LC_ALL", "C");
        command
    }
}

impl Default for Repo {
    fn default() -> Self {
        Self::new()
    }
}
