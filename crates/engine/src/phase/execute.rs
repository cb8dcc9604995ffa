//! Execute: an agent works in its own worktree. Its work is captured and judged, sent back if it must be
//! fixed, recorded in the agent's changeset, and becomes the head commit.

use std::collections::BTreeMap;

use drydock_domain::{CHECKPOINT, Command, ErrorClass, Event, Failure, PathChange, Question, RejectedBy};
use drydock_store::ChangesetHandle;
use drydock_worktree::{Checkout, CommitId, Staged, TreeChange, Verified};

use serde_json::json;

use super::agents::{AgentAssignment, AgentEnd, AgentRole};
use super::ended::{AgentOutcome, FINISHED};
use super::judge::{JudgeOutcome, WorkToJudge};
use super::leftovers::remove_untouched;
use super::scope::{RunContext, RunOutcome, signature, write_checkpoint};
use crate::error::EngineError;
use crate::task;

/// Number of changeset entries recorded in one commit.
const ENTRIES_PER_RECORD: usize = 1_000;
/// The author of the changes of subplans, in a plan without an agent.
const SUBPLANS: &str = "subplans";
/// Maximum number of times that failed validations send the work back to the agent.
const MENDS_MAX: usize = 3;
/// Number of refused proposals in one run after which a person is asked (S4.12).
const REFUSALS_MAX: usize = 5;

pub(super) async fn run(scope: &RunContext<'_>) -> Result<RunOutcome, EngineError> {
    let agent = scope.engine.writer(&scope.plan.spec.agents).map(str::to_owned);
    let writer = agent.clone().or_else(|| scope.plan.fanout.as_ref().map(|_| SUBPLANS.to_owned()));
    let Some(writer) = writer else {
        let text = "no agent is set: neither in the action, nor with --agent, nor as [defaults] agent";
        return Ok(scope.failed(ErrorClass::AgentMissing, text));
    };
    // Commits that others added to judged work are judged as they are, without a writer.
    let agent = agent.filter(|_| !scope.plan.reexamines);
    // Opening the changeset is a fenced commit and comes first, so that a process that lost its lease stops
    // here.
    let changeset = scope
        .engine
        .store()
        .changeset_open(scope.hold.lease(), &scope.run, &writer, scope.engine.fresh_changeset())
        .await?;
    let _alive = scope.prepare().await?;
    let (path, branch, from) = (scope.tree(), scope.plan.branch(), scope.from()?);
    let checkout = scope.git(move |repository| repository.checkout_add(&path, &branch, &from)).await?;
    let ended = rounds(scope, agent.as_deref(), &checkout).await?;
    // The result of a subplan joins its parent. If the subplan changed nothing, its run directory is
    // removed at once: git scans all worktrees whenever one is created.
    let completed =
        matches!(&ended.end, RunOutcome::Report(command) if matches!(**command, Command::Complete(..)));
    let untouched = completed && scope.plan.place.is_some() && ended.head == Some(scope.from()?);
    // The agent's changes are recorded regardless of how the run ended.
    let written = match ended.head {
        Some(head) => Some(head),
        None => scope.checkpoint_unfinished(&checkout).await?,
    };
    let end = keeping(ended.end, written.as_ref());
    if let Some(written) = written {
        record(scope, &changeset, written).await?;
    }
    if untouched {
        let (repository, directory) = (scope.repository.clone(), scope.directory());
        task::blocking(move || remove_untouched(&repository, &directory)).await;
    }
    Ok(end)
}

/// How the rounds of a run ended, and the commit that contains the work, if there is one.
struct RoundsResult {
    head: Option<CommitId>,
    end: RunOutcome,
}

