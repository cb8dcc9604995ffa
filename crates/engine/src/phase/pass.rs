//! The token with which the agents of a run call the server. Each run has its own token, which can only read
//! the run's plan. It is created when the first agent starts, if there is a server, and deleted when the run
//! ends. Agents send their messages to the run itself, not to the server: only the run knows which messages
//! it still accepts.

use drydock_agent::AgentSpec;
use drydock_domain::{TokenId, error_chain};
use tokio::sync::OnceCell;

use super::scope::RunContext;
use crate::token::Secret;

/// The token of a run, if it has one.
pub(super) type RunToken = OnceCell<Option<(TokenId, Secret)>>;

impl RunContext<'_> {
    /// Adds the server's address and the run's token to the agent, if there is a server.
    pub(super) async fn with_pass(&self, spec: AgentSpec) -> AgentSpec {
        let Some(server) = self.engine.server() else { return spec };
        match self.pass.get_or_init(|| self.mint()).await {
            Some((_, secret)) => spec.with_pass(server, secret.reveal()),
            None => spec,
        }
    }

    /// Creates the token of the run. A failure is only logged, because an agent can work without a token.
    async fn mint(&self) -> Option<(TokenId, Secret)> {
        let minted = self.engine.run_token(&self.plan.id, &self.run).await;
        minted.inspect_err(|error| tracing::warn!(error = %error_chain(&error), "a run has no token")).ok()
    }

    /// Deletes the token of the run after its agents have ended.
    pub(super) async fn forget_pass(&self) {
        let Some(Some((token, _))) = self.pass.get() else { return };
        if let Err(error) = self.engine.store().token_forget(token).await {
            tracing::warn!(error = %error_chain(&error), "could not delete the token of a run; it expires with the run");
        }
    }
}
