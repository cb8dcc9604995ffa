//! `drydock changeset`: list, show.

use clap::Subcommand;
use drydock_api::{ChangesetQuery, OneChangeset};

use super::report::{Outcome, Report};
use super::session::Session;
use crate::render;

/// What can be done with changesets.
#[derive(Debug, Subcommand)]
pub(crate) enum Changeset {
    /// List the changesets of a plan
    List {
        /// The plan's id, or the beginning of it
        plan: String,
    },
    /// Show one with every path
    Show {
        /// Its id, or the beginning of it
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
