//! The definition of the command line. Help, completions and the manual pages are generated from it.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use super::{
    action, agent, backup, changeset, checkpoint, decision, demo, doctor, events, gc, invariant, lock,
    manual, plan, project, run, schema, serve, store, token,
};

/// Run coding agents in isolated git worktrees; review and land what they do.
#[derive(Debug, Parser)]
#[command(name = "drydock", version, max_term_width = 100, propagate_version = false)]
#[command(after_help = "Exit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 conflict, 5 blocked, \
                        6 a person must decide, 130 interrupted, 143 terminated.")]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: CliCommand,
}

/// Global options, accepted by every command.
#[derive(Debug, Clone, Args)]
pub(crate) struct Global {
    /// Store: a file, or postgres://… [default: $XDG_DATA_HOME/drydock/drydock.db]
    #[arg(long, global = true, env = "DRYDOCK_STORE", value_name = "URL", hide_env = true)]
    pub(crate) store: Option<String>,
    /// Use this server instead of opening the store here, e.g. http://127.0.0.1:7717
    #[arg(long, global = true, env = "DRYDOCK_SERVER", value_name = "URL", hide_env = true)]
    pub(crate) server: Option<String>,
    /// File with the token for the server [default: $DRYDOCK_TOKEN, or $XDG_CONFIG_HOME/drydock/token]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Configuration file [default: $XDG_CONFIG_HOME/drydock/config.toml]
    #[arg(long, global = true, env = "DRYDOCK_CONFIG", value_name = "FILE", hide_env = true)]
    pub(crate) config: Option<PathBuf>,
    /// Output format on stdout
    #[arg(long, global = true, value_enum, default_value_t = Format::Auto, hide_default_value = true)]
    pub(crate) format: Format,
    /// Same as --format json
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print only errors and questions on stderr
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
}

/// Output format on stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Text (default).
    Auto,
    /// Text.
    Text,
    /// One JSON object per command.
    Json,
}

/// The top-level commands.
#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// Run a task here: plan it, watch it, review the diff, land it
    Run(run::RunArgs),
    /// Manage the repositories that plans work in
    #[command(subcommand)]
    Project(project::ProjectCommand),
    /// Manage reusable task templates
    #[command(subcommand)]
    Action(action::ActionCommand),
    /// Manage rules that can block a change
    #[command(subcommand)]
    Invariant(invariant::InvariantCommand),
    /// List and check agents
    #[command(subcommand)]
    Agent(agent::AgentCommand),
    /// Create, inspect and steer plans
    #[command(subcommand)]
    Plan(plan::PlanCommand),
    /// List and answer questions
    #[command(subcommand)]
    Decision(decision::DecisionCommand),
    /// List the files that each agent changed
    #[command(subcommand)]
    Changeset(changeset::ChangesetCommand),
    /// Checkpoints of a plan's worktree
    #[command(subcommand)]
    Checkpoint(checkpoint::CheckpointCommand),
    /// List and break locks
    #[command(subcommand)]
    Lock(lock::LockCommand),
    /// Backups of commits removed from a plan's branch
    #[command(subcommand)]
    Backup(backup::BackupCommand),
    /// Manage tokens for the HTTP API
    #[command(subcommand)]
    Token(token::TokenCommand),
    /// Print raw events
    Events(events::EventsArgs),
    /// Check git, store, agents, sandbox and locks
    Doctor(doctor::DoctorArgs),
    /// Remove worktrees and refs that are safe to delete
    Gc(gc::GcArgs),
    /// Start the web page, the API and workers
    Serve(serve::ServeArgs),
    /// Work on queued plans until stopped
    Worker(serve::WorkerArgs),
    /// Migrate, check and copy the store
    #[command(subcommand)]
    Store(store::StoreCommand),
    /// Serve tools over MCP to the agent that starts it, for that agent's run (internal)
    Mcp,
    /// Run an example plan in a scratch repository
    Demo(demo::Demo),
    /// Print the JSON Schema of a file that agents write for drydock
    Schema(schema::Schema),
    /// Print the completion script of a shell
    Completions(manual::Completions),
    /// Print the manual page
    Man(manual::Man),
}

