//! Drives a tree of plans in the foreground: worker loops claim effects of the tree from the outbox, like
//! other workers, until nothing in the tree continues automatically. The number of loops is the number of
//! subplans that may run at the same time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use drydock_domain::{ChildState, DecisionId, Effect, Plan, PlanId, Refusal};
use drydock_store::{BoxFuture, ClaimRequest};
use futures_util::future::join_all;

use super::tend::is_tended;
use crate::clock;
use crate::engine::Engine;
use crate::error::EngineError;

/// Maximum number of worker loops in a foreground process.
const HANDS_MAX: usize = 16;

/// Counts a worker loop as busy while it looks for work or does it, until this is dropped.
struct BusyGuard<'a>(&'a AtomicUsize);

impl<'a> BusyGuard<'a> {
    fn begin(busy: &'a AtomicUsize) -> Self {
        busy.fetch_add(1, Ordering::SeqCst);
        Self(busy)
    }
}

impl Drop for BusyGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Engine {
    /// Works on the tree of a plan with open subplans until all are settled or a person is needed.
    pub(crate) async fn drive_tree(&self, plan: &Plan) -> Result<Plan, EngineError> {
        let parallel = plan.fanout.as_ref().map_or(1, |fanout| fanout.max_parallel as usize);
        let busy = AtomicUsize::new(0);
        let hands = (0..parallel.clamp(1, HANDS_MAX)).map(|_| self.worker_loop(plan, &busy));
        for done in join_all(hands).await {
            done?;
        }
        if self.stopping().is_cancelled() {
            return Err(EngineError::Interrupted);
        }
        let plan = self.load_plan(&plan.id).await?;
        match self.asking(plan.id.clone()).await? {
            Some(decision) if is_tended(&plan) => {
                let command = "its subplans continue";
                Err(Refusal::Undecided { command, decision }.into())
            }
            Some(_) | None => Ok(plan),
        }
    }

    /// Returns the first open decision of a subplan, at any depth.
    pub(crate) fn asking(&self, plan: PlanId) -> BoxFuture<'_, Result<Option<DecisionId>, EngineError>> {
        Box::pin(async move {
            for child in self.store().plan_children(&plan).await? {
                if let Some(decision) = child.pending_decision() {
                    return Ok(Some(decision.clone()));
                }
                if is_tended(&child)
                    && let Some(decision) = self.asking(child.id.clone()).await?
                {
                    return Ok(Some(decision));
                }
            }
            Ok(None)
        })
    }

    async fn worker_loop(&self, plan: &Plan, busy: &AtomicUsize) -> Result<(), EngineError> {
        let mut watch = self.store().watch();
        let owner = self.identity().holder("work on subplans").owner;
        while !self.stopping().is_cancelled() {
            let order = ClaimRequest {
                owner: &owner,
                process: Some(self.identity().process()),
                ttl: self.settings().lock_ttl,
                root: Some(&plan.root),
                limits: self.settings().limits,
                without: &[],
            };
            let turn = BusyGuard::begin(busy);
            match self.store().effect_claim_within(&order).await? {
                // The caller of `drive_tree` continues the plan after its subplans.
                Some(claim) if claim.plan == plan.id && claim.effect != Effect::Tend => {
                    self.store().effect_defer(&claim, Duration::ZERO).await?;
                    return Ok(());
                }
                Some(claim) => {
                    self.perform(claim).await?;
                    continue;
                }
                None => drop(turn),
            }
            let all_idle = busy.load(Ordering::SeqCst) == 0;
            if all_idle && !self.goes_on(plan.id.clone()).await? {
                return Ok(());
            }
            self.idle(&mut watch).await;
        }
        Ok(())
    }

    /// Returns true if the subplans of a plan continue without a person.
    fn goes_on(&self, plan: PlanId) -> BoxFuture<'_, Result<bool, EngineError>> {
        Box::pin(async move {
            let plan = self.load_plan(&plan).await?;
            let Some(fanout) = plan.fanout.as_ref().filter(|_| is_tended(&plan)) else { return Ok(false) };
            if !plan.winding.is_empty() {
                return Ok(true);
            }
            let children = self.children_followed(&plan.id).await?;
            let seen = children.seen(fanout);
            let acts = fanout.due_steps(&seen, clock::now());
            if !acts.retry.is_empty() || acts.join.is_some() || acts.wake_at.is_some() {
                return Ok(true);
            }
            for index in acts.call {
                let begins = fanout.pieces[index].mends.is_some()
                    || self.child_base(&plan, fanout, index, &children).await?.is_some();
                if begins {
                    return Ok(true);
                }
            }
            let unsettled = fanout.pieces.iter().zip(&seen).filter(|(piece, _)| !piece.is_settled());
            for (piece, seen) in unsettled {
                match (seen, children.of(piece)) {
                    (ChildState::Busy, Some(child)) if !is_tended(child) => return Ok(true),
                    (ChildState::Busy, Some(child)) if self.goes_on(child.id.clone()).await? => {
                        return Ok(true);
                    }
                    // The parent has something to spawn or record.
                    (ChildState::Unborn | ChildState::Landed { .. } | ChildState::Cancelled { .. }, _) => {
                        return Ok(true);
                    }
                    (
                        ChildState::Busy
                        | ChildState::InLine
                        | ChildState::Postponed { .. }
                        | ChildState::Asking
                        | ChildState::Failed { .. }
                        | ChildState::Finished { .. },
                        _,
                    ) => {}
                }
            }
            Ok(false)
        })
    }
}
