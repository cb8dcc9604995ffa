//! Creates a new repository with one commit, in a directory that is empty or does not exist.

use std::fs;
use std::path::Path;

use crate::error::{GitError, OpenError};
use crate::git::Git;
use crate::repository::Repository;
use crate::run::GitCall;

impl Repository {
    /// Creates a repository with these files in its first commit on `branch`.
    pub fn create(
        git: &Git,
        path: &Path,
        branch: &str,
        files: &[(&str, &str)],
        message: &str,
    ) -> Result<Repository, OpenError> {
        let failed = |source| OpenError::Git { path: path.to_owned(), source };
        first_commit(git, path, branch, files, message).map_err(failed)?;
        Repository::open(git, path)
    }
}

fn first_commit(
    git: &Git,
    path: &Path,
    branch: &str,
    files: &[(&str, &str)],
    message: &str,
) -> Result<(), GitError> {
    let attempt = "create a repository";
    let file = |source| GitError::Start { attempt: attempt.to_owned(), source };
    fs::create_dir_all(path).map_err(file)?;
    if fs::read_dir(path).map_err(file)?.next().is_some() {
        return Err(GitError::unexpected(attempt, format!("{} is not empty", path.display())));
    }
    let call = || GitCall::new(git, path, attempt);
    call().args(["init", "--quiet", "--initial-branch", branch]).run()?;
    for (name, content) in files {
        fs::write(path.join(name), content).map_err(file)?;
    }
    call().args(["add", "--all"]).run()?;
    let commit = call().args(["commit", "--quiet", "--allow-empty", "-m", message]);
    let identity = ["AUTHOR", "COMMITTER"];
    let commit = identity.iter().fold(commit, |commit, role| {
        commit
            .env(&format!("GIT_{role}_NAME"), "drydock")
            .env(&format!("GIT_{role}_EMAIL"), "drydock@localhost")
    });
    commit.once().run()?;
    Ok(())
}
