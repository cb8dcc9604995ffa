//! Requests of a person: to sync, or to adopt the draft in the worktree as the strategy. Both sync first, and
//! a sync that is not clean changes nothing else.

use std::io::ErrorKind;
use std::path::Path;

use drydock_agent::read_below;
use drydock_domain::{
    Command, Decided, Decision, DecisionKind, DecisionStatus, Phase, Plan, PlanId, Refusal, State,
    StoredPlan, SyncOutcome, SyncStatus, admit, decide,
};

use super::together::PlanSync;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::hold::PlanLockGuard;
use crate::steer::Caller;
use crate::subplan::fanout_of;
use crate::task;
use crate::tree::{self, DRAFT};

/// The result of a sync that a person requested.
#[derive(Debug, Clone)]
pub struct SyncResult {
    /// The outcome of the sync.
    pub outcome: SyncOutcome,
    /// The plan after the sync.
    pub plan: Plan,
    /// The open decision, if the branch diverged.
    pub decision: Option<Decision>,
}

impl Engine {
    /// Syncs a plan's branch with its remote.
    pub async fn sync(&self, plan: &PlanId, caller: &Caller) -> Result<SyncResult, EngineError> {
        let hold = self.lock_idle_plan(plan, "sync").await?;
        let done = self.sync_held(&hold, plan, caller).await;
        hold.release().await;
        done
    }

    async fn sync_held(
        &self,
        hold: &PlanLockGuard,
        id: &PlanId,
        caller: &Caller,
    ) -> Result<SyncResult, EngineError> {
        let plan = self.expected(id, caller).await?;
        let pending = self.pending(&plan).await?;
        let snapshot = StoredPlan { plan, pending };
        // Decided before anything is read: a sync moves the branch before it can be committed.
        let judged = decide(&snapshot, Command::Sync, &self.context(caller.into()));
        let StoredPlan { plan, pending } = snapshot;
        let (Decided::Already | Decided::Change(_)) = judged?;
        if let Some(decision) = &pending
            && set_aside_commits(decision)
        {
            return Err(EngineError::Diverged { decision: Box::new(decision.clone()) });
        }
        let (outcome, diverged) = self.sync_asked(hold, &plan, caller).await?;
        let waits = pending.is_some_and(|decision| decision.question.kind == DecisionKind::Divergence)
            && plan.stage.state() == State::Waiting;
        let plan = match (diverged, outcome.standing()) {
            (Some(plan), _) => plan,
            (None, SyncStatus::Settled) if waits => {
                let reconcile = Command::Reconcile(Box::new(outcome.clone()));
                self.issue(hold, reconcile, caller).await?.plan
            }
            (None, SyncStatus::Settled | SyncStatus::Unsettled | SyncStatus::Diverged) => {
                self.load_plan(id).await?
            }
        };
        let decision = match outcome.standing() {
            SyncStatus::Diverged => self.pending(&plan).await?,
            // The plan still waits for a person's answer, though the divergence is resolved.
            SyncStatus::Settled if waits => self.pending(&plan).await?,
            SyncStatus::Settled | SyncStatus::Unsettled => None,
        };
        Ok(SyncResult { outcome, plan, decision })
    }

    /// Adopts the draft in the worktree as the strategy of the plan. A sync that is not clean adopts nothing
    /// (S4.6).
    pub async fn adopt(&self, plan: &PlanId, caller: &Caller) -> Result<Plan, EngineError> {
        let hold = self.lock_idle_plan(plan, "adopt a strategy").await?;
        let done = self.adopt_held(&hold, plan, caller).await;
        hold.release().await;
        done
    }

