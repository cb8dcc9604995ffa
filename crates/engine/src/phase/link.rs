//! Restores the file `.git` of a run's worktrees after every run (F8). Otherwise an agent could leave its own
//! repository there, and the next git command in that directory would run the agent's programs.

use std::path::{Path, PathBuf};

use drydock_domain::{Event, PlanId, error_chain};
use drydock_worktree::{Link, Repository};

use super::leftovers::{REVIEW, TREE};
use super::scope::RunContext;
use crate::error::EngineError;
use crate::task;

/// Name, next to the worktree, under which a `.git` that an agent left is kept.
const REPLACED: &str = "replaced-git";

/// A `.git` file that was missing or replaced after a run.
#[derive(Debug)]
pub(super) struct PutBack {
    worktree: PathBuf,
    outcome: LinkOutcome,
}

#[derive(Debug)]
enum LinkOutcome {
    /// It was missing and has been restored.
    Removed,
    /// It has been restored. The file or directory found in its place was moved here.
    Replaced { kept: PathBuf },
    /// It could not be restored, for this reason.
    Failed { reason: String },
}

impl PutBack {
    /// Updates the paths after the run directory was moved.
    pub(super) fn moved(self, from: &Path, to: &Path) -> PutBack {
        let at = |path: PathBuf| path.strip_prefix(from).map(|rest| to.join(rest)).unwrap_or(path);
        let outcome = match self.outcome {
            LinkOutcome::Replaced { kept } => LinkOutcome::Replaced { kept: at(kept) },
            outcome => outcome,
        };
        PutBack { worktree: at(self.worktree), outcome }
    }

    pub(super) fn alert(&self, run: &str, plan: &PlanId) -> Event {
        let tree = self.worktree.display();
        let what = match &self.outcome {
            LinkOutcome::Removed => format!("removed {tree}/.git; it was restored"),
            LinkOutcome::Replaced { kept } => {
                let kept = kept.display();
                format!("replaced {tree}/.git; it was restored, and the replacement is kept in {kept}")
            }
            LinkOutcome::Failed { reason } => format!(
                "may have replaced {tree}/.git, and it could not be restored ({reason}); run no git \
                 command in {tree}"
            ),
        };
        Event::Alert { priority: "high", text: format!("{run} of {plan} {what}") }
    }
}

impl RunContext<'_> {
    /// Restores the `.git` files of this run's worktrees, and emits an alert for each that was missing or
    /// replaced. A failure does not change how the run ended.
    pub(super) async fn restore_links(&self) {
        let (repository, directory) = (self.repository.clone(), self.directory());
        let restored = task::blocking(move || restore_links(&repository, &directory)).await;
        self.note_links(&restored).await;
    }

    /// Emits an alert for each `.git` file that was missing or replaced.
    pub(super) async fn note_links(&self, links: &[PutBack]) {
        let run = &self.run;
        for link in links {
            if let Err(error) = self.emit(link.alert(run.as_str(), &self.plan.id)).await {
                tracing::warn!(%run, error = %error_chain(&error), "could not record that .git was restored");
            }
        }
    }
}

/// Restores the `.git` files of all worktrees in a run directory, and returns those that were missing or
/// replaced.
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
                tracing::warn!(worktree = %worktree.display(), ?found, "restored the file .git of a worktree");
                let replaced = found == Link::Replaced;
                let outcome =
                    if replaced { LinkOutcome::Replaced { kept: aside } } else { LinkOutcome::Removed };
                restored.push(PutBack { worktree, outcome });
            }
            Err(error) => {
                tracing::warn!(error = %error_chain(&error), worktree = %worktree.display(), "could not restore the file .git of a worktree");
                restored
                    .push(PutBack { worktree, outcome: LinkOutcome::Failed { reason: error_chain(&error) } });
            }
        }
    }
    restored
}
