//! Drives a queued phase to its end: lock, start, run, report, release. Any process that gets the lock can do
//! this, so recovery is the same operation: a phase whose owner is gone is taken over and driven again.

use std::pin::Pin;

use drydock_domain::{
    Command, Delay, Effect, Enforcement, ErrorClass, Failure, NextPhase, Phase, Plan, PlanId, Project,
    Remains, Start, State, TakeOverCause, error_chain, next_effect,
};
use drydock_store::{HolderRequest, PhaseLimits, RequestKind};
use drydock_worktree::StopSignal;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::forget::forget_refs;
use super::ground::unreachable;
use super::pass::RunToken;
use super::printed::log_of;
use super::scope::{RunContext, RunOutcome};
use super::{agents, apply, execute, leftovers, strategize};
use crate::engine::{Engine, WORKER};
use crate::error::EngineError;
use crate::hold::PlanLockGuard;
use crate::rule::CommitRange;
use crate::steer::Caller;
use crate::subplan::{forget_joins, is_tended};
use crate::sync::{PlanSync, RunStart};
use crate::{task, trace, work_log};

type DriveFuture = Pin<Box<dyn Future<Output = Result<Plan, EngineError>> + Send>>;

/// Maximum number of times that one call judges commits which others added to the branch during its landing.
/// After that, the plan is left to the next command.
const REEXAMINATIONS_MAX: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DriveUntil {
    PhaseEnds,
    WorkEnds,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StopCause {
    Nothing,
    LockLost,
    Interrupted,
    CancelAsked,
}

impl Engine {
    /// Drives this phase of a plan to its end in this process, if the phase is queued or its owner is gone. A
    /// plan in another phase or state is returned unchanged. A lock held by another process is a conflict.
    pub fn drive(&self, plan: PlanId, phase: Phase) -> DriveFuture {
        self.drive_until(plan, phase, DriveUntil::PhaseEnds)
    }

    /// Like `Engine::drive`, for a worker that claimed the plan: a plan without a strategist continues to
    /// Execute under the same lock.
    pub(crate) fn drive_claimed(&self, plan: PlanId, phase: Phase) -> DriveFuture {
        self.drive_until(plan, phase, DriveUntil::WorkEnds)
    }

    fn drive_until(&self, plan: PlanId, phase: Phase, until: DriveUntil) -> DriveFuture {
        let engine = self.clone();
        Box::pin(async move {
            let stored = engine.load_plan(&plan).await?;
            if stored.stage.phase() == phase && is_tended(&stored) {
                let stored = engine.drive_tree(&stored).await?;
                if is_tended(&stored) {
                    return Ok(stored);
                }
            }
            let mut hold = engine.lock_plan(&plan, "drive a phase").await?;
            hold.listen();
            let mut driven = engine.drive_traced(&hold, &plan, phase).await;
            if let (DriveUntil::WorkEnds, Ok(strategized)) = (until, &driven)
                && let Some(worked) = engine.continue_to_execute(&hold, strategized).await
            {
                driven = worked;
            }
            if phase == Phase::Apply {
                driven = engine.judge_again(&hold, driven).await;
            }
            engine.hold_for_person(&hold, &plan).await;
            hold.release().await;
            driven
        })
    }

    /// Continues a plan whose landing found commits of others on its branch: judges them, and lands if no
    /// decision is needed.
    async fn judge_again(
        &self,
        hold: &PlanLockGuard,
        mut driven: Result<Plan, EngineError>,
    ) -> Result<Plan, EngineError> {
        for _ in 0..REEXAMINATIONS_MAX {
            let plan = match &driven {
                Ok(plan) if plan.reexamines => plan,
                Ok(_) | Err(_) => break,
            };
            if hold.cancel_asked().is_cancelled() || self.stopping().is_cancelled() {
                break;
            }
            hold.tally().end();
            let judged = self.drive_traced(hold, &plan.id, Phase::Execute).await?;
            if next_effect(&judged) != Some(Effect::AdvanceToApply) {
                return Ok(judged);
            }
            hold.tally().end();
            self.advance_held(hold, &judged.id, NextPhase::Apply, None, &Caller::worker()).await?;
            driven = self.drive_traced(hold, &judged.id, Phase::Apply).await;
        }
        driven
    }

    async fn drive_traced(
        &self,
        hold: &PlanLockGuard,
        id: &PlanId,
        phase: Phase,
    ) -> Result<Plan, EngineError> {
        let span = trace::run(id);
        let driven = self.drive_held(hold, id, phase).instrument(span.clone()).await;
        trace::ended(&span, &driven);
        driven
    }

    /// Continues a plan without a strategist to Execute, as the next claim would. Returns `None` if the plan
    /// does not continue automatically.
    async fn continue_to_execute(
        &self,
        hold: &PlanLockGuard,
        plan: &Plan,
    ) -> Option<Result<Plan, EngineError>> {
        let at_once =
            plan.spec.agents.strategize.is_none() && next_effect(plan) == Some(Effect::AdvanceToExecute);
        let stops = || hold.cancel_asked().is_cancelled() || self.stopping().is_cancelled();
        if !at_once || stops() {
            return None;
        }
        // The usage of the ended run is already recorded.
        hold.tally().end();
        let caller = Caller::worker();
        let advanced = self.advance_held(hold, &plan.id, NextPhase::Execute, None, &caller).await;
        let begins = |plan: &Plan| next_effect(plan) == Some(Effect::DrivePhase(Phase::Execute));
        // Limits on concurrent phases are enforced when work is claimed, so with limits Execute is left to
        // the next claim.
        let unlimited = self.settings().limits == PhaseLimits::default();
        match advanced {
            Ok(plan) if begins(&plan) && unlimited && !stops() => {
                Some(self.drive_traced(hold, &plan.id, Phase::Execute).await)
            }
            advanced => Some(advanced),
        }
    }

    async fn drive_held(&self, hold: &PlanLockGuard, id: &PlanId, phase: Phase) -> Result<Plan, EngineError> {
        let plan = self.load_plan(id).await?;
        if plan.stage.phase() != phase {
            return Ok(plan);
        }
        let plan = match plan.stage.state() {
            State::Queued => plan,
            // This process holds the lock, so the process that ran the phase is gone.
            State::Processing => {
                self.recover_usage(hold, &plan).await?;
                let taken_over = self.taken_over(hold, &plan).await?;
                let plan = self.issue(hold, taken_over, WORKER).await?.plan;
                // After too many interruptions a person is asked first.
                if plan.gate.is_some() {
                    return Ok(plan);
                }
                plan
            }
            State::Waiting
            | State::Complete
            | State::Errored
            | State::Cancelled
            | State::Applied
            | State::Constrained => return Ok(plan),
        };
        if plan.stage.phase() != Phase::Apply
            && let Some(asking) = self.ask_for_budget(hold, &plan).await?
        {
            return Ok(asking);
        }
        let project = self.project(plan.spec.project.as_str()).await?;
        let repository = self.repository(&project).await?.on_behalf(id.as_str(), hold.lease().fence());
        let stop = CancellationToken::new();
        let (asked, stopping) = (stop.clone(), self.stopping().clone());
        let is_asked = move || asked.is_cancelled() || stopping.is_cancelled();
        let repository = repository.stopped_by(StopSignal::new(is_asked));
        let together =
            PlanSync { engine: self, hold, plan: &plan, project: &project, repository: &repository };
        let begin = match together.sync_before().await {
            Ok(RunStart::At { from, replaces }) => (from, replaces),
            Ok(RunStart::Diverged(plan) | RunStart::Reexamined(plan)) => return Ok(*plan),
            Err(error) => return self.wait_to_land(hold, &plan, &project, error).await,
        };
        if makes_directory(&plan) {
            leftovers::clear_earlier_runs(self, hold, &plan, &repository).await?;
        }
        let plan = self.start(hold, plan, &project, begin).await?;
        let run = plan.run.clone().expect("a started plan has a run");
        trace::began(&plan, &run);
        if plan.stage.phase() != Phase::Apply {
            hold.tally().begin(run.clone());
        }
        let permits = plan.grants.iter().map(agents::permitted).collect();
        let (pass, log) = (RunToken::new(), log_of(self, &plan, &run));
        let scope =
            RunContext { engine: self, hold, plan, project, repository, run, stop, pass, permits, log };
        let started = work_log::started(&scope.plan, &scope.run);
        let driven = self.finish(hold, scope).await;
        started.ended(&driven);
        driven
    }

    /// Postpones a landing that could not start because its remote did not answer. Returns any other error.
    async fn wait_to_land(
        &self,
        hold: &PlanLockGuard,
        plan: &Plan,
        project: &Project,
        error: EngineError,
    ) -> Result<Plan, EngineError> {
        let (EngineError::Unsynced { outcome }, Phase::Apply, Some(run)) =
            (&error, plan.stage.phase(), &plan.run)
        else {
            return Err(error);
        };
        let Some(away) = unreachable(project, outcome) else { return Err(error) };
        let postpone = Command::Postpone(run.clone(), Delay::remote(plan, away));
        Ok(self.issue(hold, postpone, WORKER).await?.plan)
    }

    /// Returns the enforcement for a phase that would start at this commit. Only Strategize is checked here:
    /// later phases were checked when they were queued.
    pub(crate) async fn enforce_start(
        &self,
        plan: &Plan,
        project: &Project,
        base: &str,
    ) -> Result<Enforcement, EngineError> {
        match plan.stage.phase() {
            phase @ Phase::Strategize => {
                let mut at_base = plan.clone();
                base.clone_into(&mut at_base.base_commit);
                let subject = CommitRange::of(&at_base)?;
                self.enforce(&at_base, project, phase, subject, self.stopping()).await
            }
            phase @ (Phase::Execute | Phase::Apply) => Ok(Enforcement::nothing(phase)),
        }
    }

    async fn start(
        &self,
        hold: &PlanLockGuard,
        plan: Plan,
        project: &Project,
        (from, replaces): (Option<String>, Option<String>),
    ) -> Result<Plan, EngineError> {
        let phase = plan.stage.phase();
        // The parent sets the base of a subplan.
        let base = match plan.place {
            Some(_) => plan.base_commit.clone(),
            None if phase == Phase::Strategize => {
                self.base_for(hold, project, plan.target(project), from.as_deref()).await?
            }
            // Later phases keep the base of Strategize.
            None => plan.base_commit.clone(),
        };
        let enforcement = match plan.gate {
            None => self.enforce_start(&plan, project, &base).await?,
            // The state machine refuses to start a plan with an open gate.
            Some(_) => Enforcement::nothing(phase),
        };
        let start = Start { run: self.fresh_run(), base, from, replaces, enforcement };
        Ok(self.issue(hold, Command::Start(start), WORKER).await?.plan)
    }

    /// Runs the phase, watches for reasons to stop, and commits how the run ended.
    async fn finish(&self, hold: &PlanLockGuard, scope: RunContext<'_>) -> Result<Plan, EngineError> {
        let mut cause = StopCause::Nothing;
        if makes_directory(&scope.plan) {
            scope.begin_log().await?;
        }
        let ended = {
            let body = run(&scope);
            tokio::pin!(body);
            loop {
                let open = cause == StopCause::Nothing;
                tokio::select! {
                    ended = &mut body => break ended,
                    () = hold.lost().cancelled(), if open => cause = StopCause::LockLost,
                    () = self.stopping().cancelled(), if open => cause = StopCause::Interrupted,
                    () = hold.cancel_asked().cancelled(), if open => cause = StopCause::CancelAsked,
                }
                scope.stop.cancel();
            }
        };
        if cause != StopCause::LockLost {
            scope.finish_log().await;
        }
        scope.forget_pass().await;
        let directory = scope.directory();
        task::blocking(move || leftovers::forget_home(&directory)).await;
        if cause != StopCause::LockLost {
            scope.restore_links().await;
        }
        let id = &scope.plan.id;
        let mut caller = Caller::worker();
        let command = match (ended, cause) {
            (_, StopCause::LockLost) => return Err(EngineError::LeaseLost { key: id.to_string() }),
            (Ok(RunOutcome::Recorded), _) => {
                if scope.plan.fanout.is_some() {
                    forget_joins(&scope.repository, id).await;
                }
                // A landed plan no longer needs its run directories. If removing them fails, `gc` does it
                // later.
                if let Err(error) =
                    leftovers::clear_earlier_runs(self, hold, &scope.plan, &scope.repository).await
                {
                    tracing::warn!(plan = %id, error = %error_chain(&error), "could not remove the directories of a landed plan");
                }
                let applied = self.load_plan(id).await?;
                forget_refs(&applied, &scope.project, &scope.repository).await;
                return Ok(applied);
            }
            (Ok(RunOutcome::Report(command)), _) => *command,
            (Ok(RunOutcome::Stopped) | Err(EngineError::Interrupted), StopCause::CancelAsked) => {
                let requested = self.cancel_requested(hold, &scope).await?;
                caller = requested.1;
                requested.0
            }
            (
                Ok(RunOutcome::Stopped) | Err(EngineError::Interrupted),
                StopCause::Nothing | StopCause::Interrupted,
            ) => self.handed_back(hold, &scope.plan, &scope.repository).await?,
            (Err(error @ (EngineError::LeaseLost { .. } | EngineError::Store(_))), _) => return Err(error),
            // Another landing takes long; that is not a failure of this plan.
            (Err(error @ EngineError::LockHeld { .. }), _) => {
                self.issue(hold, Command::TakeOver(TakeOverCause::Interrupted, Remains::Work(None)), WORKER)
                    .await?;
                return Err(error);
            }
            (Err(error), _) => failure(&scope, &error),
        };
        let diverges = matches!(command, Command::Diverge(_));
        let plan = hold
            .retry_while_store_away(self.stopping(), || self.issue(hold, command.clone(), &caller))
            .await?
            .plan;
        if diverges {
            scope.together().clear_recovery().await;
        }
        Ok(plan)
    }

    /// Returns the command of a request to cancel, and its caller. The holder commits in the caller's place
    /// (N5).
    async fn cancel_requested(
        &self,
        hold: &PlanLockGuard,
        scope: &RunContext<'_>,
    ) -> Result<(Command, Caller), EngineError> {
        let Some(HolderRequest { kind, reason, by, via, authority }) =
            self.store().request_fetch(&scope.plan.id).await?
        else {
            let command = self.handed_back(hold, &scope.plan, &scope.repository).await?;
            return Ok((command, Caller::worker()));
        };
        Ok(match kind {
            RequestKind::Cancel => {
                (Command::Cancel { reason }, Caller { by, via, authority, expected: None })
            }
            RequestKind::CancelBelow => {
                (Command::CancelBelow { reason, ended_by: authority }, Caller::worker())
            }
        })
    }
}

/// Returns true if the next run of a plan needs a run directory. Strategize without an agent needs none, and
/// directories of earlier runs stay until a run needs one.
fn makes_directory(plan: &Plan) -> bool {
    plan.stage.phase() != Phase::Strategize || plan.spec.agents.strategize.is_some()
}

async fn run(scope: &RunContext<'_>) -> Result<RunOutcome, EngineError> {
    match scope.plan.stage.phase() {
        Phase::Strategize => strategize::run(scope).await,
        Phase::Execute => execute::run(scope).await,
        Phase::Apply => apply::run(scope).await,
    }
}

/// Returns the failure that a run reports for an error. The text includes the causes of the error.
fn failure(scope: &RunContext<'_>, error: &EngineError) -> Command {
    let text = error_chain(error);
    let class = match error {
        EngineError::File { .. } => ErrorClass::Filesystem,
        EngineError::Git(_) | EngineError::Repository(_) | EngineError::Unsynced { .. } => ErrorClass::Git,
        EngineError::Diverged { .. } => ErrorClass::Diverged,
        EngineError::Absent(_)
        | EngineError::Invalid { .. }
        | EngineError::NoAgent { .. }
        | EngineError::Refused(_)
        | EngineError::StaleRevision { .. }
        | EngineError::Ambiguous { .. }
        | EngineError::Exists { .. }
        | EngineError::InUse { .. }
        | EngineError::BackupNeeded { .. }
        | EngineError::BackupGone { .. }
        // These end a run in other ways and do not reach this function.
        | EngineError::LockHeld { .. }
        | EngineError::LeaseLost { .. }
        | EngineError::Interrupted
        | EngineError::Store(_) => ErrorClass::Inconsistent,
    };
    Command::Fail(scope.run.clone(), Failure::new(class, text), None)
}
