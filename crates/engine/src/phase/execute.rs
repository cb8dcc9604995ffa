//! Execute: an agent works in a worktree of its own; what it leaves is captured, recorded in its changeset, judged
//! by the validations together with what others put on the branch, and becomes the head commit.

use drydock_domain::{ChangeOp, Command, Completion, ErrorClass, NewEntry, Publish, ValidationRun};
use drydock_store::ChangesetHandle;
use drydock_worktree::{Change, Checkout, CommitId, Verified};

use super::agents::{AgentEnd, Role};
use super::scope::{End, Scope, signature, snapshot};
use crate::error::EngineError;
use crate::sync::Joined;
use crate::task;

/// How many entries are recorded in one commit.
const ENTRIES_PER_RECORD: usize = 1_000;
/// How often what others put on the branch while the work was being judged is taken in.
const JOINS_MAX: usize = 5;

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
    let (path, branch, from) = (scope.tree(), scope.plan.branch(), scope.from()?);
    let checkout = scope.git(move |repository| repository.checkout_add(&path, &branch, &from)).await?;
    match scope.agent(&agent, Role::Writer, &checkout).await? {
        AgentEnd::Finished { .. } => {}
        AgentEnd::Ended(end) => return Ok(end),
    }
    if let Some(end) = moved(scope, &checkout).await? {
        return Ok(end);
    }
    let captured = capture(scope, &checkout).await?;
    let judged = judge(scope, &checkout, captured).await?;
    record(scope, changeset, judged.head.clone()).await?;
    Ok(match judged.verdict {
        Verdict::Passed(validations) => {
            let completion = Completion::Executed { head: judged.head.to_string(), validations };
            End::Report(Box::new(Command::Complete(scope.run.clone(), completion)))
        }
        Verdict::Ended(end) => end,
    })
}

/// The work of a run, and what was said of it.
struct Judged {
    /// The commit that holds it.
    head: CommitId,
    verdict: Verdict,
}

enum Verdict {
    Passed(Vec<ValidationRun>),
    Ended(End),
}

/// Takes in what others put on the branch meanwhile, validates the result, and sends it to the remote. What arrives
/// in between is validated too: nothing completes that was not judged as it is.
async fn judge(scope: &Scope<'_>, checkout: &Checkout, captured: CommitId) -> Result<Judged, EngineError> {
    let (set, commit) = (checkout.clone(), captured.clone());
    scope.git(move |_| set.branch_set(&commit)).await?;
    let mut head = without_own_folder(scope, checkout, captured).await?;
    let mut joined = scope.together().after(checkout, Publish::No).await?;
    for _ in 0..JOINS_MAX {
        match joined {
            Joined::Still => {}
            Joined::Moved(to) => head = without_own_folder(scope, checkout, to).await?,
            Joined::Diverged(divergence) => {
                let end = End::Report(Box::new(Command::Diverge(divergence)));
                return Ok(Judged { head, verdict: Verdict::Ended(end) });
            }
        }
        let validations = match validated(scope).await? {
            Verdict::Passed(validations) => validations,
            ended @ Verdict::Ended(_) => return Ok(Judged { head, verdict: ended }),
        };
        joined = scope.together().after(checkout, Publish::Yes).await?;
        if matches!(joined, Joined::Still) {
            return Ok(Judged { head, verdict: Verdict::Passed(validations) });
        }
    }
    let text = format!("others moved the branch {JOINS_MAX} times while its work was being judged");
    Ok(Judged { head, verdict: Verdict::Ended(scope.failed(ErrorClass::Git, text)) })
}

/// Takes what others put into `.drydock/` back out: that folder is for drydock and its agents, and never lands.
async fn without_own_folder(
    scope: &Scope<'_>,
    checkout: &Checkout,
    head: CommitId,
) -> Result<CommitId, EngineError> {
    let (base, checkout) = (scope.base()?, checkout.clone());
    let message = format!("Leave out .drydock\n\nDrydock-Plan: {}\n", scope.plan.id);
    scope
        .git(move |repository| {
            let author = signature(&repository);
            let clean = repository.without_own_folder(&base, &head, &message, &author)?;
            if clean != head {
                checkout.branch_set(&clean)?;
            }
            Ok(clean)
        })
        .await
}

async fn validated(scope: &Scope<'_>) -> Result<Verdict, EngineError> {
    let Some(validations) = scope.validate(&scope.tree()).await? else {
        return Ok(Verdict::Ended(End::Stopped));
    };
    let failed: Vec<_> = validations.iter().filter(|run| run.required && !run.passed).collect();
    if failed.is_empty() {
        return Ok(Verdict::Passed(validations));
    }
    let text = failed.iter().map(|run| format!("{}: {}", run.name, run.text)).collect::<Vec<_>>().join("\n");
    Ok(Verdict::Ended(scope.failed(ErrorClass::ValidationFailed, text)))
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

/// Captures the worktree and keeps it as a snapshot.
async fn capture(scope: &Scope<'_>, checkout: &Checkout) -> Result<CommitId, EngineError> {
    let (checkout, from, plan) = (checkout.clone(), scope.from()?, scope.plan.id.clone());
    let (repository, message) = (scope.repository.clone(), message(scope));
    task::blocking(move || {
        let captured = checkout.capture(&from, &message, &signature(&repository))?;
        snapshot(&repository, plan.as_str(), &captured)?;
        Ok(captured.commit)
    })
    .await
}

/// Records every change of the run in the changeset that it opened, and seals it.
async fn record(scope: &Scope<'_>, changeset: ChangesetHandle, head: CommitId) -> Result<(), EngineError> {
    let base = scope.base()?;
    let changes = scope.git(move |repository| repository.changes(&base, &head)).await?;
    let entries: Vec<_> = changes.into_iter().map(entry).collect();
    for part in entries.chunks(ENTRIES_PER_RECORD) {
        scope.engine.store().changeset_record(&changeset, part.to_vec()).await?;
    }
    scope.engine.store().changeset_seal(changeset).await?;
    Ok(())
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
