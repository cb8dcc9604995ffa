//! A project's repository: opening it, and reading its commits and branches.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use drydock_domain::Fence;

use crate::error::{GitError, OpenError};
use crate::git::Git;
use crate::holder::{Judge, Terms};
use crate::id::{CommitId, TreeId};
use crate::lock::{self, RepositoryLock};
use crate::name;
use crate::patience::{CaptureBounds, CaptureTerms, StopSignal};
use crate::remote_land::Remotes;
use crate::run::{GitCall, GitContext, path_text};
use crate::worktrees::retry_past_partial_record;

/// An open repository; clones share it.
#[derive(Clone)]
pub struct Repository {
    inner: Arc<RepositoryInner>,
    /// The plan for which this value takes the repository lock, and how it waits for the lock.
    terms: Terms,
    capture_terms: CaptureTerms,
}

struct RepositoryInner {
    place: GitContext,
    turns: Arc<Mutex<()>>,
    remotes: Remotes,
}

impl fmt::Debug for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Repository").field("root", &self.root()).finish_non_exhaustive()
    }
}

impl Repository {
    /// Opens the repository that contains a directory.
    pub fn open(git: &Git, path: &Path) -> Result<Repository, OpenError> {
        let given = || path.to_owned();
        let Ok(folder) = path.canonicalize() else { return Err(OpenError::Missing { path: given() }) };
        if !folder.is_dir() {
            return Err(OpenError::Missing { path: given() });
        }
        let failed = |source| OpenError::Git { path: given(), source };
        let seen = match look(git, &folder) {
            Ok(seen) => seen,
            Err(GitError::Failed { detail, .. }) if detail.contains("not a git repository") => {
                return Err(OpenError::NotARepository { path: given() });
            }
            Err(error) => return Err(failed(error)),
        };
        if seen.bare {
            return Err(OpenError::Bare { path: given() });
        }
        if seen.shallow {
            return Err(OpenError::Shallow { path: given() });
        }
        let place = find_root(git, &folder, &seen).map_err(failed)?;
        let turns = lock::turns(&place.common_dir);
        let inner = RepositoryInner { place, turns, remotes: Remotes::default() };
        let repository = Repository {
            inner: Arc::new(inner),
            terms: Terms::default(),
            capture_terms: CaptureTerms::default(),
        };
        match repository.has_commits() {
            Ok(Commits::Some) => Ok(repository),
            Ok(Commits::None) => Err(OpenError::NoCommits { path: given() }),
            Err(error) => Err(failed(error)),
        }
    }

    /// Returns this repository with a plan and fence, which the lock file then names.
    #[must_use]
    pub fn on_behalf(&self, plan: &str, fence: Fence) -> Repository {
        let mut repository = self.clone();
        repository.terms.plan = Some((plan.to_owned(), fence));
        repository
    }

    /// Returns this repository with a check for expired lock holders. While waiting for the lock, the check
    /// runs once the same holder was seen for the duration of a lease.
    #[must_use]
    pub fn judged_by(&self, judge: Judge, lease: Duration) -> Repository {
        let mut repository = self.clone();
        repository.terms.judge = Some((judge, lease));
        repository
    }

    /// Returns this repository with limits for its captures.
    #[must_use]
    pub fn capturing(&self, bounds: CaptureBounds) -> Repository {
        let mut repository = self.clone();
        repository.capture_terms.bounds = bounds;
        repository
    }

    /// Returns this repository with a signal that stops its captures.
    #[must_use]
    pub fn stopped_by(&self, stop: StopSignal) -> Repository {
        let mut repository = self.clone();
        repository.capture_terms.stop = Some(stop);
        repository
    }

    pub(crate) fn capture_terms(&self) -> &CaptureTerms {
        &self.capture_terms
    }

    /// Returns the directory of the main worktree, or of this worktree if the main one is bare.
    pub fn root(&self) -> &Path {
        &self.inner.place.work_tree
    }

    /// Returns the git directory that all worktrees share.
    pub fn common_dir(&self) -> &Path {
        &self.inner.place.common_dir
    }

    /// Returns the branch checked out in the root, or `None` if HEAD is detached.
    pub fn head_branch(&self) -> Result<Option<String>, GitError> {
        head_branch(self.place())
    }

    /// Returns the commit of a branch, or `None` if the branch does not exist.
    pub fn branch_tip(&self, branch: &str) -> Result<Option<CommitId>, GitError> {
        self.ref_read(&name::branch_ref(branch)?)
    }

    /// Returns an error if a branch named `drydock` prevents plan branches: git does not allow a branch below
    /// another.
    pub fn require_room(&self) -> Result<(), OpenError> {
        let path = || self.root().to_owned();
        match self.branch_tip("drydock") {
            Ok(None) => Ok(()),
            Ok(Some(_)) => Err(OpenError::NameTaken { path: path() }),
            Err(source) => Err(OpenError::Git { path: path(), source }),
        }
    }

    /// Returns true if a remote with this name is configured. A remote with several push addresses is an
    /// error.
    pub fn remote_exists(&self, name: &str) -> Result<bool, GitError> {
        Ok(self.place().source(name::remote(name)?)?.is_some())
    }

