//! What an agent wrote in a run that comes to no result: kept as a snapshot at once, so that whoever is asked, or comes
//! back to it, can see it; with its whole directory where no commit can hold it.

use drydock_domain::{ErrorClass, Event, told};
use drydock_worktree::{Checkout, CommitId, GitError};

use super::leftovers::{Leftover, Work, put_by};
use super::limit::kept_work;
use super::scope::{End, Scope, commit_id};
use crate::error::EngineError;
use crate::task;

impl Scope<'_> {
    /// Keeps what is in the worktree of a run that ended, and returns its commit; nothing when it is as the run found it.
    /// What cannot be kept now is no reason to lose why the run ended: its directory stays.
    pub(super) async fn remains(&self, checkout: &Checkout) -> Result<Option<CommitId>, EngineError> {
        // Whoever lost the plan touches nothing that the next run may have by now.
        if self.hold.lost().is_cancelled() || !checkout.path().exists() {
            return Ok(None);
        }
        let label = format!("work of {} of {}", self.run, self.plan.id);
        let (checkout, from, plan) = (checkout.clone(), self.from()?, self.plan.id.clone());
        let (repository, run) = (self.repository.clone(), self.run.clone());
        let kept =
            task::blocking(move || kept_work(&repository, &checkout, &from, (&plan, &run), &label)).await;
        match kept {
            Ok(kept) => kept.as_deref().map(commit_id).transpose(),
            Err(EngineError::Git(error)) if cannot_be_held(&error) => {
                self.kept_apart(&error).await.map(|()| None)
            }
            // A capture that fails or is asked to stop does not change how the run ended. The next run captures the
            // worktree.
            Err(error @ (EngineError::Git(_) | EngineError::Invalid { .. } | EngineError::Interrupted)) => {
                tracing::warn!(run = %self.run, error = %told(&error), "the next run keeps what this one wrote");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the end of a run whose work could not be captured. What no commit can hold is told with the place where
    /// it is kept, to people and to the next agent.
    pub(super) async fn uncaptured(&self, error: EngineError) -> Result<End, EngineError> {
        let EngineError::Git(error) = error else { return Err(error) };
        if !cannot_be_held(&error) {
            return Err(error.into());
        }
        let place = self.put_by(&error).await?;
        Ok(self.failed(ErrorClass::Uncapturable, format!("{}; the work is kept in {place}", told(&error))))
    }

    /// Puts work that no commit can hold by with its directory, and tells where it is.
    pub(super) async fn kept_apart(&self, error: &GitError) -> Result<(), EngineError> {
        let (run, plan, place) = (&self.run, &self.plan.id, self.put_by(error).await?);
        let text = format!(
            "the work of {run} of {plan} could not be kept as a snapshot, so the next run begins without it; it is kept \
             in {place}: {}",
            told(error)
        );
        self.note(Event::Alert { priority: "high", text }).await
    }

    async fn put_by(&self, error: &GitError) -> Result<String, EngineError> {
        let leftover = Leftover { path: self.directory(), run: self.run.to_string() };
        let (repository, plan, reason) = (self.repository.clone(), self.plan.id.clone(), told(error));
        let (work, links) = task::blocking(move || put_by(&repository, &plan, &leftover, reason)).await?;
        self.note_links(&links).await;
        Ok(match work {
            Work::Directory { path, .. } => path.display().to_string(),
            Work::Nothing | Work::Snapshot(_) => self.directory().display().to_string(),
        })
    }
}

/// Says whether the files themselves are why git could not keep them; trying again would come to the same. A full disk is
/// another matter: the next run keeps them once there is room.
pub(super) fn cannot_be_held(error: &GitError) -> bool {
    let of_files = matches!(
        error,
        GitError::NestedRepository { .. }
            | GitError::SubmoduleChanged { .. }
            | GitError::SpecialFile { .. }
            | GitError::FileTooLarge { .. }
            | GitError::ChangeTooLarge { .. }
            | GitError::TooManyFiles { .. }
            | GitError::PathNotUtf8 { .. }
            | GitError::FilterRefused { .. }
            | GitError::Failed { .. }
    );
    of_files && !error.is_starved()
}
