//! If the user's signing program refuses the commit of a landing, the plan becomes constrained, with the
//! program's own message.

use drydock_domain::{PlanId, shell_word};
use drydock_worktree::{CommitId, Repository, Signed};

/// Returns the commit to land, or the reason why it could not be signed.
pub(super) fn signed(
    written: Signed,
    repository: &Repository,
    plan: &PlanId,
) -> Result<CommitId, Vec<String>> {
    let (program, reason) = match written {
        Signed::Written(commit) => return Ok(commit),
        Signed::Refused { program, reason } => (program, reason),
    };
    let root = repository.root().to_string_lossy();
    Err(vec![format!(
        "the commit could not be signed by {program}: {reason}; `git -C {} commit-tree -S -m test \
         'HEAD^{{tree}}'` reproduces it: make that work without a prompt, then `drydock plan retry {plan}`",
        shell_word(&root)
    )])
}
