//! Execute: an agent works in a worktree of its own; what it leaves is captured, recorded in its changeset, judged
//! by the validations, and becomes the head commit.

use drydock_domain::{ChangeOp, Command, Completion, ErrorClass, NewEntry};
use drydock_worktree::{Captured, Change, Checkout, Verified};

use super::agents::{AgentEnd, Role};
use super::scope::{End, Scope, signature, snapshot};
use crate::error::EngineError;
use crate::task;

/// How many entries are recorded in one commit.
const ENTRIES_PER_RECORD: usize = 1_000;

pub(super) async fn run(scope: &Scope<'_>) -> Result<End, EngineError> {
    let Some(agent) =
        scope.plan.spec.agents.execute.clone().or_else(|| scope.engine.settings().default_agent.clone())
    else {
        let text = "no agent is named: neither by the action, nor by --agent, nor as [defaults] agent";
        return Ok(scope.failed(ErrorClass::AgentMissing, text));
    };
    // Opened first: it is a fenced commit, so a process that lost its lease goes no further.
    let changeset = scope
        .engine
        .store()
        .changeset_open(scope.hold.lease(), &scope.run, &agent, scope.engine.fresh_changeset())
        .await?;
    let _alive = scope.prepare().await?;
    let (path, branch, base) = (scope.tree(), scope.plan.branch(), scope.base()?);
    let checkout = scope.git(move |repository| repository.checkout_add(&path, &branch, &base)).await?;
    match scope.agent(&agent, Role::Writer, &checkout).await? {
        AgentEnd::Finished { .. } => {}
        AgentEnd::Ended(end) => return Ok(end),
    }
    if let Some(end) = moved(scope, &checkout).await? {
        return Ok(end);
    }
    let (captured, changes) = capture(scope, &checkout).await?;
    let entries: Vec<_> = changes.into_iter().map(entry).collect();
    for part in entries.chunks(ENTRIES_PER_RECORD) {
        scope.engine.store().changeset_record(&changeset, part.to_vec()).await?;
    }
    scope.engine.store().changeset_seal(changeset).await?;
    let Some(validations) = scope.validate(&scope.tree()).await? else { return Ok(End::Stopped) };
    let failed: Vec<_> = validations.iter().filter(|run| run.required && !run.passed).collect();
    if !failed.is_empty() {
        let text =
            failed.iter().map(|run| format!("{}: {}", run.name, run.text)).collect::<Vec<_>>().join("\n");
        return Ok(scope.failed(ErrorClass::ValidationFailed, text));
    }
    let head = captured.commit.to_string();
    let set = checkout.clone();
    scope.git(move |_| set.branch_set(&captured.commit)).await?;
    let completion = Completion::Executed { head, validations };
    Ok(End::Report(Box::new(Command::Complete(scope.run.clone(), completion))))
}

/// Refuses the work of an agent that left its branch or rewrote its base away: it could not be told what it did.
async fn moved(scope: &Scope<'_>, checkout: &Checkout) -> Result<Option<End>, EngineError> {
    let (seen, base) = (checkout.clone(), scope.base()?);
    let text = match scope.git(move |_| seen.verify(&base)).await? {
        Verified::Sound { .. } => return Ok(None),
        Verified::Missing => "the worktree is gone".to_owned(),
        other => format!("the worktree is not where it began: {other:?}"),
    };
    Ok(Some(scope.failed(ErrorClass::Inconsistent, text)))
}

/// Captures the worktree, keeps it as a snapshot, and lists what changed.
async fn capture(scope: &Scope<'_>, checkout: &Checkout) -> Result<(Captured, Vec<Change>), EngineError> {
    let (checkout, base, plan) = (checkout.clone(), scope.base()?, scope.plan.id.clone());
    let (repository, message) = (scope.repository.clone(), message(scope));
    task::blocking(move || {
        let captured = checkout.capture(&base, &message, &signature(&repository))?;
        snapshot(&repository, plan.as_str(), &captured)?;
        let changes = repository.changes(&base, &captured.commit)?;
        Ok((captured, changes))
    })
    .await
}

fn message(scope: &Scope<'_>) -> String {
    super::apply::message(&scope.plan)
}

/// Turns what git sees into an entry of the changeset.
pub(super) fn entry(change: Change) -> NewEntry {
    NewEntry {
        op: match change.op {
            drydock_worktree::ChangeOp::Create => ChangeOp::Create,
            drydock_worktree::ChangeOp::Modify => ChangeOp::Modify,
            drydock_worktree::ChangeOp::Delete => ChangeOp::Delete,
            drydock_worktree::ChangeOp::Rename => ChangeOp::Rename,
        },
        path: change.path,
        from: change.from,
        before: change.before,
        after: change.after,
    }
}
