//! Apply: merge in memory against the target as it is now, judge the merged result, record the intent, move the
//! target by compare-and-swap, record the end. The user's files change only by a fast-forward that refuses to touch
//! dirty ones. All of it under the project's lock.

use drydock_domain::{
    Command, Enforcement, ErrorClass, Event, Intent, NewEntry, Phase, Plan, PlanId, Question, RunId,
    SyncOutcome, ValidationRun, told, trailer,
};
use drydock_worktree::{CommitId, Landing, Merge, Push, RefDeleted, Repository};
use tracing::Instrument;

use super::execute::entry;
use super::scope::{End, Scope, commit_id, signature};
use super::validate::Validated;
use crate::engine::WORKER;
use crate::error::EngineError;
use crate::hold::ProjectHold;
use crate::rule::Subject;
use crate::{task, trace};

/// How often a landing starts over because the target moved in between.
const ATTEMPTS_MAX: usize = 10;
const SUBJECT_MAX: usize = 72;

pub(super) async fn run(scope: &Scope<'_>) -> Result<End, EngineError> {
    let _alive = scope.prepare().await?;
    let project = match scope.engine.hold_project(&scope.project.name, &scope.stop).await {
        Err(EngineError::LockHeld { .. }) if scope.stop.is_cancelled() => return Ok(End::Stopped),
        held => held?,
    };
    let lander = Lander { scope, project: &project };
    let ended = {
        let landing = lander.run();
        tokio::pin!(landing);
        tokio::select! {
            ended = &mut landing => ended,
            () = project.lost().cancelled() => {
                // Waited for to its end: git must not move the target after we have let go of the plan.
                scope.stop.cancel();
                drop(landing.await);
                Err(EngineError::LeaseLost { key: scope.project.name.to_string() })
            }
        }
    };
    project.release().await;
    ended
}

/// A landing under both locks.
struct Lander<'a> {
    scope: &'a Scope<'a>,
    project: &'a ProjectHold,
}

/// What came of one attempt.
enum Attempt {
    Ended(End),
    TargetMoved,
}

/// A merged result that has not landed.
struct Merged {
    from: CommitId,
    commit: CommitId,
}

