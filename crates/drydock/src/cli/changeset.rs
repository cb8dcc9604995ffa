//! `drydock changeset`: list, show.

use clap::Subcommand;
use drydock_api::{ChangesetQuery, OneChangeset};

use super::report::{CliResult, Report};
use super::session::Invocation;
use crate::render;

/// Subcommands of `drydock changeset`.
#[derive(Debug, Subcommand)]
pub(crate) enum ChangesetCommand {
    /// List the changesets of a plan
    List {
        /// Plan id or unique prefix
        plan: String,
    },
    /// Show a changeset with every path
    Show {
        /// Changeset id or unique prefix
        id: String,
    },
}

impl ChangesetCommand {
    pub(crate) fn verb(&self) -> &'static str {
        match self {
            ChangesetCommand::List { .. } => "list",
            ChangesetCommand::Show { .. } => "show",
        }
    }
}

pub(crate) async fn run(session: &Invocation, command: ChangesetCommand) -> CliResult {
    let client = session.client();
    match command {
        ChangesetCommand::List { plan } => {
            let changesets = client.changesets(&ChangesetQuery { plan: Some(plan) }).await?;
            let text = render::changeset::list(&changesets.changesets);
            Ok(Report::new(changesets, text).or_say("no changesets"))
        }
        ChangesetCommand::Show { id } => {
            let changeset = client.changeset(&id).await?;
            let text = render::changeset::show(&changeset);
            Ok(Report::new(OneChangeset { changeset }, text))
        }
    }
}