/// Runs the agent and judges the result, in rounds: rejected work goes back to the agent until a limit is
/// reached.
async fn rounds(
    scope: &RunContext<'_>,
    agent: Option<&str>,
    checkout: &Checkout,
) -> Result<RoundsResult, EngineError> {
    let (mut onto, mut said) = (scope.from()?, Vec::new());
    let (mut mended, mut refused, mut proposals) = (0, 0, 0);
    // Results of subplans, and a result whose judgement did not end, are judged first. The plan's own agent
    // only fixes them.
    let mut judges_first = scope.plan.fanout.is_some() || scope.plan.judges_first();
    loop {
        let work = match agent.filter(|_| !judges_first) {
            None => WorkToJudge::Joined(onto.clone()),
            Some(agent) => {
                let errand = AgentAssignment {
                    said: &said,
                    ..AgentAssignment::of(agent, AgentRole::Writer, checkout)
                };
                match scope.agent(&errand).await? {
                    AgentEnd::Finished { .. } => {}
                    AgentEnd::Ended(end) => return Ok(RoundsResult { head: None, end }),
                }
                let captured = capture(scope, checkout, &onto).await;
                let outcome = match &captured {
                    Ok(Ok(work)) if is_nothing(scope, work)? => AgentOutcome::NoChange,
                    Ok(Ok(_) | Err(_)) | Err(_) => AgentOutcome::Done,
                };
                scope.emit_ended(agent, FINISHED, Some(outcome)).await?;
                match captured? {
                    Ok(work) => work,
                    Err(end) => return Ok(RoundsResult { head: None, end }),
                }
            }
        };
        judges_first = false;
        let judged = scope.judge(checkout, work, &mut proposals).await?;
        let (sent_back, reasons) = match judged.verdict {
            JudgeOutcome::Ended(end) => return Ok(RoundsResult { head: Some(judged.head), end }),
            JudgeOutcome::SentBack(sent_back, reasons) => (sent_back, reasons),
        };
        let (rounds, rounds_max) = match sent_back {
            RejectedBy::Validation => (&mut mended, MENDS_MAX + 1),
            RejectedBy::Review => (&mut refused, REFUSALS_MAX),
        };
        *rounds += 1;
        let Some(agent) = agent.filter(|_| *rounds < rounds_max) else {
            let end = asked(scope, sent_back, *rounds, &reasons, &judged.head);
            return Ok(RoundsResult { head: Some(judged.head), end });
        };
        if judged.joined {
            onto = judged.head.clone();
        }
        // Files written by a validation are not the agent's work.
        let (tree, head) = (checkout.clone(), judged.head);
        scope.git(move |_| tree.put_back(&head)).await?;
        let details = json!({ "agent": agent, "reasons": reasons });
        scope.emit(Event::Agent { what: "sent_back", details }).await?;
        said = reasons;
    }
}

/// Captures the work of a writer, or returns the end of a run whose work cannot be captured.
async fn capture(
    scope: &RunContext<'_>,
    checkout: &Checkout,
    onto: &CommitId,
) -> Result<Result<WorkToJudge, RunOutcome>, EngineError> {
    let tip = match found(scope, checkout).await? {
        Ok(tip) => tip,
        Err(end) => return Ok(Err(end)),
    };
    match stage(scope, checkout, onto).await {
        Ok(staged) => Ok(Ok(WorkToJudge::Staged { staged, tip })),
        Err(error) => scope.uncaptured(error).await.map(Err),
    }
}

/// Returns true if the captured tree equals that of the plan's base and the action does not allow an empty
/// result.
fn is_nothing(scope: &RunContext<'_>, work: &WorkToJudge) -> Result<bool, EngineError> {
    let (WorkToJudge::Staged { staged, .. }, false) = (work, scope.plan.spec.allow_empty) else {
        return Ok(false);
    };
    Ok(staged.captured().is_none() && *staged.parent() == scope.base()?)
}

/// Adds the commit from which a retry continues to the end of a run, if its failure class keeps the work.
fn keeping(end: RunOutcome, work: Option<&CommitId>) -> RunOutcome {
    match end {
        RunOutcome::Report(command) => RunOutcome::Report(Box::new(match *command {
            Command::Fail(run, failure, None) if failure.class.keeps_work() => {
                let failure = Failure { work: work.map(CommitId::to_string), ..failure };
                Command::Fail(run, failure, None)
            }
            other => other,
        })),
        end @ (RunOutcome::Recorded | RunOutcome::Stopped) => end,
    }
}

/// Asks a person about a result that was sent back as often as allowed.
fn asked(
    scope: &RunContext<'_>,
    sent_back: RejectedBy,
    rounds: usize,
    reasons: &[String],
    head: &CommitId,
) -> RunOutcome {
    let question = Question::rounds_used_up(sent_back, rounds, reasons, head.as_str(), &scope.plan);
    RunOutcome::Report(Box::new(match sent_back {
        RejectedBy::Validation => {
            let failure = Failure::new(ErrorClass::ValidationFailed, reasons.join("\n"));
            Command::Fail(scope.run.clone(), failure, Some(question))
        }
        RejectedBy::Review => Command::Ask(scope.run.clone(), question),
    }))
}

