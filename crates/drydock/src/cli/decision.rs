//! `drydock decision`: list, show, resolve.

use clap::{Subcommand, value_parser};
use drydock_api::{DecisionQuery, OneDecision, RequestOptions, Resolve};

use super::report::{CliResult, Level, Report};
use super::session::Invocation;
use crate::render;

/// Subcommands of `drydock decision`.
#[derive(Debug, Subcommand)]
pub(crate) enum DecisionCommand {
    /// List questions
    List {
        /// Only open questions
        #[arg(long)]
        open: bool,
        /// Only questions of this plan
        #[arg(long)]
        plan: Option<String>,
        /// Maximum number of questions
        #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
        limit: Option<u32>,
        /// Continue after this cursor, the `next` of an earlier page
        #[arg(long, value_name = "CURSOR")]
        after: Option<String>,
    },
    /// Show a question with its options
    Show {
        /// Question id or unique prefix
        id: String,
    },
    /// Answer a question
    Resolve {
        /// Question id or unique prefix
        id: String,
        /// Chosen option
        #[arg(long)]
        option: String,
        /// Text to add to the answer
        #[arg(long)]
        note: Option<String>,
    },
}

impl DecisionCommand {
    pub(crate) fn verb(&self) -> &'static str {
        match self {
            DecisionCommand::List { .. } => "list",
            DecisionCommand::Show { .. } => "show",
            DecisionCommand::Resolve { .. } => "resolve",
        }
    }
}

pub(crate) async fn run(session: &Invocation, command: DecisionCommand) -> CliResult {
    let client = session.client();
    match command {
        DecisionCommand::List { open, plan, limit, after } => {
            let query =
                DecisionQuery { open: open.then_some(true), plan, limit, after, ..DecisionQuery::default() };
            let decisions = client.decisions(&query).await?;
            let text = render::decision::list(&decisions.decisions, session.now());
            let next = decisions.next.clone();
            let nothing = if open { "no open decisions" } else { "no decisions" };
            Ok(Report::new(decisions, text).or_say(nothing).or_more(next))
        }
        DecisionCommand::Show { id } => {
            let decision = client.decision(&id).await?;
            let text = render::decision::show(&decision, session.now());
            Ok(Report::new(OneDecision { decision }, text))
        }
        DecisionCommand::Resolve { id, option, note } => {
            let resolved =
                client.decision_resolve(&id, &Resolve { option, note }, &RequestOptions::default()).await?;
            let text = render::plan::line(&resolved.plan);
            let next = render::next::command(&resolved.plan);
            Ok(Report::new(resolved, text).go_on(Level::Info, next))
        }
    }
}
