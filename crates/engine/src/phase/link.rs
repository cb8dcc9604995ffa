//! Restores the file `.git` of a run's worktrees after every run (F8). Otherwise an agent could leave a repository of
//! its own there, and the next git command in that directory would run the agent's programs.

use std::path::{Path, PathBuf};

use drydock_domain::{Event, told};
use drydock_worktree::{Link, Repository};

use super::leftovers::{REVIEW, TREE};
use super::scope::Scope;
use crate::error::EngineError;
use crate::task;

/// The name under which a `.git` that an agent left is kept, beside the worktree.
const REPLACED: &str = "replaced-git";

/// A `.git` that was put back.
pub(super) struct PutBack {
    worktree: PathBuf,
    /// The new path of the file or directory that was in its place, if there was one.
    kept: Option<PathBuf>,
}

impl Scope<'_> {
    /// Puts the files `.git` of this run's worktrees back, and records where one was not in place. A failure changes nothing about
    /// how the run ended.
    pub(super) async fn restore_links(&self) {
        let (repository, directory) = (self.repository.clone(), self.directory());
        let restored = task::blocking(move || restore_links(&repository, &directory)).await;
        for PutBack { worktree, kept } in restored {
            let (run, plan, tree) = (&self.run, &self.plan.id, worktree.display());
            let kept = match kept {
                Some(kept) => format!(
                    "replaced {tree}/.git; it was put back, and what was there is kept in {}",
                    kept.display()
                ),
                None => format!("removed {tree}/.git; it was put back"),
            };
            let text = format!("{run} of {plan} {kept}");
            if let Err(error) = self.note(Event::Alert { priority: "high", text }).await {
                tracing::warn!(%run, error = %told(&error), "could not record that .git was put back");
            }
        }
    }
}

/// Puts the files `.git` of all worktrees in the directory of a run back, and returns which were not in place.
pub(super) fn restore_links(repository: &Repository, run: &Path) -> Vec<PutBack> {
    let mut restored = Vec::new();
    for name in [TREE, REVIEW] {
        let worktree = run.join(name);
        if !worktree.exists() {
            continue;
        }
        let aside = run.join(format!("{REPLACED}-{name}"));
        let link = || -> Result<Option<Link>, EngineError> {
            let checkout = repository.checkout_open(&worktree)?;
            Ok(checkout.map(|checkout| checkout.restore_link(&aside)).transpose()?)
        };
        match link() {
            Ok(None | Some(Link::Sound | Link::Gone)) => continue,
            Ok(Some(found)) => {
                tracing::warn!(worktree = %worktree.display(), ?found, "put the file .git of a worktree back");
                let kept = (found == Link::Replaced).then_some(aside);
                restored.push(PutBack { worktree, kept });
            }
            Err(error) => {
                tracing::warn!(error = %told(&error), worktree = %worktree.display(), "could not put the file .git of a worktree back");
            }
        }
    }
    restored
}
