//! `drydock invariant`: add, list, remove.

use clap::{Args, Subcommand};
use drydock_api::{InvariantQuery, NewInvariant, OneInvariant, Phase, ScopeQuery};
use drydock_engine::{RuleFact, rule_facts};
use serde_json::json;

use super::report::{CliResult, Level, Report};
use super::session::Invocation;
use crate::render;

/// Subcommands of `drydock invariant`.
#[derive(Debug, Subcommand)]
pub(crate) enum InvariantCommand {
    /// Add a rule
    #[command(after_help = facts())]
    Add(InvariantAddArgs),
    /// List rules
    List {
        /// Only rules that apply to this plan, one per name
        #[arg(long, value_name = "PLAN")]
        effective: Option<String>,
    },
    /// Remove a rule
    Remove {
        /// Rule name
        name: String,
        /// Scope of the rule [default: global]
        #[arg(long)]
        scope: Option<String>,
    },
}

/// Arguments of `drydock invariant add`.
#[derive(Debug, Args)]
pub(crate) struct InvariantAddArgs {
    /// Rule name
    name: String,
    #[command(flatten)]
    rule: RuleArgs,
    /// Where it applies: global, project:NAME, action:NAME or plan:ID [default: global]
    #[arg(long)]
    scope: Option<String>,
    /// Phases before which it is enforced [default: all]
    #[arg(long, value_name = "PHASES", value_delimiter = ',')]
    at: Vec<Phase>,
    /// No narrower scope may override it
    #[arg(long)]
    locked: bool,
}

/// The condition of an invariant; exactly one kind is given.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct RuleArgs {
    /// CEL expression over the plan's facts
    #[arg(long, value_name = "EXPR")]
    cel: Option<String>,
    /// Shell command; exit 0 passes
    #[arg(long, value_name = "CMD")]
    command: Option<String>,
    /// Instruction for the agents; not checked automatically
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
}

impl InvariantCommand {
    pub(crate) fn verb(&self) -> &'static str {
        match self {
            InvariantCommand::Add(_) => "add",
            InvariantCommand::List { .. } => "list",
            InvariantCommand::Remove { .. } => "remove",
        }
    }
}

/// Returns the list of facts that a CEL expression can use, for the help.
fn facts() -> String {
    let facts = rule_facts();
    let wide =
        |part: fn(&RuleFact) -> &str| facts.iter().map(|fact| part(fact).len()).max().unwrap_or_default();
    let (name, kind) = (wide(|fact| &fact.name), wide(|fact| &fact.kind));
    let line = |fact: &RuleFact| format!("  {:name$}  {:kind$}  {}", fact.name, fact.kind, fact.about);
    let lines: Vec<_> = facts.iter().map(line).collect();
    format!(
        "Facts of a CEL expression:\n{}\n\nExample: drydock invariant add small --cel 'diff.lines_changed < 500' --at apply",
        lines.join("\n")
    )
}

pub(crate) async fn run(session: &Invocation, command: InvariantCommand) -> CliResult {
    let client = session.client();
    match command {
        InvariantCommand::Add(add) => {
            let RuleArgs { cel, command, text } = add.rule;
            let new = NewInvariant {
                name: add.name,
                cel,
                command,
                text,
                scope: add.scope,
                at: add.at,
                locked: add.locked,
            };
            let invariant = client.invariant_add(&new).await?;
            let text = render::invariant::list(std::slice::from_ref(&invariant));
            Ok(Report::new(OneInvariant { invariant }, text))
        }
        InvariantCommand::List { effective } => {
            let invariants = client.invariants(&InvariantQuery { effective }).await?;
            let text = render::invariant::list(&invariants.invariants);
            Ok(Report::new(invariants, text).or_say("no invariants"))
        }
        InvariantCommand::Remove { name, scope } => {
            client.invariant_remove(&name, &ScopeQuery { scope }).await?;
            Ok(Report::new(json!({ "removed": name }), "")
                .note(Level::Info, format!("removed invariant {name}")))
        }
    }
}
