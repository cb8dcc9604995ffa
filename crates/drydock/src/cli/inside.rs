//! Restricts the command line when an agent runs it: an agent may read, and only a person may act. This check stops
//! only an honest agent. One that removes the variable from its environment is stopped by the sandbox, which makes
//! the store read-only.

use drydock_agent::KEEPER;
use drydock_api::{Code, Problem};

use super::args::CliCommand;
use super::plan::PlanCommand;
use super::{action, agent, backup, decision, invariant, lock, project, store};

/// Whether a command changes anything that others rely on.
enum AgentAccess {
    Looks,
    Answers,
    Acts,
}

/// Refuses a command that changes something if it was started inside a run.
pub(crate) fn refuse(command: &CliCommand) -> Result<(), Box<Problem>> {
    if std::env::var_os(KEEPER).is_none() {
        return Ok(());
    }
    let text = match deed(command) {
        AgentAccess::Looks => return Ok(()),
        AgentAccess::Answers => "agents cannot answer decisions".to_owned(),
        AgentAccess::Acts => format!("agents cannot run `drydock {}`", command.words()),
    };
    let hint = "ask a person: send a message of kind `ask`";
    Err(Box::new(Problem::new(Code::Forbidden, text).hint(hint)))
}

/// Classifies every command explicitly, so that a new command does not compile until it is classified.
fn deed(command: &CliCommand) -> AgentAccess {
    match command {
        CliCommand::Run(_)
        | CliCommand::Gc(_)
        | CliCommand::Serve(_)
        | CliCommand::Worker(_)
        | CliCommand::Token(_) => AgentAccess::Acts,
        CliCommand::Changeset(_)
        | CliCommand::Checkpoint(_)
        | CliCommand::Events(_)
        | CliCommand::Doctor(_)
        | CliCommand::Schema(_)
        | CliCommand::Completions(_)
        | CliCommand::Man(_) => AgentAccess::Looks,
        // It acts for its own run only and has no way to answer a decision.
        CliCommand::Mcp => AgentAccess::Looks,
        // It uses a store of its own, which it creates and removes.
        CliCommand::Demo(_) => AgentAccess::Looks,
        CliCommand::Project(command) => match command {
            project::ProjectCommand::List | project::ProjectCommand::Show { .. } => AgentAccess::Looks,
            project::ProjectCommand::Add { .. } | project::ProjectCommand::Remove { .. } => AgentAccess::Acts,
        },
        CliCommand::Action(command) => match command {
            action::ActionCommand::List | action::ActionCommand::Show { .. } => AgentAccess::Looks,
            action::ActionCommand::Create { .. } | action::ActionCommand::Remove { .. } => AgentAccess::Acts,
        },
        CliCommand::Invariant(command) => match command {
            invariant::InvariantCommand::List { .. } => AgentAccess::Looks,
            invariant::InvariantCommand::Add(_) | invariant::InvariantCommand::Remove { .. } => {
                AgentAccess::Acts
            }
        },
        CliCommand::Agent(command) => match command {
            agent::AgentCommand::List => AgentAccess::Looks,
            agent::AgentCommand::Check { .. } => AgentAccess::Acts,
        },
        CliCommand::Decision(command) => match command {
            decision::DecisionCommand::List { .. } | decision::DecisionCommand::Show { .. } => {
                AgentAccess::Looks
            }
            decision::DecisionCommand::Resolve { .. } => AgentAccess::Answers,
        },
        CliCommand::Lock(command) => match command {
            lock::LockCommand::List => AgentAccess::Looks,
            lock::LockCommand::Break { .. } => AgentAccess::Acts,
        },
        CliCommand::Backup(command) => match command {
            backup::BackupCommand::List { .. } | backup::BackupCommand::Show { .. } => AgentAccess::Looks,
            backup::BackupCommand::Restore { .. } | backup::BackupCommand::Prune { .. } => AgentAccess::Acts,
        },
        CliCommand::Store(command) => match command {
            store::StoreCommand::Check | store::StoreCommand::Backup { .. } => AgentAccess::Looks,
            store::StoreCommand::Migrate => AgentAccess::Acts,
        },
        CliCommand::Plan(plan) => of_plan(plan),
    }
}

fn of_plan(plan: &PlanCommand) -> AgentAccess {
    match plan {
        PlanCommand::List(_)
        | PlanCommand::Show(_)
        | PlanCommand::Tree(_)
        | PlanCommand::Explain(_)
        | PlanCommand::Diff(_)
        | PlanCommand::Events { .. }
        | PlanCommand::Log(_)
        | PlanCommand::Watch(_)
        | PlanCommand::Why(_) => AgentAccess::Looks,
        PlanCommand::Use(_)
        | PlanCommand::Strategize(_)
        | PlanCommand::Execute(_)
        | PlanCommand::Apply(_)
        | PlanCommand::Cancel(_)
        | PlanCommand::Retry(_)
        | PlanCommand::Accept(_)
        | PlanCommand::Revert(_)
        | PlanCommand::Prompt(_)
        | PlanCommand::Rollback(_)
        | PlanCommand::Takeover(_)
        | PlanCommand::Sync(_)
        | PlanCommand::Adopt(_) => AgentAccess::Acts,
    }
}
