//! The commit of a transition: one transaction that compares the fence, reads the plan, decides, and writes
//! everything or nothing (S0.1, S1.3, S2.1).

use std::time::Duration;

use drydock_domain::{Decided, Holder, LockScope, Plan, PlanId, Refusal, StoredPlan, Transition};

use super::claim::{LeasedPlan, check_lease};
use super::write::steps;
use crate::crash::CrashPoint;
use crate::enforcement::record;
use crate::event::{EventSubject, append, append_once};
use crate::lease::{Acquired, LeaseKey, LockRequest, acquire_in_tx, releasing};
use crate::tx::{BatchEnd, BoxFuture, Tx, TxOutcome};
use crate::value::Statement;
use crate::{CommitError, EventBatch, Leases, PlanLease, Store, StoreError};

/// Decides on a stored plan, inside the transaction that writes the result.
pub type Decide = Box<dyn FnOnce(&StoredPlan) -> Result<Decided, Refusal> + Send>;

/// The outcome of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    /// The plan as it is stored now.
    pub plan: Plan,
    /// Whether this commit changed it.
    pub change: PlanChange,
}

/// Whether a command changed the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanChange {
    /// The plan was changed.
    Changed,
    /// The command had already taken effect.
    Already,
}

type CommitResult<T> = Result<TxOutcome<Result<T, CommitError>>, StoreError>;

impl Store {
    /// Commits the transition that creates a plan, under the lease of its id.
    pub fn plan_create(
        &self,
        lease: &PlanLease,
        transition: Transition,
    ) -> BoxFuture<'_, Result<Plan, CommitError>> {
        let (plan, grip) = (lease.plan().clone(), lease.grip().clone());
        Box::pin(async move { self.write(move |tx| Box::pin(create(tx, plan, grip, transition))).await? })
    }

    /// Decides on the stored plan and commits the result, under these leases.
    pub fn plan_transact(
        &self,
        warrant: Leases<'_>,
        decide: Decide,
    ) -> BoxFuture<'_, Result<Committed, CommitError>> {
        let (lease, project) = match warrant {
            Leases::Plan(plan) => (plan, None),
            Leases::Landing { plan, project } => (plan, Some(project)),
        };
        let order = CommitRequest {
            plan: lease.plan().clone(),
            grip: lease.grip().clone(),
            project: project.map(|project| project.grip().clone()),
            decide,
            after: Vec::new(),
        };
        Box::pin(async move { self.write(move |tx| Box::pin(transact(tx, order))).await? })
    }

    /// Decides on the stored plan and commits the result, under a lock that is acquired and released in the
    /// same transaction. For callers that do nothing else under the lock. No other process sees the lock
    /// held, and a crash cannot leave it held.
    pub fn plan_transact_locking(
        &self,
        plan: &PlanId,
        holder: &Holder,
        ttl: Duration,
        decide: Decide,
    ) -> BoxFuture<'_, Result<Acquired<Committed>, CommitError>> {
        let wanted = self.wanted(LockScope::Plan, plan.as_str(), holder, ttl);
        let plan = plan.clone();
        Box::pin(async move { self.write(move |tx| Box::pin(alone(tx, wanted, plan, decide))).await? })
    }

    /// Appends events about a plan that does not change, under its lease. The same batch is appended once, so
    /// that a commit whose response was lost can be retried.
    pub fn event_append(
        &self,
        lease: &PlanLease,
        batch: &EventBatch,
    ) -> BoxFuture<'_, Result<(), CommitError>> {
        let (plan, grip, batch) = (lease.plan().clone(), lease.grip().clone(), batch.clone());
        Box::pin(async move { self.write(move |tx| Box::pin(note(tx, plan, grip, batch))).await? })
    }
}

/// A requested transition.
struct CommitRequest {
    plan: PlanId,
    grip: LeaseKey,
    project: Option<LeaseKey>,
    decide: Decide,
    /// Statements for the same commit. They run if the plan changes, or if a refusal is recorded.
    after: Vec<Statement>,
}

async fn create(tx: &mut Tx<'_>, plan: PlanId, grip: LeaseKey, transition: Transition) -> CommitResult<Plan> {
    tx.begin_transition().await?;
    let claimed = check_lease(tx, &plan, std::slice::from_ref(&grip)).await?;
    let Some(claimed) = claimed else { return lost(plan, &grip) };
    tx.point(CrashPoint::AfterLockCheck)?;
    if claimed.snapshot.is_some() {
        return Ok(TxOutcome::Undo(Err(CommitError::PlanExists(plan))));
    }
    if transition.plan().id != plan {
        // The lease belongs to another plan, so this plan has no valid lease.
        return lost(transition.into_plan().id, &grip);
    }
    tx.finish_steps(steps(&claimed, &transition)?).await?;
    Ok(TxOutcome::Keep(Ok(transition.into_plan())))
}

