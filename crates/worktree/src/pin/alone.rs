//! The commits and edits that only a pin keeps. All code that lists, shows or removes pins asks here.
//!
//! Refs that drydock moves or removes itself keep nothing for long: the branches of plans, here and as they were seen on a
//! remote, and all of `refs/drydock/`. Every other ref counts.

use drydock_domain::CommitLine;

use crate::error::GitError;
use crate::id::CommitId;
use crate::repository::Repository;
use crate::sync::{Walked, commits};

/// The refs that are a plan's own. What `git maintenance` fetched ahead may be one, and goes with the next fetch.
const OWN: [&str; 4] =
    ["refs/heads/drydock/*", "refs/remotes/*/drydock/*", "refs/prefetch/*", "refs/drydock/*"];

/// What would be gone with a pin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Alone {
    /// Commits, oldest first.
    pub(crate) commits: Vec<CommitLine>,
    /// Whether edits that were never committed would be.
    pub(crate) edits: bool,
}

impl Repository {
    /// Lists the commits that are in no ref except a plan's own. A pin of edits is a commit on top of the head, with
    /// the staged content as its second parent; neither counts as a commit.
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
        alone.retain(|walked: &Walked| !wrapped.contains(&walked.id));
        let commits = alone.into_iter().map(|walked| walked.line).collect();
        Ok(Alone { commits, edits: !wrapped.is_empty() })
    }
}

impl Alone {
    /// Says why a pin that keeps this must stay; none when it keeps nothing.
    pub(crate) fn reason(&self) -> Option<String> {
        let commits = match self.commits.len() {
            0 => None,
            1 => Some("a commit that is nowhere else".to_owned()),
            many => Some(format!("{many} commits that are nowhere else")),
        };
        let edits = self.edits.then(|| "edits that were never committed".to_owned());
        let kept: Vec<String> = [commits, edits].into_iter().flatten().collect();
        (!kept.is_empty()).then(|| format!("it keeps {}", kept.join(" and ")))
    }
}