    /// Returns the tracked files of the root that differ from its commit.
    pub fn dirty_paths(&self) -> Result<Vec<String>, GitError> {
        let attempt = format!("find the changes in {}", self.root().display());
        let call = self.place().call(attempt.as_str()).settings(&self.place().guard()?);
        // Checking a submodule would run git there, under a configuration that is not guarded.
        let call = call.args(["status", "--porcelain=v1", "-z", "--untracked-files=no"]);
        let output = call.args(["--no-renames", "--ignore-submodules=dirty"]).run()?;
        let path = |record: &[u8]| match record.get(3..) {
            Some(path) => path_text(path),
            None => Err(GitError::unexpected(&attempt, String::from_utf8_lossy(record))),
        };
        output.fields().map(path).collect()
    }

    /// Returns true if a branch contains a commit. A missing branch contains none.
    pub fn contains(&self, branch: &str, commit: &CommitId) -> Result<bool, GitError> {
        match self.branch_tip(branch)? {
            Some(tip) => self.descends(&tip, commit),
            None => Ok(false),
        }
    }

    /// Returns true if `tip` is `commit` or descends from it. A commit that is not in this repository is not
    /// an ancestor.
    pub fn descends(&self, tip: &CommitId, commit: &CommitId) -> Result<bool, GitError> {
        Ok(tip == commit || self.commit_exists(commit)? && self.is_ancestor(commit, tip)?)
    }

    /// Returns true if the repository has this commit.
    pub fn commit_exists(&self, commit: &CommitId) -> Result<bool, GitError> {
        let attempt = format!("look for commit {commit}");
        let call =
            self.call(attempt.as_str()).args(["cat-file", "--batch-check=%(objectname) %(objecttype)"]);
        let answer = call.stdin(format!("{commit}\n").into_bytes()).run()?.text(&attempt)?;
        match answer.trim_end().split_once(' ') {
            Some((_, "commit")) => Ok(true),
            Some((_, "missing" | "tree" | "blob" | "tag")) => Ok(false),
            _ => Err(GitError::unexpected(&attempt, answer)),
        }
    }

    /// Returns the tree of a commit.
    pub fn tree_of(&self, commit: &CommitId) -> Result<TreeId, GitError> {
        tree_of(self.place(), commit)
    }

    /// Returns true if `old` is `new` or one of its ancestors.
    pub fn is_ancestor(&self, old: &CommitId, new: &CommitId) -> Result<bool, GitError> {
        is_ancestor(self.place(), old, new)
    }

    /// Reads the commit of a full ref.
    pub(crate) fn ref_read(&self, name: &str) -> Result<Option<CommitId>, GitError> {
        commit_at(self.place(), name)
    }

    pub(crate) fn place(&self) -> &GitContext {
        &self.inner.place
    }

    pub(crate) fn remotes(&self) -> &Remotes {
        &self.inner.remotes
    }

    /// Builds a call that only uses objects and refs, not files.
    pub(crate) fn call(&self, attempt: impl Into<String>) -> GitCall {
        self.place().call_without_files(attempt)
    }

    pub(crate) fn lock(&self, attempt: &str) -> Result<RepositoryLock<'_>, GitError> {
        RepositoryLock::take(&self.inner.turns, self.common_dir(), &self.terms, attempt)
    }

    fn has_commits(&self) -> Result<Commits, GitError> {
        if self.ref_read("HEAD")?.is_some() {
            return Ok(Commits::Some);
        }
        // HEAD may name a branch without commits while other branches have some.
        let call = self.call("look for commits").args(["for-each-ref", "--count=1", "refs/heads"]);
        Ok(if call.run()?.stdout.is_empty() { Commits::None } else { Commits::Some })
    }
}

enum Commits {
    Some,
    None,
}

pub(crate) fn head_branch(place: &GitContext) -> Result<Option<String>, GitError> {
    let attempt = "read which branch is checked out";
    symbolic_head(place.call_without_files(attempt), attempt)
}

/// Returns the branch that HEAD names, or `None` if it is detached.
pub(crate) fn symbolic_head(call: GitCall, attempt: &str) -> Result<Option<String>, GitError> {
    let output = call.args(["symbolic-ref", "--quiet", "HEAD"]).accept(&[0, 1]).run()?;
    if output.code == 1 {
        return Ok(None);
    }
    let text = output.text(attempt)?;
    match text.trim_end().strip_prefix("refs/heads/") {
        Some(branch) => Ok(Some(branch.to_owned())),
        None => Err(GitError::unexpected(attempt, text)),
    }
}

