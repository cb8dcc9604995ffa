//! Strategize: an agent reads the base and writes a strategy draft. It may change nothing else.

use std::path::Path;

use drydock_agent::read_below;
use drydock_domain::{Choice, Command, Completion, ErrorClass, Event, Fanout, Publish, SubplanStatus};

use super::agents::{AgentAssignment, AgentEnd, AgentRole};
use super::scope::{RunContext, RunOutcome};
use crate::error::EngineError;
use crate::subplan::fanout_of;
use crate::sync::AfterRunSync;
use crate::task;
use crate::tree::{self, DRAFT, StrategyDraft};

/// Maximum number of forbidden paths named in an error.
const PATHS_NAMED_MAX: usize = 10;

pub(super) async fn run(scope: &RunContext<'_>) -> Result<RunOutcome, EngineError> {
    let Some(agent) = scope.plan.spec.agents.strategize.clone() else {
        return Ok(complete(scope, Vec::new(), None));
    };
    let _alive = scope.prepare().await?;
    let (path, branch, from) = (scope.tree(), scope.plan.branch(), scope.from()?);
    let checkout = scope.git(move |repository| repository.checkout_add(&path, &branch, &from)).await?;
    let (choices, mut carried, asked) =
        match scope.agent(&AgentAssignment::of(&agent, AgentRole::Strategist, &checkout)).await? {
            AgentEnd::Finished { choices, carried, subplans, .. } => (choices, carried, subplans),
            AgentEnd::Ended(end) => return Ok(end),
        };
    let (seen, from) = (checkout.clone(), scope.from()?);
    let changed = match scope.git(move |_| seen.changed_paths(&from)).await {
        Ok(changed) => changed,
        Err(error) => return scope.uncaptured(error).await,
    };
    let forbidden: Vec<_> = changed.into_iter().filter(|path| path != DRAFT).collect();
    if !forbidden.is_empty() {
        let named = forbidden.iter().take(PATHS_NAMED_MAX).cloned().collect::<Vec<_>>().join(", ");
        let text = format!("strategize may write only {DRAFT}, and {} changed {named}", agent);
        return Ok(scope.failed(ErrorClass::ForbiddenChange, text));
    }
    // The draft is adopted only if branch and remote are in sync.
    if let AfterRunSync::Diverged(divergence) = scope.together().sync_after(&checkout, Publish::No).await? {
        return Ok(RunOutcome::Report(Box::new(Command::Diverge(divergence))));
    }
    let tree = scope.tree();
    let mut strategy = StrategyDraft::default();
    match task::blocking(move || read_below(&tree, Path::new(DRAFT))).await {
        Ok(text) => match tree::parse(&text) {
            Ok(parsed) => strategy = parsed,
            Err(reason) => return Ok(scope.failed(ErrorClass::StrategyInvalid, reason)),
        },
        // Without a draft, the messages are the strategy.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Ok(scope.failed(ErrorClass::StrategyInvalid, format!("{DRAFT}: {error}"))),
    }
    let choices = match tree::join(choices, std::mem::take(&mut strategy.choices)) {
        Ok(joined) => joined,
        Err(reason) => return Ok(scope.failed(ErrorClass::StrategyInvalid, reason)),
    };
    // The draft is newer than an earlier run's report of the same subplan.
    carried.retain(|one| strategy.subplans.iter().all(|drafted| drafted.name != one.name));
    strategy.subplans.splice(0..0, carried.into_iter().chain(asked));
    match fanout_of(scope.engine, &scope.plan, &strategy).await? {
        Ok(fanout) => {
            tell_landed(scope, fanout.as_ref()).await?;
            Ok(complete(scope, choices, fanout))
        }
        Err(reason) => Ok(scope.failed(ErrorClass::StrategyInvalid, reason)),
    }
}

/// Emits an alert for each subplan that has already landed and is not done again.
async fn tell_landed(scope: &RunContext<'_>, fanout: Option<&Fanout>) -> Result<(), EngineError> {
    for piece in fanout.into_iter().flat_map(|fanout| &fanout.pieces) {
        if let (SubplanStatus::Joined { commit }, Some(project)) = (&piece.fate, &piece.project) {
            let name = &piece.name;
            let text =
                format!("subplan {name} has already landed in {project} as {commit} and is not run again");
            scope.emit(Event::Alert { priority: "low", text }).await?;
        }
    }
    Ok(())
}

fn complete(scope: &RunContext<'_>, choices: Vec<Choice>, fanout: Option<Fanout>) -> RunOutcome {
    let completion = Completion::Strategized { choices, fanout };
    RunOutcome::Report(Box::new(Command::Complete(scope.run.clone(), completion)))
}
