//! Workers claim due effects from the outbox and perform them. Recovery is the same loop: when the lock and
//! the claim of a dead process have expired, its work becomes due again, until the plan is terminal or waits
//! for a person.

use std::time::Duration;

use drydock_domain::{Command, Effect, NextPhase, Obstacle, Refusal, Timestamp, error_chain};
use drydock_store::{ClaimRequest, EffectClaim};

use crate::absent::cannot_open;
use crate::engine::{Engine, WORKER};
use crate::error::EngineError;
use crate::steer::Caller;
use crate::subplan::ScheduleOutcome;
use crate::{clock, task, work_log};

/// How long an idle worker waits for a wake before it polls.
const IDLE_MAX: Duration = Duration::from_secs(2);
/// The longest interval between two scheduling passes over a plan's subplans if nothing makes one due
/// earlier.
const TEND_AGAIN_MAX: Duration = Duration::from_secs(60);
/// The first delay before a retry; it doubles up to the last.
const BACK_OFF_FIRST: Duration = Duration::from_secs(1);
const BACK_OFF_LAST: Duration = Duration::from_secs(60);
/// After how many attempts a person is asked.
const ATTEMPTS_MAX: i64 = 5;

impl Engine {
    /// Runs `count` workers until [`Engine::stopping`] is cancelled; each worker then leaves its plan
    /// resumable.
    pub async fn work(&self, count: usize) {
        if count > 0 {
            self.identity().works();
        }
        let workers: Vec<_> = (0..count)
            .map(|number| {
                let engine = self.clone();
                // Only the first worker looks for processes that have exited.
                task::start("worker", async move { engine.work_on(number == 0).await })
            })
            .collect();
        for worker in workers {
            if let Err(error) = worker.await {
                tracing::error!(error = %error_chain(&error), "a worker panicked");
            }
        }
    }

    /// Restarts a worker that panicked; its plan is taken over like any other.
    async fn work_on(&self, sweeps: bool) {
        while !self.stopping().is_cancelled() {
            let engine = self.clone();
            if let Err(error) =
                task::start("worker loop", async move { engine.work_alone(sweeps).await }).await
            {
                tracing::error!(error = %error_chain(&error), "a worker panicked and is restarted");
            }
        }
    }

    async fn work_alone(&self, sweeps: bool) {
        let mut watch = self.store().watch();
        if sweeps {
            self.free_gone_or_say().await;
        }
        let owner = self.identity().holder("work").owner;
        while !self.stopping().is_cancelled() {
            let (ttl, limits) = (self.settings().lock_ttl, self.settings().limits);
            let (process, without) = (Some(self.identity().process()), self.left_alone().names());
            let order = ClaimRequest { owner: &owner, process, ttl, root: None, limits, without: &without };
            match self.store().effect_claim_within(&order).await {
                // `perform` fails only if this process cannot open the project. The claim is already
                // returned, so other workers can take it.
                Ok(Some(claim)) => self.perform(claim).await.ok().unwrap_or_default(),
                Ok(None) => {
                    self.idle(&mut watch).await;
                    if sweeps {
                        self.free_gone_or_say().await;
                    }
                }
                Err(error) => {
                    tracing::warn!(error = %error_chain(&error), "could not query for work");
                    self.idle(&mut watch).await;
                }
            }
        }
    }

    pub(crate) async fn idle(&self, watch: &mut drydock_store::Watch) {
        tokio::select! {
            () = watch.changed(IDLE_MAX) => {}
            () = self.stopping().cancelled() => {}
        }
    }

    /// Performs a claimed effect. Work that cannot be done now is deferred; a lasting obstacle opens a
    /// question. Fails only if the project cannot be opened here; the claim is then returned.
    pub(crate) async fn perform(&self, claim: EffectClaim) -> Result<(), EngineError> {
        work_log::claimed(&claim);
        let done = match claim.effect {
            Effect::DrivePhase(phase) => self.drive_claimed(claim.plan.clone(), phase).await.map(drop),
            Effect::Tend => return self.perform_tending(&claim).await,
            Effect::AdvanceToExecute => self.advance_unasked(&claim, NextPhase::Execute).await,
            Effect::AdvanceToApply => self.advance_unasked(&claim, NextPhase::Apply).await,
        };
        let Err(error) = done else { return Ok(()) };
        if cannot_open(&error) {
            self.leave_alone(&claim, &error)
                .await
                .unwrap_or_else(|failure| put_back_failed(&claim, &failure));
            return Err(error);
        }
        let delay = match after_failure(&error, claim.attempts) {
            AfterFailure::Later(delay) => delay,
            AfterFailure::Person => match self.hold_back(&claim, &error).await {
                Ok(()) => return Ok(()),
                Err(failure) => {
                    tracing::warn!(plan = %claim.plan, error = %error_chain(&failure), "could not ask a person");
                    back_off(claim.attempts)
                }
            },
        };
        tracing::info!(plan = %claim.plan, error = %error_chain(&error), delay_s = delay.as_secs(), "not possible now; trying again later");
        self.put_back(&claim, delay).await;
        Ok(())
    }

