//! Reads the state of a branch's worktree directly from files, so that a sync with nothing to do costs almost
//! nothing.

use std::fs;
use std::path::Path;

use drydock_domain::WorktreeState;

use crate::checkout::Checkout;
use crate::error::GitError;
use crate::lock::IndexLock;
use crate::repository::{commit_at, head_branch};

/// Files that git creates in a worktree's git directory during an operation.
const UNDER_WAY: &[(&str, &str)] = &[
    ("rebase-merge", "rebase"),
    ("rebase-apply/applying", "am"),
    ("rebase-apply", "rebase"),
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("sequencer", "cherry-pick"),
    ("BISECT_LOG", "bisect"),
];

/// Content of the HEAD file in a repository with reftable, where the real HEAD is stored elsewhere.
const ELSEWHERE: &str = "refs/heads/.invalid";

/// Reads the state of a worktree. A worktree without a directory counts as none.
pub(crate) fn footing(checkout: &Checkout, full: &str) -> Result<WorktreeState, GitError> {
    let git_dir = &checkout.place.git_dir;
    if !checkout.path().is_dir() || !git_dir.is_dir() {
        return Ok(WorktreeState::Unattached);
    }
    if let Some(operation) = operation(git_dir) {
        return Ok(WorktreeState::MidOperation { operation: operation.to_owned() });
    }
    let file = git_dir.join("HEAD");
    let text = fs::read_to_string(&file).map_err(|source| GitError::file("read HEAD", &file, source))?;
    let on = match text.trim_end().strip_prefix("ref: ") {
        Some(ELSEWHERE) => match head_branch(&checkout.place)? {
            Some(branch) => format!("refs/heads/{branch}"),
            None => {
                commit_at(&checkout.place, "HEAD")?.map_or_else(|| "nothing".to_owned(), |id| id.to_string())
            }
        },
        Some(on) => on.to_owned(),
        None => text.trim_end().to_owned(),
    };
    if on != full {
        let on = on.strip_prefix("refs/heads/").unwrap_or(&on).to_owned();
        return Ok(WorktreeState::Elsewhere { on });
    }
    match IndexLock::is_foreign(git_dir) {
        true => Ok(WorktreeState::Locked { lock: "index.lock".to_owned() }),
        false => Ok(WorktreeState::OnBranch),
    }
}

fn operation(git_dir: &Path) -> Option<&'static str> {
    let found = UNDER_WAY.iter().find(|(name, _)| fs::symlink_metadata(git_dir.join(name)).is_ok());
    found.map(|(_, operation)| *operation)
}