async fn alone(
    tx: &mut Tx<'_>,
    wanted: LockRequest,
    plan: PlanId,
    decide: Decide,
) -> CommitResult<Acquired<Committed>> {
    let grip = match acquire_in_tx(tx, &wanted, BatchEnd::Open).await? {
        Acquired::Held(grip) => grip,
        Acquired::Busy(lock) => return Ok(TxOutcome::Undo(Ok(Acquired::Busy(lock)))),
    };
    let after = vec![releasing(&grip)];
    let order = CommitRequest { plan, grip, project: None, decide, after };
    Ok(match transact(tx, order).await? {
        TxOutcome::Keep(answer) => TxOutcome::Keep(answer.map(Acquired::Held)),
        TxOutcome::Undo(answer) => TxOutcome::Undo(answer.map(Acquired::Held)),
    })
}

async fn transact(tx: &mut Tx<'_>, order: CommitRequest) -> CommitResult<Committed> {
    let CommitRequest { plan, grip, project, decide, after } = order;
    tx.begin_transition().await?;
    let mut grips = vec![grip.clone()];
    grips.extend(project.clone());
    let Some(claimed) = check_lease(tx, &plan, &grips).await? else { return lost(plan, &grip) };
    tx.point(CrashPoint::AfterLockCheck)?;
    let LeasedPlan { snapshot: Some(snapshot), .. } = &claimed else {
        return Ok(TxOutcome::Undo(Err(CommitError::PlanMissing(plan))));
    };
    let transition = match decide(snapshot) {
        Ok(Decided::Change(transition)) => transition,
        Ok(Decided::Already) => {
            let plan = snapshot.plan.clone();
            return Ok(TxOutcome::Undo(Ok(Committed { plan, change: PlanChange::Already })));
        }
        Err(refusal) => return refused(tx, &snapshot.plan, refusal, after).await,
    };
    let landing = project.is_some_and(|grip| grip.key == snapshot.plan.spec.project.as_str());
    if transition.needs_project() && !landing {
        return Ok(TxOutcome::Undo(Err(CommitError::ProjectLockMissing)));
    }
    let mut steps = steps(&claimed, &transition)?;
    if let Some(last) = steps.last_mut() {
        last.statements.extend(after);
    }
    tx.finish_steps(steps).await?;
    Ok(TxOutcome::Keep(Ok(Committed { plan: transition.into_plan(), change: PlanChange::Changed })))
}

/// Stores the events of a refusal, if it has any; the plan itself is unchanged.
async fn refused(
    tx: &mut Tx<'_>,
    plan: &Plan,
    refusal: Refusal,
    after: Vec<Statement>,
) -> CommitResult<Committed> {
    let events = refusal.events();
    if events.is_empty() {
        return Ok(TxOutcome::Undo(Err(CommitError::Refused(refusal))));
    }
    let about = EventSubject::plan(plan);
    let mut statements: Vec<_> = events.iter().map(|event| append(&about, event)).collect();
    statements.extend(record(plan, &events)?);
    tx.finish(statements.into_iter().chain(after).collect()).await?;
    Ok(TxOutcome::Keep(Err(CommitError::Refused(refusal))))
}

async fn note(tx: &mut Tx<'_>, plan: PlanId, grip: LeaseKey, batch: EventBatch) -> CommitResult<()> {
    let claimed = check_lease(tx, &plan, std::slice::from_ref(&grip)).await?;
    let Some(claimed) = claimed else { return lost(plan, &grip) };
    let Some(snapshot) = claimed.snapshot else {
        return Ok(TxOutcome::Undo(Err(CommitError::PlanMissing(plan))));
    };
    let mut statements = append_once(&EventSubject::plan(&snapshot.plan), &batch);
    statements.extend(record(&snapshot.plan, &batch.events)?);
    tx.finish(statements).await?;
    Ok(TxOutcome::Keep(Ok(())))
}

fn lost<T>(plan: PlanId, grip: &LeaseKey) -> CommitResult<T> {
    Ok(TxOutcome::Undo(Err(CommitError::LeaseLost { plan, fence: grip.fence })))
}
