//! Restricts the command line when an agent runs it: an agent may read, and only a person may act. This check stops
//! only an honest agent. One that removes the variable from its environment is stopped by the sandbox, which makes
//! the store read-only.

use drydock_agent::KEEPER;
use drydock_api::{Code, Problem};

use super::args::Command;
use super::plan::Plan;
use super::{action, agent, backup, decision, invariant, lock, project, store};

/// Whether a command changes anything that others rely on.
enum Deed {
    Looks,
    Answers,
    Acts,
}

/// Refuses a command that changes something if it was started inside a run.
pub(crate) fn refuse(command: &Command) -> Result<(), Box<Problem>> {
    if std::env::var_os(KEEPER).is_none() {
        return Ok(());
    }
    let text = match deed(command) {
        Deed::Looks => return Ok(()),
        Deed::Answers => "agents cannot answer decisions".to_owned(),
        Deed::Acts => format!("agents cannot run `drydock {}`", command.words()),
    };
    let hint = "ask a person: send a message of kind `ask`";
    Err(Box::new(Problem::new(Code::Forbidden, text).hint(hint)))
}

/// Classifies every command explicitly, so that a new command does not compile until it is classified.
fn deed(command: &Command) -> Deed {
    match command {
        Command::Run(_) | Command::Gc(_) | Command::Serve(_) | Command::Worker(_) | Command::Token(_) => {
            Deed::Acts
        }
        Command::Changeset(_)
        | Command::Checkpoint(_)
        | Command::Events(_)
        | Command::Doctor(_)
        | Command::Schema(_)
        | Command::Completions(_)
        | Command::Man(_) => Deed::Looks,
        // It acts for its own run only and has no way to answer a decision.
        Command::Mcp => Deed::Looks,
        // It uses a store of its own, which it creates and removes.
        Command::Demo(_) => Deed::Looks,
        Command::Project(command) => match command {
            project::Project::List | project::Project::Show { .. } => Deed::Looks,
            project::Project::Add { .. } | project::Project::Remove { .. } => Deed::Acts,
        },
        Command::Action(command) => match command {
            action::Action::List | action::Action::Show { .. } => Deed::Looks,
            action::Action::Create { .. } | action::Action::Remove { .. } => Deed::Acts,
        },
        Command::Invariant(command) => match command {
            invariant::Invariant::List { .. } => Deed::Looks,
            invariant::Invariant::Add(_) | invariant::Invariant::Remove { .. } => Deed::Acts,
        },
        Command::Agent(command) => match command {
            agent::Agent::List => Deed::Looks,
            agent::Agent::Check { .. } => Deed::Acts,
        },
        Command::Decision(command) => match command {
            decision::Decision::List { .. } | decision::Decision::Show { .. } => Deed::Looks,
            decision::Decision::Resolve { .. } => Deed::Answers,
        },
        Command::Lock(command) => match command {
            lock::Lock::List => Deed::Looks,
            lock::Lock::Break { .. } => Deed::Acts,
        },
        Command::Backup(command) => match command {
            backup::Backup::List { .. } | backup::Backup::Show { .. } => Deed::Looks,
            backup::Backup::Restore { .. } | backup::Backup::Prune { .. } => Deed::Acts,
        },
        Command::Store(command) => match command {
            store::Store::Check | store::Store::Backup { .. } => Deed::Looks,
            store::Store::Migrate => Deed::Acts,
        },
        Command::Plan(plan) => of_plan(plan),
    }
}

fn of_plan(plan: &Plan) -> Deed {
    match plan {
        Plan::List(_)
        | Plan::Show(_)
        | Plan::Tree(_)
        | Plan::Explain(_)
        | Plan::Diff(_)
        | Plan::Events { .. }
        | Plan::Log(_)
        | Plan::Watch(_)
        | Plan::Why(_) => Deed::Looks,
        Plan::Use(_)
        | Plan::Strategize(_)
        | Plan::Execute(_)
        | Plan::Apply(_)
        | Plan::Cancel(_)
        | Plan::Retry(_)
        | Plan::Accept(_)
        | Plan::Revert(_)
        | Plan::Prompt(_)
        | Plan::Rollback(_)
        | Plan::Takeover(_)
        | Plan::Sync(_)
        | Plan::Adopt(_) => Deed::Acts,
    }
}