impl CliCommand {
    /// Returns the command's words, such as `plan show`, for the envelope.
    pub(crate) fn words(&self) -> String {
        let (group, verb) = match self {
            CliCommand::Run(_) => ("run", None),
            CliCommand::Project(project) => ("project", Some(project.verb())),
            CliCommand::Action(action) => ("action", Some(action.verb())),
            CliCommand::Invariant(invariant) => ("invariant", Some(invariant.verb())),
            CliCommand::Agent(agent) => ("agent", Some(agent.verb())),
            CliCommand::Plan(plan) => ("plan", Some(plan.verb())),
            CliCommand::Decision(decision) => ("decision", Some(decision.verb())),
            CliCommand::Changeset(changeset) => ("changeset", Some(changeset.verb())),
            CliCommand::Checkpoint(checkpoint) => ("checkpoint", Some(checkpoint.verb())),
            CliCommand::Lock(lock) => ("lock", Some(lock.verb())),
            CliCommand::Backup(backup) => ("backup", Some(backup.verb())),
            CliCommand::Token(token) => ("token", Some(token.verb())),
            CliCommand::Events(_) => ("events", None),
            CliCommand::Doctor(_) => ("doctor", None),
            CliCommand::Gc(_) => ("gc", None),
            CliCommand::Serve(_) => ("serve", None),
            CliCommand::Worker(_) => ("worker", None),
            CliCommand::Store(store) => ("store", Some(store.verb())),
            CliCommand::Mcp => ("mcp", None),
            CliCommand::Demo(_) => ("demo", None),
            CliCommand::Schema(_) => ("schema", None),
            CliCommand::Completions(_) => ("completions", None),
            CliCommand::Man(_) => ("man", None),
        };
        match verb {
            Some(verb) => format!("{group} {verb}"),
            None => group.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_of_the_contract_is_understood() {
        for line in [
            "run 'fix it' --project p --agent a --profile auto --yes",
            "project add p --repo . --target main --remote origin --validation 'make test' --validation x",
            "project list",
            "project show p",
            "project remove p",
            "action create --file f.toml",
            "action show a",
            "invariant add n --cel true --scope project:p --at strategize,execute --locked",
            "invariant add n --command true --at apply",
            "invariant list --effective pln-1",
            "invariant remove n --scope global",
            "agent check a",
            "plan use fix --project p --arg a=b --arg c=d=e --profile auto --invariant small=true",
            "plan strategize pln-1 --detach",
            "plan execute pln-1",
            "plan apply pln-1 --json",
            "plan list --phase execute --state errored --project p --action a --limit 5 --after x",
            "plan show x",
            "plan tree x",
            "plan explain x",
            "plan explain x 1.2",
            "schema strategy",
            "plan diff x",
            "plan events x --after 3",
            "plan watch x",
            "plan why x",
            "plan cancel x --reason no",
            "plan retry x",
            "plan revert x --reason no",
            "plan prompt x 'be kind'",
            "plan takeover x",
            "decision list --open",
            "decision list --limit 5 --after x",
            "serve --workers 0",
            "decision show d",
            "decision resolve d --option approve --note ok",
            "changeset list x",
            "changeset show c",
            "checkpoint list x",
            "lock list",
            "lock break l --reason gone",
            "token create laptop --role human --expires 30d",
            "token create a --role agent --run run-1",
            "token list --server http://h:1 --token-file f",
            "token link",
            "token link --name anna --at https://dock.example",
            "token revoke tok-1",
            "serve --listen 0.0.0.0:7717 --tokens required",
            "serve --no-link",
            "events --after 3 --follow",
            "doctor -q",
            "gc --dry-run --format json",
            "serve --listen 127.0.0.1:0 --workers 3",
            "worker",
            "store check",
            "store backup copy.db",
            "mcp",
            "demo",
            "completions bash",
            "man",
        ] {
            let words = line.split('\'').enumerate().flat_map(|(place, part)| match place % 2 {
                0 => part.split_whitespace().collect::<Vec<_>>(),
                _ => vec![part],
            });
            let argv = std::iter::once("drydock").chain(words);
            let cli = Cli::try_parse_from(argv).unwrap_or_else(|error| panic!("{line}: {error}"));
            assert!(line.starts_with(&cli.command.words()), "{line} is called {:?}", cli.command.words());
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for line in [
            "plan list --phase sleep",
            "invariant add n",
            "invariant add n --cel a --text b",
            "plan use fix",
            "plan use fix --project p --arg novalue",
            "lock break l",
            "token create laptop",
            "token create laptop --role king",
            "token create laptop --role agent",
            "token create laptop --role human --expires 30",
            "serve --tokens maybe",
            "token link --at dock.example",
            "plan list --limit 0",
            "decision list --limit 0",
            "events --limit 0",
            "worker --workers 0",
            "worker --workers 65",
            "plan rollback x",
            "decision resolve d",
        ] {
            let argv = std::iter::once("drydock").chain(line.split_whitespace());
            assert!(Cli::try_parse_from(argv).is_err(), "{line} was accepted");
        }
    }
}