    async fn adopt_held(
        &self,
        hold: &PlanLockGuard,
        id: &PlanId,
        caller: &Caller,
    ) -> Result<Plan, EngineError> {
        let plan = self.expected(id, caller).await?;
        let adopt = Command::Adopt { choices: Vec::new(), fanout: None };
        admit(&plan, &adopt, caller.authority)?;
        if let Some(decision) = self.pending(&plan).await?
            && decision.question.kind == DecisionKind::Divergence
        {
            return Err(EngineError::Diverged { decision: Box::new(decision) });
        }
        let (phase, state) = (plan.stage.phase(), plan.stage.state());
        match (phase, state) {
            (Phase::Strategize, State::Queued | State::Waiting | State::Complete | State::Errored) => {}
            (Phase::Strategize | Phase::Execute | Phase::Apply, _) => {
                return Err(Refusal::WrongStage { command: "adopt a strategy for", phase, state }.into());
            }
        }
        let (outcome, diverged) = self.sync_asked(hold, &plan, caller).await?;
        if let Some(plan) = diverged {
            let decision = self.pending(&plan).await?;
            let mut decision = decision.ok_or_else(|| EngineError::absent("open decision of", &plan.id))?;
            // If another question is open, it must be answered first; the divergence is reported all the
            // same.
            if let Some(divergence) = outcome.divergence() {
                decision.question.details = divergence.details();
            }
            return Err(EngineError::Diverged { decision: Box::new(decision) });
        }
        match outcome.standing() {
            SyncStatus::Settled => {}
            SyncStatus::Unsettled | SyncStatus::Diverged => {
                return Err(EngineError::Unsynced { outcome: Box::new(outcome) });
            }
        }
        let draft = self.draft_of(&plan).await?;
        let fanout = fanout_of(self, &plan, &draft).await?.map_err(unadoptable)?;
        let choices = tree::join(Vec::new(), draft.choices).map_err(unadoptable)?;
        Ok(self.issue(hold, Command::Adopt { choices, fanout }, caller).await?.plan)
    }

    async fn sync_asked(
        &self,
        hold: &PlanLockGuard,
        plan: &Plan,
        caller: &Caller,
    ) -> Result<(SyncOutcome, Option<Plan>), EngineError> {
        let project = self.project(plan.spec.project.as_str()).await?;
        let repository = self.repository(&project).await?;
        let repository = repository.on_behalf(plan.id.as_str(), hold.lease().fence());
        let together = PlanSync { engine: self, hold, plan, project: &project, repository: &repository };
        together.sync_requested(caller).await
    }

    /// Reads the draft in the directory of the latest run, written by the run or by a person.
    async fn draft_of(&self, plan: &Plan) -> Result<tree::StrategyDraft, EngineError> {
        let missing = || {
            EngineError::invalid(
                format!("the worktree of {} has no {DRAFT}", plan.id),
                format!("run `drydock plan strategize {}`, or write the file in its worktree", plan.id),
            )
        };
        // A run of another phase has no draft for this one.
        let (Some(run), Some(_)) = (&plan.run, plan.phase_started_at) else { return Err(missing()) };
        let root = self.settings().worktrees.join(plan.id.as_str()).join(run.as_str());
        let tree = root.join("tree");
        let text = match task::blocking(move || read_below(&tree, Path::new(DRAFT))).await {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Err(missing()),
            Err(source) => return Err(EngineError::File { attempt: format!("read {DRAFT}"), source }),
        };
        tree::parse(&text).map_err(unadoptable)
    }

    async fn pending(&self, plan: &Plan) -> Result<Option<Decision>, EngineError> {
        let snapshot = self.store().plan_snapshot(&plan.id).await?;
        Ok(snapshot.and_then(|snapshot| snapshot.pending).filter(|it| it.status == DecisionStatus::Open))
    }
}

fn unadoptable(reason: String) -> EngineError {
    EngineError::invalid(reason, "fix the draft, then adopt it")
}

/// Returns true if the decision is about commits that were already removed from the branch. A person must
/// acknowledge them first.
fn set_aside_commits(decision: &Decision) -> bool {
    decision.question.kind == DecisionKind::Divergence
        && decision.question.details["outcome"] == "recovered_by_reset"
}
