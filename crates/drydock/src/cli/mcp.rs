//! `drydock mcp`: tools for an agent, served inside its run.

use drydock_agent::{McpError, serve_mcp};
use drydock_api::{Code, Problem};
use drydock_domain::error_chain;
use serde_json::json;

use super::report::{CliResult, Report};

/// Serves the agent on stdin and stdout until the agent or its run has ended.
pub(crate) async fn run() -> CliResult {
    match serve_mcp(tokio::io::stdin(), tokio::io::stdout()).await {
        // Stdout belongs to the agent's protocol, so the report prints nothing.
        Ok(()) => Ok(Report::new(json!({}), String::new())),
        Err(error) => Err(Box::new(problem(&error))),
    }
}

fn problem(error: &McpError) -> Problem {
    let (code, hint) = match error {
        McpError::NoRun { .. } => (
            Code::Usage,
            "`drydock mcp` is started by an agent, with the DRYDOCK_MCP_SOCKET and DRYDOCK_MCP_SECRET of its run",
        ),
        McpError::Unreachable { .. } => (Code::NotFound, "the run has ended; every run has its own socket"),
        McpError::Refused { .. } => (Code::Forbidden, "an agent can only use the tools of its own run"),
        McpError::Broken(_) => (Code::Internal, "the run or the agent has ended"),
    };
    Problem::new(code, error_chain(error)).hint(hint)
}
