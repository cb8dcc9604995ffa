//! Where a person stands: the branch or commit that is checked out in a directory, which may be a linked worktree.

use std::path::Path;

use crate::error::GitError;
use crate::git::Git;
use crate::repository::symbolic_head;
use crate::run::Call;

impl Git {
    /// Returns the branch that is checked out in the worktree of a directory; none when no branch is.
    pub fn branch_at(&self, folder: &Path) -> Result<Option<String>, GitError> {
        let attempt = format!("read which branch is checked out in {}", folder.display());
        symbolic_head(Call::new(self, folder, attempt.as_str()), &attempt)
    }

    /// Returns the branches of the repository of a directory, the one that was committed to last first.
    pub fn branches_at(&self, folder: &Path) -> Result<Vec<String>, GitError> {
        let attempt = format!("list the branches of {}", folder.display());
        let call = Call::new(self, folder, attempt.as_str()).args(["for-each-ref", "--sort=-committerdate"]);
        let call = call.args(["--format=%(refname:lstrip=2)", "refs/heads"]);
        Ok(call.run()?.text(&attempt)?.lines().map(str::to_owned).collect())
    }
}
