//! `drydock changeset`: list, show.

use clap::Subcommand;
use drydock_api::{ChangesetQuery, OneChangeset};

use super::report::{Outcome, Report};
use super::session::Session;
use crate::render;

/// Subcommands of `drydock changeset`.
#[derive(Debug, Subcommand)]
pub(crate) enum Changeset {
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

impl Changeset {
    pub(crate) fn verb(&self) -> &'static str {
        match self {
            Changeset::List { .. } => "list",
            Changeset::Show { .. } => "show",
        }
    }
}

pub(crate) async fn run(session: &Session, command: Changeset) -> Outcome {
    let client = session.client();
    match command {
        Changeset::List { plan } => {
            let changesets = client.changesets(&ChangesetQuery { plan: Some(plan) }).await?;
            let text = render::changeset::list(&changesets.changesets);
            Ok(Report::new(changesets, text).or_say("no changesets"))
        }
        Changeset::Show { id } => {
            let changeset = client.changeset(&id).await?;
            let text = render::changeset::show(&changeset);
            Ok(Report::new(OneChangeset { changeset }, text))
        }
    }
}