/// Returns the checked out branch and commit, each if there is one.
pub(crate) fn standing(place: &GitContext) -> Result<(Option<String>, Option<CommitId>), GitError> {
    let attempt = "read what is checked out";
    let call = place.call_without_files(attempt).args(["rev-parse", "HEAD", "--symbolic-full-name", "HEAD"]);
    // A branch without commits, or one named HEAD, needs the two separate calls below.
    let output = call.accept(&[0, 128]).run()?;
    if let ([head, name], 0) = (output.rev_parse(attempt)?.as_slice(), output.code)
        && let Some(head) = str::from_utf8(head).ok().and_then(|head| head.parse().ok())
    {
        match str::from_utf8(name).ok().map(|name| (name, name.strip_prefix("refs/heads/"))) {
            Some((_, Some(branch))) => return Ok((Some(branch.to_owned()), Some(head))),
            Some(("HEAD", None)) => return Ok((None, Some(head))),
            Some((_, None)) | None => {}
        }
    }
    Ok((head_branch(place)?, commit_at(place, "HEAD")?))
}

pub(crate) fn commit_at(place: &GitContext, name: &str) -> Result<Option<CommitId>, GitError> {
    let attempt = format!("read {name}");
    let call = place.call_without_files(attempt.as_str()).args(["rev-parse", "--quiet", "--verify"]);
    let output = call.arg(format!("{name}^{{commit}}")).accept(&[0, 1]).run()?;
    if output.code == 1 {
        return Ok(None);
    }
    let text = output.text(&attempt)?;
    text.trim_end().parse().map(Some).map_err(|_| GitError::unexpected(&attempt, text))
}

pub(crate) fn tree_of(place: &GitContext, commit: &CommitId) -> Result<TreeId, GitError> {
    place.git.memory().tree(place, commit, || {
        let attempt = format!("read the tree of {commit}");
        let call = place.call_without_files(attempt.as_str()).args(["rev-parse", "--verify"]);
        let answer = call.arg(format!("{commit}^{{tree}}")).run()?.text(&attempt)?;
        answer.trim_end().parse().map_err(|_| GitError::unexpected(&attempt, answer))
    })
}

pub(crate) fn is_ancestor(place: &GitContext, old: &CommitId, new: &CommitId) -> Result<bool, GitError> {
    if old == new {
        return Ok(true);
    }
    let call = place.call_without_files(format!("compare {old} with {new}"));
    let call = call.args(["merge-base", "--is-ancestor", old.as_str(), new.as_str()]);
    Ok(call.accept(&[0, 1]).run()?.code == 0)
}

struct RepositoryProbe {
    bare: bool,
    shallow: bool,
    in_work_tree: bool,
    git_dir: PathBuf,
    common_dir: PathBuf,
}

fn look(git: &Git, folder: &Path) -> Result<RepositoryProbe, GitError> {
    let attempt = "inspect the repository";
    let call = GitCall::new(git, folder, attempt).args(["rev-parse", "--path-format=absolute"]);
    let call = call.args(["--is-bare-repository", "--is-shallow-repository", "--is-inside-work-tree"]);
    let lines = call.args(["--git-dir", "--git-common-dir"]).run()?.rev_parse(attempt)?;
    let [bare, shallow, inside, git_dir, common_dir] = lines.as_slice() else {
        return Err(GitError::unexpected(
            attempt,
            format!("{} lines; a path may contain a line break", lines.len()),
        ));
    };
    let truth = |line: &[u8]| match line {
        b"true" => Ok(true),
        b"false" => Ok(false),
        other => Err(GitError::unexpected(attempt, String::from_utf8_lossy(other))),
    };
    let folder_at = |line: &[u8]| {
        let path = PathBuf::from(OsStr::from_bytes(line));
        path.canonicalize().map_err(|source| GitError::file(attempt, &path, source))
    };
    Ok(RepositoryProbe {
        bare: truth(bare)?,
        shallow: truth(shallow)?,
        in_work_tree: truth(inside)?,
        git_dir: folder_at(git_dir)?,
        common_dir: folder_at(common_dir)?,
    })
}

/// Finds the main worktree from any directory of the repository.
fn find_root(git: &Git, folder: &Path, seen: &RepositoryProbe) -> Result<GitContext, GitError> {
    let attempt = "find the main worktree";
    let place = |git_dir: &Path, work_tree: PathBuf| GitContext {
        git: git.clone(),
        git_dir: git_dir.to_owned(),
        common_dir: seen.common_dir.clone(),
        work_tree,
    };
    let here = seen.in_work_tree && seen.git_dir == seen.common_dir;
    if !here {
        let output = retry_past_partial_record(&seen.common_dir, || {
            GitCall::new(git, folder, attempt).args(["worktree", "list", "--porcelain", "-z"]).run()
        })?;
        let mut main = output.fields().take_while(|field| !field.is_empty());
        let path = main.next().and_then(|field| field.strip_prefix(b"worktree "));
        let path = path.ok_or_else(|| GitError::unexpected(attempt, "an empty list"))?;
        if !main.any(|field| field == b"bare") {
            return Ok(place(&seen.common_dir, PathBuf::from(OsStr::from_bytes(path))));
        }
    }
    let call =
        GitCall::new(git, folder, attempt).args(["rev-parse", "--path-format=absolute", "--show-toplevel"]);
    let output = call.run()?;
    let path = output.stdout.strip_suffix(b"\n").unwrap_or(&output.stdout);
    Ok(place(&seen.git_dir, PathBuf::from(OsStr::from_bytes(path))))
}
