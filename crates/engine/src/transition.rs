//! The only module that commits commands. The pure state machine decides a command inside the transaction
//! that stores the transition, under the lock that the caller holds. Nothing here edits a plan in memory; the
//! commit returns the new plan.

use drydock_domain::{Command, Context, Plan, decide};
use drydock_store::{Acquired, CommitError, Committed, Leases};
use tokio::time::Instant;
use tracing::{Instrument, Span};

use crate::engine::{Actor, Engine};
use crate::error::EngineError;
use crate::hold::{PlanLockGuard, ProjectLockGuard};
use crate::meter::CommandOutcome;
use crate::tally::UsageCounter;
use crate::trace;

impl Engine {
    /// Commits one command under the plan's lock.
    pub(crate) async fn issue(
        &self,
        hold: &PlanLockGuard,
        command: Command,
        by: impl Into<Actor<'_>>,
    ) -> Result<Committed, EngineError> {
        self.commit(Leases::Plan(hold.lease()), hold.tally(), command, by.into()).await
    }

    /// Commits one command of a landing, under the locks of the plan and the project (S1.2).
    pub(crate) async fn issue_landing(
        &self,
        hold: &PlanLockGuard,
        project: &ProjectLockGuard,
        command: Command,
        by: impl Into<Actor<'_>>,
    ) -> Result<Committed, EngineError> {
        let warrant = Leases::Landing { plan: hold.lease(), project: project.lease() };
        self.commit(warrant, hold.tally(), command, by.into()).await
    }

    /// Commits one command of a child, under its parent's lock and its own, which is held only for this
    /// commit (S1.4).
    pub(crate) async fn issue_below(
        &self,
        parent: &PlanLockGuard,
        child: &Plan,
        command: Command,
        by: impl Into<Actor<'_>>,
    ) -> Result<Committed, EngineError> {
        parent.require_child(child)?;
        if self.stopping().is_cancelled() {
            return Err(EngineError::Interrupted);
        }
        let (context, holder) = (self.context(by.into()), self.identity().holder(command.name()));
        let span = trace::transition(&child.id, command.name());
        let judge = Box::new(move |snapshot: &_| decide(snapshot, command, &context));
        let began = Instant::now();
        let ttl = self.settings().lock_ttl;
        let alone = self.store().plan_transact_locking(&child.id, &holder, ttl, judge);
        let committed = match alone.instrument(span.clone()).await {
            Ok(Acquired::Held(committed)) => Ok(committed),
            Ok(Acquired::Busy(lock)) => return Err(EngineError::LockHeld { lock }),
            Err(error) => Err(error),
        };
        self.measure(&span, began, &committed);
        Ok(committed?)
    }

    async fn commit(
        &self,
        warrant: Leases<'_>,
        tally: &UsageCounter,
        command: Command,
        who: Actor<'_>,
    ) -> Result<Committed, EngineError> {
        let context = Context { spent: tally.read(), ..self.context(who) };
        let (Leases::Plan(lease) | Leases::Landing { plan: lease, .. }) = &warrant;
        let span = trace::transition(lease.plan(), command.name());
        let judge = Box::new(move |snapshot: &_| decide(snapshot, command, &context));
        let began = Instant::now();
        let committed = self.store().plan_transact(warrant, judge).instrument(span.clone()).await;
        self.measure(&span, began, &committed);
        Ok(committed?)
    }

    fn measure(&self, span: &Span, began: Instant, committed: &Result<Committed, CommitError>) {
        let outcome = CommandOutcome::of(committed);
        self.meter().count(outcome, began.elapsed());
        span.record("drydock.outcome", outcome.name());
    }
}
