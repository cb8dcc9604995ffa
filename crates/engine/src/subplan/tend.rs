//! Schedules subplans: reads all subplans of a plan once, and does the steps that are due for them.
//! Scheduling holds the parent's lock only while it works, and occupies no worker in between: the commit in
//! which a subplan stops makes it due again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use drydock_domain::{
    CallSubplan, ChildState, Command, Fanout, Phase, Plan, PlanId, Stage, State, Subplan, SubplanStatus,
    SubplanUpdate, Timestamp,
};

use crate::clock;
use crate::engine::{Engine, WORKER};
use crate::error::EngineError;
use crate::hold::PlanLockGuard;

/// Delay before the next attempt to join a subplan whose lock another process held.
const JOIN_AGAIN: Duration = Duration::from_secs(1);

/// Maximum number of steps per call. A plan with more steps releases its lock first; its outbox row is due
/// again.
const TEND_STEPS_MAX: usize = 256;

/// The result of scheduling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScheduleOutcome {
    /// A step was done, and more may be due.
    Moved,
    /// Nothing is due before this time, or before a subplan changes.
    Rests(Option<Timestamp>),
}

/// The child plans of a fan-out, as stored.
#[derive(Debug, Clone, Default)]
pub(crate) struct Children {
    by_id: BTreeMap<PlanId, Arc<Plan>>,
}

impl Children {
    pub(super) fn of(&self, piece: &Subplan) -> Option<&Plan> {
        self.by_id.get(piece.child.as_ref()?).map(Arc::as_ref)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Plan> {
        self.by_id.values().map(Arc::as_ref)
    }

    /// Adds plans, replacing older revisions.
    pub(super) fn take_in(&mut self, plans: Vec<Plan>) {
        self.by_id.extend(plans.into_iter().map(|plan| (plan.id.clone(), Arc::new(plan))));
    }

    /// Returns the updates for children that have ended and still have a budget share from their parent.
    pub(super) fn ends(&self, parent: &Plan) -> impl Iterator<Item = SubplanUpdate> {
        parent
            .handed
            .keys()
            .filter_map(|id| self.by_id.get(id))
            .filter_map(|child| SubplanUpdate::of_end(child))
    }

    pub(super) fn seen(&self, fanout: &Fanout) -> Vec<ChildState> {
        fanout.pieces.iter().map(|piece| self.of(piece).map_or(ChildState::Unborn, ChildState::of)).collect()
    }
}

impl Engine {
    /// Does the due steps for the subplans of a plan.
    pub(crate) async fn schedule_subplans(&self, plan: &PlanId) -> Result<ScheduleOutcome, EngineError> {
        let hold = self.lock_plan(plan, "schedule its subplans").await?;
        let tended = self.tend_held(&hold, plan).await;
        hold.release().await;
        tended
    }

    async fn tend_held(&self, hold: &PlanLockGuard, id: &PlanId) -> Result<ScheduleOutcome, EngineError> {
        let mut moved = false;
        for _ in 0..TEND_STEPS_MAX {
            let step = self.tend_once(hold, id).await?;
            match step {
                ScheduleOutcome::Moved if !self.stopping().is_cancelled() => moved = true,
                // The commits above made scheduling due again. The next call finds nothing to do and lets the
                // plan rest.
                ScheduleOutcome::Moved | ScheduleOutcome::Rests(_) if moved => {
                    return Ok(ScheduleOutcome::Moved);
                }
                ScheduleOutcome::Moved | ScheduleOutcome::Rests(_) => return Ok(step),
            }
        }
        Ok(ScheduleOutcome::Moved)
    }

    async fn tend_once(&self, hold: &PlanLockGuard, id: &PlanId) -> Result<ScheduleOutcome, EngineError> {
        let plan = self.load_plan(id).await?;
        if !plan.winding.is_empty() {
            return self.cancel_unneeded(hold, &plan).await;
        }
        let (Some(fanout), State::Queued, None) = (&plan.fanout, plan.stage.state(), &plan.gate) else {
            return Ok(ScheduleOutcome::Rests(None));
        };
        match &plan.stage {
            Stage::Execute(_) if fanout.is_open() => self.tend_pieces(hold, &plan, fanout).await,
            Stage::Apply(_) if fanout.is_ready() => self.land_ready(hold, &plan, fanout).await,
            Stage::Strategize(_) | Stage::Execute(_) | Stage::Apply(_) => Ok(ScheduleOutcome::Rests(None)),
        }
    }

