//! The only committer: a command is judged by the pure state machine inside the transaction that records it, under
//! the lock that the caller holds. Nothing here edits a plan in memory; the new plan is what the commit returns.

use drydock_domain::{Command, decide};
use drydock_store::{Committed, Warrant};

use crate::engine::{Engine, Who};
use crate::error::EngineError;
use crate::hold::{Hold, ProjectHold};

impl Engine {
    /// Commits one command under the plan's lock.
    pub(crate) async fn issue(
        &self,
        hold: &Hold,
        command: Command,
        by: impl Into<Who<'_>>,
    ) -> Result<Committed, EngineError> {
        self.commit(Warrant::Plan(hold.lease()), command, by.into()).await
    }

    /// Commits one command of a landing, under the plan's and the project's lock (S1.2).
    pub(crate) async fn issue_landing(
        &self,
        hold: &Hold,
        project: &ProjectHold,
        command: Command,
        by: impl Into<Who<'_>>,
    ) -> Result<Committed, EngineError> {
        self.commit(Warrant::Landing { plan: hold.lease(), project: project.lease() }, command, by.into())
            .await
    }

    async fn commit(
        &self,
        warrant: Warrant<'_>,
        command: Command,
        who: Who<'_>,
    ) -> Result<Committed, EngineError> {
        let context = self.context(who);
        let judge = Box::new(move |snapshot: &_| decide(snapshot, command, &context));
        Ok(self.store().plan_transact(warrant, judge).await?)
    }
}