    async fn put_back(&self, claim: &EffectClaim, delay: Duration) {
        if let Err(error) = self.store().effect_defer(claim, delay).await {
            put_back_failed(claim, &error.into());
        }
    }

    /// Schedules subplans. If nothing can be done now, the effect is due again when a subplan changes or when
    /// the next attempt is due.
    async fn perform_tending(&self, claim: &EffectClaim) -> Result<(), EngineError> {
        let delay = match self.schedule_subplans(&claim.plan).await {
            Ok(ScheduleOutcome::Moved) => return Ok(()),
            Ok(ScheduleOutcome::Rests(None)) => TEND_AGAIN_MAX,
            Ok(ScheduleOutcome::Rests(Some(at))) => until(at).min(TEND_AGAIN_MAX),
            Err(error) if cannot_open(&error) => {
                self.leave_alone(claim, &error)
                    .await
                    .unwrap_or_else(|failure| put_back_failed(claim, &failure));
                return Err(error);
            }
            Err(error) => {
                tracing::info!(plan = %claim.plan, error = %error_chain(&error), "could not schedule subplans now");
                back_off(claim.attempts)
            }
        };
        self.put_back(claim, delay).await;
        Ok(())
    }

    async fn advance_unasked(&self, claim: &EffectClaim, to: NextPhase) -> Result<(), EngineError> {
        let hold = self.lock_plan(&claim.plan, "start the next phase").await?;
        let done = self.advance_held(&hold, &claim.plan, to, None, &Caller::worker()).await;
        hold.release().await;
        done.map(drop)
    }

    /// Opens a gate that names the obstacle, so that the plan waits for a person instead of retrying forever.
    async fn hold_back(&self, claim: &EffectClaim, met: &EngineError) -> Result<(), EngineError> {
        let hold = self.lock_plan(&claim.plan, "ask a person").await?;
        let done = self.issue(&hold, Command::HoldBack(obstacle(met)), WORKER).await;
        hold.release().await;
        done.map(drop)
    }
}

fn put_back_failed(claim: &EffectClaim, error: &EngineError) {
    tracing::warn!(plan = %claim.plan, error = %error_chain(error), "could not return work; its claim expires");
}

/// Returns the obstacle for the question to a person.
fn obstacle(met: &EngineError) -> Obstacle {
    match met {
        EngineError::Refused(Refusal::NothingChanged) => Obstacle::NothingChanged,
        other => Obstacle::Obstacle(error_chain(other)),
    }
}

/// How to continue after an effect failed.
enum AfterFailure {
    Later(Duration),
    Person,
}

fn after_failure(error: &EngineError, attempts: i64) -> AfterFailure {
    match error {
        EngineError::LockHeld { .. } => AfterFailure::Later(BACK_OFF_FIRST),
        EngineError::Refused(Refusal::Blocked(_) | Refusal::NothingChanged) => AfterFailure::Person,
        // The plan changed since the claim; the outbox has the effect that is due now.
        EngineError::Refused(_) => AfterFailure::Later(back_off(attempts)),
        error if error.is_transient() || attempts < ATTEMPTS_MAX => AfterFailure::Later(back_off(attempts)),
        _ => AfterFailure::Person,
    }
}

fn until(at: Timestamp) -> Duration {
    let micros = at.as_micros().saturating_sub(clock::now().as_micros());
    Duration::from_micros(u64::try_from(micros).unwrap_or(0))
}

fn back_off(attempts: i64) -> Duration {
    let doublings = u32::try_from(attempts.clamp(0, 16)).unwrap_or(0);
    BACK_OFF_FIRST.saturating_mul(2_u32.saturating_pow(doublings)).min(BACK_OFF_LAST)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks when the question about an obstacle does not contain its cause.
    #[test]
    fn a_question_about_an_obstacle_names_its_cause() {
        let source = std::io::Error::other("no space left");
        let Obstacle::Obstacle(text) =
            obstacle(&EngineError::File { attempt: "make a directory".to_owned(), source })
        else {
            panic!("it is not an obstacle");
        };
        assert_eq!(text, "could not make a directory: no space left");
    }
}
