//! `drydock agent`: list what is configured, start one for real.

use clap::Subcommand;
use drydock_api::{AgentCheck, CheckStatus, Code, OneAgentCheck, Problem};

use super::report::{Ending, Level, Outcome, Report};
use super::session::Session;
use crate::render;

const NONE_FOUND: &str = "none of them is found on this machine; install one, or configure your own as [agents.NAME], see docs/config.md";

/// What can be done with agents.
#[derive(Debug, Subcommand)]
pub(crate) enum Agent {
    /// List agents: configured and built in, and whether each is there
    List,
    /// Start one for real and say how it went
    Check {
        /// Its name
        name: String,
    },
}

impl Agent {
    pub(crate) fn verb(&self) -> &'static str {
        match self {
            Agent::List => "list",
            Agent::Check { .. } => "check",
        }
    }
}

pub(crate) async fn run(session: &Session, command: Agent) -> Outcome {
    let client = session.client();
    match command {
        Agent::List => {
            let agents = client.agents().await?;
            let text = render::agent::list(&agents.agents);
            let found = agents.agents.iter().any(|agent| agent.found);
            let report = Report::new(agents, text);
            Ok(if found { report } else { report.note(Level::Info, NONE_FOUND) })
        }
        Agent::Check { name } => {
            let check = client.agent_check(&name).await?;
            let text = render::agent::check(&check);
            let ending = unusable(&check).map_or(Ending::Done, Ending::Failed);
            Ok(Report::new(OneAgentCheck { check }, text).ending(ending))
        }
    }
}

/// Returns why an agent cannot be used, if a check found that.
pub(super) fn unusable(check: &AgentCheck) -> Option<Box<Problem>> {
    match check.status {
        CheckStatus::Ok | CheckStatus::Warn => None,
        CheckStatus::Error => {
            let text = format!("agent {} cannot be used: {}", check.agent, check.text);
            Some(Box::new(Problem { hint: check.hint.clone(), ..Problem::new(Code::AgentUnusable, text) }))
        }
    }
}
