//! `drydock checkpoint`: list.

use clap::Subcommand;

use super::report::{Outcome, Report};
use super::session::Session;
use crate::render;

/// Subcommands of `drydock checkpoint`.
#[derive(Debug, Subcommand)]
pub(crate) enum Checkpoint {
    /// List the checkpoints of a plan
    List {
        /// Plan id or unique prefix
        plan: String,
    },
}

impl Checkpoint {
    pub(crate) fn verb(&self) -> &'static str {
        match self {
            Checkpoint::List { .. } => "list",
        }
    }
}

pub(crate) async fn run(session: &Session, command: Checkpoint) -> Outcome {
    let Checkpoint::List { plan } = command;
    let checkpoints = session.client().checkpoints(&plan).await?;
    let text = render::checkpoint::list(&checkpoints.checkpoints, session.now());
    Ok(Report::new(checkpoints, text).or_say("no checkpoints"))
}