    async fn tend_pieces(
        &self,
        hold: &PlanLockGuard,
        plan: &Plan,
        fanout: &Fanout,
    ) -> Result<ScheduleOutcome, EngineError> {
        if self.spawn_children(hold, plan, fanout).await? {
            return Ok(ScheduleOutcome::Moved);
        }
        let children = self.children_followed(&plan.id).await?;
        let seen = children.seen(fanout);
        if self.record_news(hold, plan, &children, fanout.updates(&seen)).await? {
            return Ok(ScheduleOutcome::Moved);
        }
        let acts = fanout.due_steps(&seen, clock::now());
        let (mut moved, mut wake_at) = (false, acts.wake_at);
        for index in &acts.retry {
            if let Some(child) = children.of(&fanout.pieces[*index]) {
                moved |= self.issue_child(hold, child, Command::Retry).await?;
            }
        }
        for index in &acts.call {
            moved |= self.call(hold, plan, fanout, *index, &children).await?;
        }
        if let Some(index) = acts.join {
            let joined = self.join_piece(hold, plan, fanout, index, &children).await?;
            // Another process holds its lock.
            let soon = (!joined).then(|| clock::now().plus(JOIN_AGAIN));
            (moved, wake_at) = (moved || joined, [wake_at, soon].into_iter().flatten().min());
        }
        Ok(if moved { ScheduleOutcome::Moved } else { ScheduleOutcome::Rests(wake_at) })
    }

    /// Records updates about the subplans, if there are any; returns true if there were.
    pub(super) async fn record_news(
        &self,
        hold: &PlanLockGuard,
        plan: &Plan,
        children: &Children,
        mut news: Vec<SubplanUpdate>,
    ) -> Result<bool, EngineError> {
        if news.is_empty() {
            return Ok(false);
        }
        news.extend(children.ends(plan));
        self.issue(hold, Command::Tend(news), WORKER).await?;
        Ok(true)
    }

    /// Gives a subplan its turn; returns true if it got it. A subplan whose base is not known yet waits.
    async fn call(
        &self,
        hold: &PlanLockGuard,
        plan: &Plan,
        fanout: &Fanout,
        index: usize,
        children: &Children,
    ) -> Result<bool, EngineError> {
        let piece = &fanout.pieces[index];
        let Some(child) = children.of(piece) else { return Ok(false) };
        let call = match &piece.mends {
            Some(mends) => CallSubplan { base: mends.onto.clone(), from: Some(mends.marked.clone()) },
            None => match self.child_base(plan, fanout, index, children).await? {
                Some(base) => CallSubplan { base, from: None },
                None => return Ok(false),
            },
        };
        self.issue_child(hold, child, Command::Call(call)).await
    }

    pub(super) async fn children(&self, plan: &PlanId) -> Result<Children, EngineError> {
        let mut children = Children::default();
        children.take_in(self.store().plan_children(plan).await?);
        Ok(children)
    }

    /// Like `children`, for repeated calls: reads only the children that changed since the last call in this
    /// process.
    pub(super) async fn children_followed(&self, plan: &PlanId) -> Result<Children, EngineError> {
        let mut children = self.families().last_seen(plan);
        let known = children.all().map(|child| (child.id.to_string(), child.revision)).collect();
        children.take_in(self.store().plan_children_changed(plan, known).await?);
        self.families().remember(plan, &children);
        Ok(children)
    }

    /// Commits a command of a subplan, under its parent's lock and its own. Returns false if another process
    /// holds the subplan or it changed meanwhile; the next scheduling step tries again.
    pub(super) async fn issue_child(
        &self,
        parent: &PlanLockGuard,
        child: &Plan,
        command: Command,
    ) -> Result<bool, EngineError> {
        match self.issue_below(parent, child, command, WORKER).await {
            Ok(_) => Ok(true),
            Err(EngineError::LockHeld { .. }) => Ok(false),
            Err(EngineError::Refused(refusal)) => {
                tracing::debug!(plan = %child.id, %refusal, "a subplan changed while it was scheduled");
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}

/// Returns true if scheduling moves the plan forward rather than a run of its own.
pub(crate) fn is_tended(plan: &Plan) -> bool {
    let pieces = |fanout: &Fanout| match plan.stage.phase() {
        Phase::Strategize => false,
        Phase::Execute => fanout.is_open(),
        Phase::Apply => fanout.pieces.iter().any(|piece| piece.fate == SubplanStatus::Ready),
    };
    let waits = plan.stage.state() == State::Queued && plan.fanout.as_ref().is_some_and(pieces);
    !plan.winding.is_empty() || waits
}
