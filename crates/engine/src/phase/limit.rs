//! Ends a run at an agent's rate limit: its work becomes a checkpoint, and the phase is postponed until the
//! limit ends.

use drydock_agent::Resets;
use drydock_domain::{Command, Delay, Event, PlanId, RateLimit, Remains, RunId, Timestamp, error_chain};
use drydock_worktree::{Checkout, CommitId, Repository};

use super::agents::{AgentAssignment, AgentRole};
use super::remains::cannot_be_held;
use super::scope::{RunContext, RunOutcome, kept_by, signature, write_checkpoint};
use crate::error::EngineError;
use crate::{clock, task};

/// Label of the checkpoint of a run that ended early.
pub(super) const SO_FAR: &str = "Work so far";

impl RunContext<'_> {
    /// Checkpoints the work so far and returns the end of the run.
    pub(super) async fn postponed(
        &self,
        errand: &AgentAssignment<'_>,
        resets: Resets,
    ) -> Result<RunOutcome, EngineError> {
        let work = self.remains_or_alert(errand).await?;
        let limit = RateLimit { agent: errand.name.to_owned(), resets: over_at(resets), work };
        Ok(RunOutcome::Report(Box::new(Command::Postpone(self.run.clone(), Delay::RateLimit(limit)))))
    }

    /// Checkpoints the work so far at the end of a run that reached a limit. The proposal of a reviewer is a
    /// finished result.
    pub(super) async fn remains_or_alert(
        &self,
        errand: &AgentAssignment<'_>,
    ) -> Result<Remains<String>, EngineError> {
        let work = self.work_or_alert(errand, SO_FAR).await?;
        Ok(if errand.proposal.is_some() { Remains::Result(work) } else { Remains::Work(work) })
    }

    /// Checkpoints the work so far, like `work_so_far`. If that fails, emits an alert and keeps the work in
    /// its directory, so that the reason why the run ended is not lost.
    pub(super) async fn work_or_alert(
        &self,
        errand: &AgentAssignment<'_>,
        label: &'static str,
    ) -> Result<Option<String>, EngineError> {
        match self.work_so_far(errand, label).await {
            Ok(work) => Ok(work),
            Err(EngineError::Git(error)) if cannot_be_held(&error) => {
                self.kept_apart(&error).await.map(|()| None)
            }
            Err(error) => self.unkept(error).await.map(|()| None),
        }
    }

    /// Emits an alert that git could not keep the work. Returns any other error.
    pub(super) async fn unkept(&self, error: EngineError) -> Result<(), EngineError> {
        let EngineError::Git(error) = error else { return Err(error) };
        let (run, plan) = (&self.run, &self.plan.id);
        let text = format!(
            "the work of {run} of {plan} could not be kept as a checkpoint, so the next run starts without \
             it; its directory is kept: {}",
            error_chain(&error)
        );
        self.emit(Event::Alert { priority: "high", text }).await
    }

    /// Checkpoints the worktree and returns the commit from which the next run can continue. No run continues
    /// from a strategist's files, and a reviewer's proposal already is a commit.
    async fn work_so_far(
        &self,
        errand: &AgentAssignment<'_>,
        label: &'static str,
    ) -> Result<Option<String>, EngineError> {
        match (errand.role, errand.proposal) {
            (_, Some((_, commit))) => Ok(Some(commit.to_owned())),
            (AgentRole::Writer, None) => {
                let (checkout, from, plan) = (errand.checkout.clone(), self.from()?, self.plan.id.clone());
                let (repository, run) = (self.repository.clone(), self.run.clone());
                task::blocking(move || kept_work(&repository, &checkout, &from, (&plan, &run), label)).await
            }
            (AgentRole::Strategist | AgentRole::Reviewer, None) => Ok(None),
        }
    }
}

/// Checkpoints a worktree and returns the commit; `None` if the run changed nothing.
pub(super) fn kept_work(
    repository: &Repository,
    checkout: &Checkout,
    from: &CommitId,
    whose: (&PlanId, &RunId),
    label: &str,
) -> Result<Option<String>, EngineError> {
    let (plan, run) = (whose.0.as_str(), whose.1.as_str());
    let captured = checkout.capture_change(from, &kept_by(run, label, plan), &signature(repository))?;
    let Some(captured) = captured else { return Ok(None) };
    let kept = write_checkpoint(repository, plan, &captured)?;
    // `write_checkpoint` may have returned an earlier checkpoint with the same tree, which has another commit.
    let named = repository.refs(&kept)?.into_iter().find(|(name, _)| *name == kept);
    Ok(named.map(|(_, commit)| commit.to_string()))
}

/// Returns when a limit ends, by our clock; `None` if that is unknown.
fn over_at(resets: Resets) -> Option<Timestamp> {
    match resets {
        Resets::At { unix_ms } => Some(Timestamp::from_micros(unix_ms.saturating_mul(1000))),
        Resets::After(span) => {
            Some(clock::now().plus_ms(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)))
        }
        Resets::Unknown => None,
    }
}