/// Returns the commit at which the agent left its branch. Rejects the work if the agent switched the branch
/// or removed the base from its history, because then its changes cannot be determined.
async fn found(
    scope: &RunContext<'_>,
    checkout: &Checkout,
) -> Result<Result<CommitId, RunOutcome>, EngineError> {
    let (seen, base) = (checkout.clone(), scope.base()?);
    let text = match scope.git(move |_| seen.verify(&base)).await? {
        Verified::Sound { head } => return Ok(Ok(head)),
        Verified::Missing => "the agent removed its worktree".to_owned(),
        Verified::Unrecorded => return Ok(Err(unrecorded(scope, checkout))),
        Verified::Unlinked => "the agent replaced the file .git, which links the worktree to its \
                               repository"
            .to_owned(),
        Verified::Moved { head } => {
            format!(
                "the agent moved its branch to {head}, which does not contain the commit that the run \
                     started from"
            )
        }
        Verified::Switched { branch, .. } => format!("the agent switched to branch {branch}"),
        Verified::Detached { head } => format!("the agent switched to commit {head}"),
    };
    let next =
        "instruct it to change files only; `plan retry` starts again and keeps its changes as a checkpoint";
    Ok(Err(scope.failed(ErrorClass::Inconsistent, format!("{text}: {next}"))))
}

/// Returns the end of a run whose worktree record is missing in git. The agent did not cause this, and its
/// files still exist.
fn unrecorded(scope: &RunContext<'_>, checkout: &Checkout) -> RunOutcome {
    let text = format!(
        "git's record of the worktree {} is missing, but its files exist: another process removed the \
         record from the repository; `drydock plan retry {}` starts again and keeps the directory",
        checkout.path().display(),
        scope.plan.id
    );
    scope.failed(ErrorClass::Git, text)
}

/// Captures the worktree, and stores the capture as a checkpoint if anything changed.
async fn stage(scope: &RunContext<'_>, checkout: &Checkout, onto: &CommitId) -> Result<Staged, EngineError> {
    let (checkout, from, plan) = (checkout.clone(), onto.clone(), scope.plan.id.clone());
    let (repository, message) = (scope.repository.clone(), message(scope));
    task::blocking(move || {
        let staged = checkout.stage(&from, &message, &signature(&repository))?;
        if let Some(captured) = staged.captured() {
            write_checkpoint(&repository, plan.as_str(), &captured)?;
        }
        Ok(staged)
    })
    .await
}

/// Records every change of the run in the changeset of its last author. The commit that ends the run seals
/// the changesets.
async fn record(
    scope: &RunContext<'_>,
    changeset: &ChangesetHandle,
    head: CommitId,
) -> Result<(), EngineError> {
    let base = scope.base()?;
    let authors = scope.together().authors(&base, &head).await?;
    let changes = scope.git(move |repository| repository.changes(&base, &head)).await?;
    let mut of_others: BTreeMap<String, Vec<PathChange>> = BTreeMap::new();
    let mut entries = Vec::new();
    for change in changes {
        match authors.get(&change.path) {
            Some(author) => of_others.entry(author.clone()).or_default().push(entry(change)),
            None => entries.push(entry(change)),
        }
    }
    record_all(scope, changeset, &entries).await?;
    for (author, entries) in of_others {
        let (store, id) = (scope.engine.store(), scope.engine.fresh_changeset());
        let theirs = store.changeset_open(scope.hold.lease(), &scope.run, &author, id).await?;
        record_all(scope, &theirs, &entries).await?;
    }
    Ok(())
}

async fn record_all(
    scope: &RunContext<'_>,
    changeset: &ChangesetHandle,
    entries: &[PathChange],
) -> Result<(), EngineError> {
    for part in entries.chunks(ENTRIES_PER_RECORD) {
        scope.engine.store().changeset_record(changeset, part.to_vec()).await?;
    }
    Ok(())
}

fn message(scope: &RunContext<'_>) -> String {
    format!("{}{CHECKPOINT}: {}\n", super::apply::message(&scope.plan), scope.run)
}

/// Converts a change reported by git into a changeset entry.
pub(super) fn entry(change: TreeChange) -> PathChange {
    PathChange {
        op: change.op,
        path: change.path,
        from: change.from,
        before: change.before,
        after: change.after,
    }
}
