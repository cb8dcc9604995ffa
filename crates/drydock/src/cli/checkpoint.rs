//! `drydock checkpoint`: list.

use clap::Subcommand;

use super::report::{CliResult, Report};
use super::session::Invocation;
use crate::render;

/// Subcommands of `drydock checkpoint`.
#[derive(Debug, Subcommand)]
pub(crate) enum CheckpointCommand {
    /// List the checkpoints of a plan
    List {
        /// Plan id or unique prefix
        plan: String,
    },
}

impl CheckpointCommand {
    pub(crate) fn verb(&self) -> &'static str {
        match self {
            CheckpointCommand::List { .. } => "list",
        }
    }
}

pub(crate) async fn run(session: &Invocation, command: CheckpointCommand) -> CliResult {
    let CheckpointCommand::List { plan } = command;
    let checkpoints = session.client().checkpoints(&plan).await?;
    let text = render::checkpoint::list(&checkpoints.checkpoints, session.now());
    Ok(Report::new(checkpoints, text).or_say("no checkpoints"))
}
