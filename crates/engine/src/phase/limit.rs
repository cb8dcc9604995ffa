//! A run that an agent's rate limit cuts short: its work is kept, and the phase waits for the limit to be over.

use drydock_agent::Resets;
use drydock_domain::{Command, Delay, Event, PlanId, RateLimit, RunId, Timestamp, told};
use drydock_worktree::{Checkout, CommitId, Repository};

use super::agents::{Errand, Role};
use super::remains::cannot_be_held;
use super::scope::{End, Scope, kept_by, signature, snapshot};
use crate::error::EngineError;
use crate::{clock, task};

/// What the work of a run that was cut short is called.
pub(super) const SO_FAR: &str = "Work so far";

impl Scope<'_> {
    /// Keeps the work so far, and returns the end of the run.
    pub(super) async fn postponed(&self, errand: &Errand<'_>, resets: Resets) -> Result<End, EngineError> {
        let work = self.work_or_alert(errand, SO_FAR).await?;
        let limit = RateLimit { agent: errand.name.to_owned(), resets: over_at(resets), work };
        Ok(End::Report(Box::new(Command::Postpone(self.run.clone(), Delay::RateLimit(limit)))))
    }

    /// Keeps the work so far, as `work_so_far` does. Work that cannot be kept is told and stays in its directory: that is
    /// no reason to lose why the run ended.
    pub(super) async fn work_or_alert(
        &self,
        errand: &Errand<'_>,
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

    /// Tells that git could not keep the work; any other error is one.
    pub(super) async fn unkept(&self, error: EngineError) -> Result<(), EngineError> {
        let EngineError::Git(error) = error else { return Err(error) };
        let (run, plan) = (&self.run, &self.plan.id);
        let text = format!(
            "the work of {run} of {plan} could not be kept as a snapshot, so the next run begins without it; its \
             directory is kept: {}",
            told(&error)
        );
        self.note(Event::Alert { priority: "high", text }).await
    }

    /// Keeps what is in the worktree, and returns the commit that the next run can go on with. A strategist leaves
    /// nothing to go on with, and what a reviewer has before it is kept already.
    async fn work_so_far(
        &self,
        errand: &Errand<'_>,
        label: &'static str,
    ) -> Result<Option<String>, EngineError> {
        match (errand.role, errand.proposal) {
            (_, Some((_, commit))) => Ok(Some(commit.to_owned())),
            (Role::Writer, None) => {
                let (checkout, from, plan) = (errand.checkout.clone(), self.from()?, self.plan.id.clone());
                let (repository, run) = (self.repository.clone(), self.run.clone());
                task::blocking(move || kept_work(&repository, &checkout, &from, (&plan, &run), label)).await
            }
            (Role::Strategist | Role::Reviewer, None) => Ok(None),
        }
    }
}

/// Keeps a worktree as a snapshot, and returns its commit; nothing when it is as the run found it.
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
    let kept = snapshot(repository, plan, &captured)?;
    // Where the same tree was kept before, it is that snapshot which keeps it.
    let named = repository.refs(&kept)?.into_iter().find(|(name, _)| *name == kept);
    Ok(named.map(|(_, commit)| commit.to_string()))
}

/// Returns when a limit is over, by our clock; nothing where nobody says.
fn over_at(resets: Resets) -> Option<Timestamp> {
    match resets {
        Resets::At { unix_ms } => Some(Timestamp::from_micros(unix_ms.saturating_mul(1000))),
        Resets::After(span) => {
            Some(clock::now().plus_ms(i64::try_from(span.as_millis()).unwrap_or(i64::MAX)))
        }
        Resets::Unknown => None,
    }
}
