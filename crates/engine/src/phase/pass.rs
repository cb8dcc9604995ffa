//! What the agents of a run ask a server with: a token of the run's own, which reads its plan and does nothing else. It
//! is made when the first agent starts, where there is a server to ask, and forgotten when the run ends. What an agent
//! has to say goes to the run itself, as ever: only the run knows what it may still hear.

use drydock_agent::AgentSpec;
use drydock_domain::{TokenId, told};
use tokio::sync::OnceCell;

use super::scope::Scope;
use crate::token::Secret;

/// The token of a run, when there is one.
pub(super) type Pass = OnceCell<Option<(TokenId, Secret)>>;

impl Scope<'_> {
    /// Returns the agent with what it needs to ask about its plan, where there is somebody to ask.
    pub(super) async fn with_pass(&self, spec: AgentSpec) -> AgentSpec {
        let Some(server) = self.engine.server() else { return spec };
        match self.pass.get_or_init(|| self.mint()).await {
            Some((_, secret)) => spec.with_pass(server, secret.reveal()),
            None => spec,
        }
    }

    /// An agent can work without: that it has none is told and no failure.
    async fn mint(&self) -> Option<(TokenId, Secret)> {
        let minted = self.engine.run_token(&self.plan.id, &self.run).await;
        minted.inspect_err(|error| tracing::warn!(error = %told(&error), "a run has no token")).ok()
    }

    /// Forgets the token of the run, whose agents are gone.
    pub(super) async fn forget_pass(&self) {
        let Some(Some((token, _))) = self.pass.get() else { return };
        if let Err(error) = self.engine.store().token_forget(token).await {
            tracing::warn!(error = %told(&error), "could not forget the token of a run; it ends with the run");
        }
    }
}
