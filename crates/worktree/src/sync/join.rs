//! Combines the local commits and edits with the remote's commits in the object database: commits first, then
//! edits.

use drydock_domain::{CommitLine, ReplayConflict};

use crate::error::GitError;
use crate::guard::Replacements;
use crate::id::{CommitId, TreeId};
use crate::merge::{Signature, merge_trees};
use crate::pin::UncommittedWork;
use crate::repository::Repository;
use crate::sync::replay::{Replayed, clash_of, replay};
use crate::sync::walk::DivergedCommits;

/// The outcome of combining both sides.
pub(crate) enum RebaseResult {
    Clean {
        /// The new commit of the branch.
        to: CommitId,
        /// The new content of the directory.
        files: TreeId,
        replayed: Vec<CommitLine>,
        /// Local commits whose changes the remote already had.
        absorbed: Vec<CommitLine>,
    },
    Clash(ReplayConflict),
}

impl Repository {
    /// Combines both sides. Only adds objects; files, index and refs stay unchanged.
    pub(crate) fn join_sides(
        &self,
        guard: &Replacements,
        sides: &DivergedCommits,
        tips: (&CommitId, &CommitId),
        held: Option<&UncommittedWork>,
        signature: &Signature,
    ) -> Result<RebaseResult, GitError> {
        let (local, remote) = tips;
        let (to, replayed, absorbed) = if sides.local.is_empty() {
            (remote.clone(), Vec::new(), Vec::new())
        } else {
            match replay(self.place(), guard, sides, local, remote)? {
                Replayed::Clean { to, commits, absorbed } => (to, commits, absorbed),
                Replayed::Clash(clash) => return Ok(RebaseResult::Clash(clash)),
            }
        };
        let Some(held) = held else {
            let files = self.tree_of(&to)?;
            return Ok(RebaseResult::Clean { to, files, replayed, absorbed });
        };
        let edits = self.commit_held(signature, local, held)?;
        match merge_trees(self.place(), guard, local, &to, &edits)? {
            Ok(files) => Ok(RebaseResult::Clean { to, files, replayed, absorbed }),
            Err(conflict) => Ok(RebaseResult::Clash(clash_of(&conflict, None))),
        }
    }
}
