//! `drydock decision`: list, show, resolve.

use clap::{Subcommand, value_parser};
use drydock_api::{DecisionQuery, OneDecision, Resolve, Terms};

use super::report::{Level, Outcome, Report};
use super::session::Session;
use crate::render;

/// What can be done with decisions.
#[derive(Debug, Subcommand)]
pub(crate) enum Decision {
    /// List decisions
    List {
        /// Only those that still wait
        #[arg(long)]
        open: bool,
        /// Only those of this plan
        #[arg(long)]
        plan: Option<String>,
        /// How many at most
        #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
        limit: Option<u32>,
        /// Go on after this cursor, the `next` of an earlier answer
        #[arg(long, value_name = "CURSOR")]
        after: Option<String>,
    },
    /// Show one with its options
    Show {
        /// Its id, or the beginning of it
        id: String,
    },
    /// Answer one
    Resolve {
        /// Its id, or the beginning of it
        id: String,
        /// The chosen option
        #[arg(long)]
        option: String,
        /// What to add
        #[arg(long)]
        note: Option<String>,
    },
}

impl Decision {
    pub(crate) fn verb(&self) -> &'static str {
        match self {
            Decision::List { .. } => "list",
            Decision::Show { .. } => "show",
            Decision::Resolve { .. } => "resolve",
        }
    }
}

pub(crate) async fn run(session: &Session, command: Decision) -> Outcome {
    let client = session.client();
    match command {
        Decision::List { open, plan, limit, after } => {
            let query =
                DecisionQuery { open: open.then_some(true), plan, limit, after, ..DecisionQuery::default() };
            let decisions = client.decisions(&query).await?;
            let text = render::decision::list(&decisions.decisions, session.now());
            let next = decisions.next.clone();
            let nothing = if open { "no open decisions" } else { "no decisions" };
            Ok(Report::new(decisions, text).or_say(nothing).or_more(next))
        }
        Decision::Show { id } => {
            let decision = client.decision(&id).await?;
            let text = render::decision::show(&decision, session.now());
            Ok(Report::new(OneDecision { decision }, text))
        }
        Decision::Resolve { id, option, note } => {
            let resolved = client.decision_resolve(&id, &Resolve { option, note }, &Terms::default()).await?;
            let text = render::plan::line(&resolved.plan);
            let next = render::next::command(&resolved.plan);
            Ok(Report::new(resolved, text).go_on(Level::Info, next))
        }
    }
}