impl Lander<'_> {
    async fn run(&self) -> Result<End, EngineError> {
        if let Some(intent) = self.scope.plan.intent.clone()
            && let Some(end) = self.settle(intent).await?
        {
            return Ok(end);
        }
        if let Some(end) = self.unrecorded().await? {
            return Ok(end);
        }
        for _ in 0..ATTEMPTS_MAX {
            match self.attempt().await? {
                Attempt::Ended(end) => return Ok(end),
                Attempt::TargetMoved => {}
            }
        }
        let text =
            format!("{} moved {ATTEMPTS_MAX} times while the plan was being landed", self.scope.target());
        Ok(self.scope.failed(ErrorClass::Git, text))
    }

    /// Finds out how a landing that was begun before ended. The repository says it: the target contains the commit,
    /// or still stands where it stood, or was rewritten, in which case only a person can say.
    async fn settle(&self, intent: Intent) -> Result<Option<End>, EngineError> {
        let (from, to) = (commit_id(&intent.from)?, commit_id(&intent.to)?);
        let (id, begun, seen) = (self.scope.plan.id.clone(), from.clone(), intent.clone());
        let repository = self.scope.repository.clone();
        let (has_to, has_from) = task::blocking(move || {
            let has_to = landed(&repository, &id, &seen)?;
            Ok::<_, EngineError>((has_to, repository.contains(&seen.target, &begun)?))
        })
        .await?;
        match (has_to, has_from) {
            (true, _) => self.landed(&to).await.map(Some),
            (false, true) => {
                self.scope
                    .engine
                    .issue_landing(self.scope.hold, self.project, Command::Forgo, WORKER)
                    .await?;
                Ok(None)
            }
            (false, false) => {
                let question = Question::apply_outcome(&intent.target, &intent.from, &intent.to);
                Ok(Some(End::Report(Box::new(Command::Ask(self.scope.run.clone(), question)))))
            }
        }
    }

    /// Compares what Execute recorded with what the head commit holds; Apply lands exactly what was recorded (S3.3).
    async fn unrecorded(&self) -> Result<Option<End>, EngineError> {
        let recorded = recorded(self.scope.engine, &self.scope.plan).await?;
        let subject = Subject::of(&self.scope.plan)?;
        let changes =
            self.scope.git(move |repository| repository.changes(&subject.from, &subject.to)).await?;
        let held: Vec<_> = changes.into_iter().map(entry).collect();
        if same(recorded, held) {
            return Ok(None);
        }
        let text = "the head commit does not hold what the changesets recorded";
        Ok(Some(self.scope.failed(ErrorClass::Inconsistent, text)))
    }

    async fn attempt(&self) -> Result<Attempt, EngineError> {
        let scope = self.scope;
        let merged = match self.merge().await? {
            Ok(merged) => merged,
            Err(reasons) => return Ok(Attempt::Ended(self.constrained(reasons))),
        };
        let reasons = match self.judge(&merged).await? {
            Some(reasons) => reasons,
            None => return Ok(Attempt::Ended(End::Stopped)),
        };
        if !reasons.is_empty() {
            return Ok(Attempt::Ended(self.constrained(reasons)));
        }
        if scope.stop.is_cancelled() {
            return Ok(Attempt::Ended(End::Stopped));
        }
        self.land(merged).instrument(trace::landing()).await
    }

    /// Merges without touching a file. A conflict is a reason, not an error.
    async fn merge(&self) -> Result<Result<Merged, Vec<String>>, EngineError> {
        let scope = self.scope;
        let (target, subject, text) =
            (scope.target().to_owned(), Subject::of(&scope.plan)?, message(&scope.plan));
        let repository = scope.repository.clone();
        task::blocking(move || {
            let Some(from) = repository.branch_tip(&target)? else {
                return Err(EngineError::absent_in("branch", target, repository.root()));
            };
            match repository.merge(&subject.from, &from, &subject.to)? {
                Merge::Conflict { paths, .. } => Ok(Err(conflicts(&target, &paths))),
                Merge::Clean(tree) => {
                    let author = signature(&repository);
                    let commit = repository.commit(&tree, std::slice::from_ref(&from), &text, &author)?;
                    Ok(Ok(Merged { from, commit }))
                }
            }
        })
        .await
    }

    /// Judges the merged result by validations and invariants. None means that the run was asked to stop.
    async fn judge(&self, merged: &Merged) -> Result<Option<Vec<String>>, EngineError> {
        let scope = self.scope;
        let subject = Subject { from: merged.from.clone(), to: merged.commit.clone() };
        let looked =
            scope.engine.enforce(&scope.plan, &scope.project, Phase::Apply, subject, &scope.stop).await;
        let enforcement = match looked {
            Err(EngineError::Interrupted) => return Ok(None),
            looked => looked?,
        };
        let mut reasons: Vec<_> = enforcement.blocking().iter().map(|finding| finding.describe()).collect();
        scope.note(enforced(enforcement)).await?;
        if scope.plan.spec.validations.is_empty() {
            return Ok(Some(reasons));
        }
        let (path, commit) = (scope.tree(), merged.commit.clone());
        let place = path.clone();
        scope.git(move |repository| repository.checkout_detached(&place, &commit)).await?;
        let validations = scope.validate(&path).await?;
        scope.git(move |repository| repository.checkout_remove(&path)).await?;
        let validations = match validations {
            Validated::Ran(validations) => validations,
            // Landing has no limit of time.
            Validated::Stopped | Validated::OutOfTime => return Ok(None),
        };
        reasons.extend(validations.iter().filter(|run| run.required && !run.passed).map(failed));
        Ok(Some(reasons))
    }

    /// Records the intent, moves the target, records the end. Not interrupted in between: only the repository could
    /// tell afterwards how it ended.
    async fn land(&self, merged: Merged) -> Result<Attempt, EngineError> {
        let scope = self.scope;
        let target = scope.target().to_owned();
        let intent =
            Intent { target: target.clone(), from: merged.from.to_string(), to: merged.commit.to_string() };
        // The permit comes before the fenced commit, and the landing compares it: whoever takes the plan over deletes
        // it first, so a process that wakes up too late can move nothing.
        let permit = permit(&scope.plan.id, &scope.run);
        let (name, to) = (permit.clone(), merged.commit.clone());
        scope.git(move |repository| repository.ref_create(&name, &to)).await?;
        let intend = Command::Intend(scope.run.clone(), intent);
        scope.engine.issue_landing(scope.hold, self.project, intend, WORKER).await?;
        let (branch, from, to) = (target.clone(), merged.from.clone(), merged.commit.clone());
        let landing = scope.git(move |repository| repository.land(&branch, &from, &to, &permit)).await?;
        let end = match landing {
            Landing::Moved | Landing::Already => {
                return self.landed(&merged.commit).await.map(Attempt::Ended);
            }
            Landing::Stale { .. } => Attempt::TargetMoved,
            Landing::Revoked => return Err(EngineError::LeaseLost { key: scope.plan.id.to_string() }),
            Landing::Dirty { worktree, paths } => {
                let text = format!(
                    "{} has uncommitted changes in the way of landing on {target}: {}; commit or stash them, then \
                     `drydock plan retry {}`",
                    worktree.display(),
                    paths.join(", "),
                    scope.plan.id
                );
                Attempt::Ended(scope.failed(ErrorClass::TargetDirty, text))
            }
            Landing::Occupied { worktree, operation } => {
                let text = format!(
                    "{} cannot be landed on now ({operation}); put that right, then `drydock plan retry {}`",
                    worktree.display(),
                    scope.plan.id
                );
                Attempt::Ended(scope.failed(ErrorClass::TargetDirty, text))
            }
        };
        self.revoke().await?;
        scope.engine.issue_landing(scope.hold, self.project, Command::Forgo, WORKER).await?;
        Ok(end)
    }

    async fn revoke(&self) -> Result<(), EngineError> {
        let (repository, id) = (self.scope.repository.clone(), self.scope.plan.id.clone());
        task::blocking(move || revoke(&repository, &id)).await
    }

    /// The target contains the commit: push it where there is a remote, and record the end.
    async fn landed(&self, commit: &CommitId) -> Result<End, EngineError> {
        let scope = self.scope;
        self.push(commit).await?;
        self.revoke().await?;
        let land = Command::Land(scope.run.clone(), commit.to_string());
        scope.engine.issue_landing(scope.hold, self.project, land, WORKER).await?;
        Ok(End::Recorded)
    }

    /// Pushes what landed. A push that fails is told and does not undo the landing.
    async fn push(&self, commit: &CommitId) -> Result<(), EngineError> {
        let scope = self.scope;
        let Some(remote) = scope.project.remote.clone() else { return Ok(()) };
        let (branch, pushed, name) = (scope.target().to_owned(), commit.clone(), remote.clone());
        let pushed = scope.git(move |repository| repository.push(&name, &branch, &pushed)).await;
        let target = scope.target().to_owned();
        let reason = match pushed {
            Ok(Push::Pushed) => {
                let commit = commit.to_string();
                return scope.note(Event::TargetSent { target, remote, commit }).await;
            }
            Ok(Push::Rejected { text }) => text,
            Err(error) => told(&error),
        };
        let (branch, to, head, words) = (target.clone(), remote.clone(), commit.to_string(), reason.clone());
        let failed = SyncOutcome::PushFailed { branch, remote: to, head, reason: words };
        scope.note(Event::Synced(failed)).await?;
        let text = format!(
            "{} landed on {target} here, but {remote} did not take it: {reason}; bring {target} up to date with {remote} \
             and push it yourself (`git push {remote} {target}`)",
            scope.plan.id
        );
        scope.note(Event::Alert { priority: "high", text }).await
    }

    fn constrained(&self, reasons: Vec<String>) -> End {
        End::Report(Box::new(Command::Constrain(self.scope.run.clone(), reasons)))
    }
}

