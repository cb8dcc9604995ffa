//! The only committer: a command is judged by the pure state machine inside the transaction that records it, under
//! the lock that the caller holds. Nothing here edits a plan in memory; the new plan is what the commit returns.

use drydock_domain::{Command, Context, decide};
use drydock_store::{Committed, Warrant};
use tokio::time::Instant;
use tracing::Instrument;

use crate::engine::{Engine, Who};
use crate::error::EngineError;
use crate::hold::{Hold, ProjectHold};
use crate::meter::Outcome;
use crate::tally::Tally;
use crate::trace;

impl Engine {
    /// Commits one command under the plan's lock.
    pub(crate) async fn issue(
        &self,
        hold: &Hold,
        command: Command,
        by: impl Into<Who<'_>>,
    ) -> Result<Committed, EngineError> {
        self.commit(Warrant::Plan(hold.lease()), hold.tally(), command, by.into()).await
    }

    /// Commits one command of a landing, under the plan's and the project's lock (S1.2).
    pub(crate) async fn issue_landing(
        &self,
        hold: &Hold,
        project: &ProjectHold,
        command: Command,
        by: impl Into<Who<'_>>,
    ) -> Result<Committed, EngineError> {
        let warrant = Warrant::Landing { plan: hold.lease(), project: project.lease() };
        self.commit(warrant, hold.tally(), command, by.into()).await
    }

    async fn commit(
        &self,
        warrant: Warrant<'_>,
        tally: &Tally,
        command: Command,
        who: Who<'_>,
    ) -> Result<Committed, EngineError> {
        let context = Context { spent: tally.read(), ..self.context(who) };
        let (Warrant::Plan(lease) | Warrant::Landing { plan: lease, .. }) = &warrant;
        let span = trace::transition(lease.plan(), command.name());
        let judge = Box::new(move |snapshot: &_| decide(snapshot, command, &context));
        let began = Instant::now();
        let committed = self.store().plan_transact(warrant, judge).instrument(span.clone()).await;
        let outcome = Outcome::of(&committed);
        self.meter().count(outcome, began.elapsed());
        span.record("drydock.outcome", outcome.name());
        Ok(committed?)
    }
}
