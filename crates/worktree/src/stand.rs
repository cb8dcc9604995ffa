//! Reads the branch that is checked out in the user's directory, which may be a linked worktree.

use std::path::Path;

use crate::error::GitError;
use crate::git::Git;
use crate::repository::symbolic_head;
use crate::run::GitCall;

impl Git {
    /// Returns the branch checked out in the worktree of a directory, or `None` if HEAD is detached.
    pub fn branch_at(&self, folder: &Path) -> Result<Option<String>, GitError> {
        let attempt = format!("read which branch is checked out in {}", folder.display());
        symbolic_head(GitCall::new(self, folder, attempt.as_str()), &attempt)
    }

    /// Returns the branches of the repository of a directory, most recently committed first.
    pub fn branches_at(&self, folder: &Path) -> Result<Vec<String>, GitError> {
        let attempt = format!("list the branches of {}", folder.display());
        let call =
            GitCall::new(self, folder, attempt.as_str()).args(["for-each-ref", "--sort=-committerdate"]);
        let call = call.args(["--format=%(refname:lstrip=2)", "refs/heads"]);
        Ok(call.run()?.text(&attempt)?.lines().map(str::to_owned).collect())
    }
}