/// The ref that lets one run of a plan land.
fn permit(plan: &PlanId, run: &RunId) -> String {
    format!("refs/drydock/intent/{plan}/{run}")
}

/// Takes back every permit of a plan, and then looks whether the commit of its intent landed.
pub(crate) fn landed(repository: &Repository, plan: &PlanId, intent: &Intent) -> Result<bool, EngineError> {
    revoke(repository, plan)?;
    Ok(repository.contains(&intent.target, &commit_id(&intent.to)?)?)
}

fn revoke(repository: &Repository, plan: &PlanId) -> Result<(), EngineError> {
    for (name, commit) in repository.refs(&format!("refs/drydock/intent/{plan}/"))? {
        match repository.ref_delete(&name, &commit)? {
            RefDeleted::Deleted | RefDeleted::Absent => {}
            RefDeleted::Moved { .. } => return Err(EngineError::LeaseLost { key: plan.to_string() }),
        }
    }
    Ok(())
}

fn enforced(enforcement: Enforcement) -> Event {
    if enforcement.blocking().is_empty() {
        Event::InvariantEnforced(enforcement)
    } else {
        Event::InvariantBlocked(enforcement)
    }
}

fn failed(run: &ValidationRun) -> String {
    format!("validation {} fails on the merged result: {}", run.name, run.text)
}

fn conflicts(target: &str, paths: &[String]) -> Vec<String> {
    paths.iter().map(|path| format!("{path} conflicts with {target}")).collect()
}

/// Returns what the changesets of the run that made the head hold.
pub(crate) async fn recorded(
    engine: &crate::engine::Engine,
    plan: &Plan,
) -> Result<Vec<NewEntry>, EngineError> {
    let Some(run) = &plan.head_run else { return Ok(Vec::new()) };
    let changesets = engine.store().changeset_of_run(&plan.id, run).await?;
    Ok(changesets.into_iter().flat_map(|changeset| changeset.entries).map(|entry| entry.change).collect())
}

fn same(mut one: Vec<NewEntry>, mut other: Vec<NewEntry>) -> bool {
    one.sort_by(|left, right| left.path.cmp(&right.path));
    other.sort_by(|left, right| left.path.cmp(&right.path));
    one == other
}

/// Returns the message of a plan's commits: the task's first line, the rest below, and which plan it was.
pub(super) fn message(plan: &Plan) -> String {
    let task = plan.spec.task.trim();
    let first = task.lines().next().unwrap_or_default();
    let subject: String = first.chars().take(SUBJECT_MAX).collect();
    let body = if subject == task { String::new() } else { format!("\n{task}\n") };
    format!("{subject}\n{body}\n{}\n", trailer(plan.id.as_str()))
}
