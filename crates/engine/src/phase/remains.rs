//! Keeps an agent's work when its run ends without a result. The work becomes a checkpoint at once, so that
//! people can see it when they answer a question or return to the plan. If no commit can hold the work, the
//! whole run directory is kept.

use drydock_domain::{ErrorClass, Event, error_chain};
use drydock_worktree::{Checkout, CommitId, GitError};

use super::leftovers::{KeptWork, OldRunDir, move_to_kept};
use super::limit::kept_work;
use super::scope::{RunContext, RunOutcome, commit_id};
use crate::error::EngineError;
use crate::task;

impl RunContext<'_> {
    /// Checkpoints the worktree of an ended run and returns the commit; `None` if nothing changed. If the
    /// checkpoint fails, the directory stays and the reason why the run ended is not lost.
    pub(super) async fn checkpoint_unfinished(
        &self,
        checkout: &Checkout,
    ) -> Result<Option<CommitId>, EngineError> {
        // A process that lost the plan must not touch files that the next run may already use.
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
            // A capture that fails or is asked to stop does not change how the run ended. The next run
            // captures the worktree.
            Err(error @ (EngineError::Git(_) | EngineError::Invalid { .. } | EngineError::Interrupted)) => {
                tracing::warn!(run = %self.run, error = %error_chain(&error), "could not checkpoint the work; the next run does it");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the end of a run whose work could not be captured. If no commit can hold the work, the failure
    /// names its location, for people and for the next agent.
    pub(super) async fn uncaptured(&self, error: EngineError) -> Result<RunOutcome, EngineError> {
        let EngineError::Git(error) = error else { return Err(error) };
        if !cannot_be_held(&error) {
            return Err(error.into());
        }
        let place = self.put_by(&error).await?;
        Ok(self.failed(
            ErrorClass::Uncapturable,
            format!("{}; the work is kept in {place}", error_chain(&error)),
        ))
    }

    /// Moves work that no commit can hold to `kept`, with its directory, and emits an alert with the
    /// location.
    pub(super) async fn kept_apart(&self, error: &GitError) -> Result<(), EngineError> {
        let (run, plan, place) = (&self.run, &self.plan.id, self.put_by(error).await?);
        let text = format!(
            "the work of {run} of {plan} could not be kept as a checkpoint, so the next run starts without \
             it; it is kept in {place}: {}",
            error_chain(error)
        );
        self.emit(Event::Alert { priority: "high", text }).await
    }

    async fn put_by(&self, error: &GitError) -> Result<String, EngineError> {
        let leftover = OldRunDir { path: self.directory(), run: self.run.to_string() };
        let (repository, plan, reason) = (self.repository.clone(), self.plan.id.clone(), error_chain(error));
        let (work, links) =
            task::blocking(move || move_to_kept(&repository, &plan, &leftover, reason)).await?;
        self.note_links(&links).await;
        Ok(match work {
            KeptWork::Directory { path, .. } => path.display().to_string(),
            KeptWork::Nothing | KeptWork::Snapshot(_) => self.directory().display().to_string(),
        })
    }
}

/// Returns true if git failed because of the files themselves, so that a retry would fail again. A full disk
/// is different: the next run keeps the files once there is space.
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
