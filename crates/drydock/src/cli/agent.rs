//! `drydock agent`: list the agents, start one to check it.

use clap::Subcommand;
use drydock_api::{AgentCheck, CheckStatus, Code, OneAgentCheck, Problem};

use super::report::{CliResult, Level, Report, ReportStatus};
use super::session::Invocation;
use crate::render;

const NONE_FOUND: &str =
    "none of these agents is installed; install one, or configure your own as [agents.NAME] (docs/config.md)";

/// Subcommands of `drydock agent`.
#[derive(Debug, Subcommand)]
pub(crate) enum AgentCommand {
    /// List configured and built-in agents and whether each is installed
    List,
    /// Start an agent and check its login
    Check {
        /// Agent name
        name: String,
    },
}

impl AgentCommand {
    pub(crate) fn verb(&self) -> &'static str {
        match self {
            AgentCommand::List => "list",
            AgentCommand::Check { .. } => "check",
        }
    }
}

pub(crate) async fn run(session: &Invocation, command: AgentCommand) -> CliResult {
    let client = session.client();
    match command {
        AgentCommand::List => {
            let agents = client.agents().await?;
            let text = render::agent::list(&agents.agents);
            let found = agents.agents.iter().any(|agent| agent.found);
            let report = Report::new(agents, text);
            Ok(if found { report } else { report.note(Level::Info, NONE_FOUND) })
        }
        AgentCommand::Check { name } => {
            let check = client.agent_check(&name).await?;
            let text = render::agent::check(&check);
            let ending = unusable(&check).map_or(ReportStatus::Done, ReportStatus::Failed);
            Ok(Report::new(OneAgentCheck { check }, text).ending(ending))
        }
    }
}

/// Returns why an agent cannot be used, if the check failed.
pub(super) fn unusable(check: &AgentCheck) -> Option<Box<Problem>> {
    match check.status {
        CheckStatus::Ok | CheckStatus::Warn => None,
        CheckStatus::Error => {
            let text = format!("agent {} cannot be used: {}", check.agent, check.text);
            Some(Box::new(Problem { hint: check.hint.clone(), ..Problem::new(Code::AgentUnusable, text) }))
        }
    }
}
