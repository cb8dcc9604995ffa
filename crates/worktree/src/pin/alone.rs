//! Determines the commits and edits that only a backup keeps. All code that lists, shows or removes backups
//! uses this module.
//!
//! Refs that drydock moves or removes do not count as keeping anything: branches of plans, both local and as
//! seen on a remote, and everything in `refs/drydock/`. Every other ref counts.

use drydock_domain::CommitLine;

use crate::error::GitError;
use crate::id::CommitId;
use crate::repository::Repository;
use crate::sync::{WalkedCommit, commits};

/// Refs that belong to plans. Refs prefetched by `git maintenance` may include some, and the next fetch
/// removes them.
const OWN: [&str; 4] =
    ["refs/heads/drydock/*", "refs/remotes/*/drydock/*", "refs/prefetch/*", "refs/drydock/*"];

/// Commits and edits that would be lost with a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Alone {
    /// Commits, oldest first.
    pub(crate) commits: Vec<CommitLine>,
    /// Whether uncommitted edits would be lost.
    pub(crate) edits: bool,
}

impl Repository {
    /// Lists the commits that are in no ref other than those of plans. A backup of edits is a commit on top
    /// of the head, with the staged content as its second parent; neither of the two is listed.
    pub(crate) fn alone(&self, pin: &CommitId, head: &CommitId) -> Result<Alone, GitError> {
        let excluded = OWN.map(|glob| format!("--exclude={glob}"));
        let revisions = [pin.to_string(), "--not".to_owned()].into_iter().chain(excluded);
        let revisions: Vec<String> = revisions.chain(["--glob=refs/*".to_owned()]).collect();
        let mut alone = commits(self.place(), &revisions)?;
        let wrapped: Vec<CommitId> = match alone.iter().find(|walked| walked.id == *pin) {
            Some(top) if pin != head => {
                let staged = top.parents.iter().filter(|parent| *parent != head);
                staged.chain([pin]).cloned().collect()
            }
            Some(_) | None => Vec::new(),
        };
        alone.retain(|walked: &WalkedCommit| !wrapped.contains(&walked.id));
        let commits = alone.into_iter().map(|walked| walked.line).collect();
        Ok(Alone { commits, edits: !wrapped.is_empty() })
    }
}

impl Alone {
    /// Returns why the backup must be kept, or `None` if it keeps nothing unique.
    pub(crate) fn reason(&self) -> Option<String> {
        let commits = match self.commits.len() {
            0 => None,
            1 => Some("a commit that exists nowhere else".to_owned()),
            many => Some(format!("{many} commits that exist nowhere else")),
        };
        let edits = self.edits.then(|| "edits that were never committed".to_owned());
        let kept: Vec<String> = [commits, edits].into_iter().flatten().collect();
        (!kept.is_empty()).then(|| format!("it contains {}", kept.join(" and ")))
    }
}
