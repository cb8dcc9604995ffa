//! Apply: merges in memory with the current target, judges the merged result, records the intent, moves the
//! target by compare-and-swap, and records the end. The target is the branch at the project's remote
//! (`publish.rs`), or the local branch if the project has none. The user's files change only by a
//! fast-forward that refuses to touch modified files. Everything happens under the project's lock.

use drydock_domain::{
    Command, Enforcement, ErrorClass, Event, Intent, Landed, LandingProof, PathChange, Phase, Plan, Question,
    RemoteAway, RunId, ValidationResult, error_chain, run_trailer, trailer, without_trailers,
};
use drydock_worktree::{CommitId, LandOutcome, MergeOutcome};
use tracing::Instrument;

use super::execute::entry;
use super::ground::{LandingBase, Looked, look};
use super::scope::{RunContext, RunOutcome, signature};
use super::settle::{IntentEnd, intent_end, intent_name, revoke};
use super::sign::signed;
use super::validate::ValidationOutcome;
use crate::engine::WORKER;
use crate::error::EngineError;
use crate::hold::ProjectLockGuard;
use crate::rule::CommitRange;
use crate::{task, trace};

/// Maximum number of attempts of a landing whose target moves meanwhile.
const ATTEMPTS_MAX: usize = 10;
const SUBJECT_MAX: usize = 72;

pub(super) async fn run(scope: &RunContext<'_>) -> Result<RunOutcome, EngineError> {
    let _alive = scope.prepare().await?;
    let project = match scope.engine.lock_project(&scope.project.name, &scope.stop).await {
        Err(EngineError::LockHeld { .. }) if scope.stop.is_cancelled() => return Ok(RunOutcome::Stopped),
        held => held?,
    };
    let lander = ApplyRun { scope, project: &project };
    let ended = {
        let landing = lander.run();
        tokio::pin!(landing);
        tokio::select! {
            ended = &mut landing => ended,
            () = project.lost().cancelled() => {
                // Wait until the landing ends: git must not move the target after this process has released
                // the plan.
                scope.stop.cancel();
                drop(landing.await);
                Err(EngineError::LeaseLost { key: scope.project.name.to_string() })
            }
        }
    };
    project.release().await;
    ended
}

/// A landing that holds both locks.
pub(super) struct ApplyRun<'a> {
    pub(super) scope: &'a RunContext<'a>,
    pub(super) project: &'a ProjectLockGuard,
}

/// The result of one attempt.
pub(super) enum Attempt {
    Ended(RunOutcome),
    /// The target moved during the attempt. The text is git's message, if there is one.
    TargetMoved(String),
}

/// A merged result that has not landed.
#[derive(Clone)]
pub(super) struct Merged {
    pub(super) ground: LandingBase,
    pub(super) commit: CommitId,
}

enum Joined {
    Merged(Merged),
    /// The target already contains the result: in a landing commit of the plan, or because the merge changes
    /// nothing.
    There(CommitId),
    /// The result conflicts with the target, or its commit could not be signed.
    Refused(Vec<String>),
}

impl ApplyRun<'_> {
    async fn run(&self) -> Result<RunOutcome, EngineError> {
        if let Some(intent) = self.scope.plan.intent.clone()
            && let Some(end) = self.settle(intent).await?
        {
            return Ok(end);
        }
        if let Some(end) = self.unrecorded().await? {
            return Ok(end);
        }
        self.sweep_intents().await?;
        let mut moved = String::new();
        for _ in 0..ATTEMPTS_MAX {
            match self.attempt().await? {
                Attempt::Ended(end) => return Ok(end),
                Attempt::TargetMoved(text) => moved = text,
            }
        }
        let text = format!("{} moved {ATTEMPTS_MAX} times while the plan was being landed", self.target());
        Ok(match &self.scope.project.remote {
            None => self.scope.failed(ErrorClass::Git, text),
            Some(remote) => {
                let text = format!("{text} ({moved})");
                self.wait_for(RemoteAway { remote: remote.clone(), text, contended: true })
            }
        })
    }

    pub(super) fn target(&self) -> &str {
        self.scope.target()
    }

    /// Determines how a landing ended that an earlier run started.
    async fn settle(&self, intent: Intent) -> Result<Option<RunOutcome>, EngineError> {
        let (repository, project) = (self.scope.repository.clone(), self.scope.project.clone());
        let (plan, seen) = (self.scope.plan.clone(), intent.clone());
        match task::blocking(move || intent_end(&repository, &project, &plan, &seen)).await? {
            IntentEnd::Landed(commit, proof) => self.landed(&commit, proof).await.map(Some),
            IntentEnd::NotLanded => {
                let (hold, project) = (self.scope.hold, self.project);
                self.scope.engine.issue_landing(hold, project, Command::Forgo, WORKER).await?;
                Ok(None)
            }
            IntentEnd::Rewritten => {
                let question = Question::apply_outcome(&intent.target, &intent.from, &intent.to);
                Ok(Some(RunOutcome::Report(Box::new(Command::Ask(self.scope.run.clone(), question)))))
            }
            IntentEnd::Unknown(away) => Ok(Some(self.wait_for(away))),
        }
    }

    /// Ends the run if the head commit differs from the recorded changesets: Apply lands exactly the changes
    /// that Execute recorded (S3.3).
    async fn unrecorded(&self) -> Result<Option<RunOutcome>, EngineError> {
        let recorded = recorded(self.scope.engine, &self.scope.plan).await?;
        let subject = CommitRange::of(&self.scope.plan)?;
        let changes =
            self.scope.git(move |repository| repository.changes(&subject.from, &subject.to)).await?;
        let held: Vec<_> = changes.into_iter().map(entry).collect();
        if same(recorded, held) {
            return Ok(None);
        }
        let text = "the head commit does not contain the changes that the changesets recorded";
        Ok(Some(self.scope.failed(ErrorClass::Inconsistent, text)))
    }

    async fn attempt(&self) -> Result<Attempt, EngineError> {
        let scope = self.scope;
        if scope.stop.is_cancelled() {
            return Ok(Attempt::Ended(RunOutcome::Stopped));
        }
        let ground = match self.look().await? {
            Looked::Found(ground) => ground,
            Looked::Unpushed(reason) => return Ok(Attempt::Ended(self.constrained(vec![reason]))),
            Looked::Away(away) => return Ok(Attempt::Ended(self.wait_for(away))),
        };
        let merged = match self.merge(ground).await? {
            Joined::Merged(merged) => merged,
            Joined::There(commit) => {
                return self.landed(&commit, LandingProof::Found).await.map(Attempt::Ended);
            }
            Joined::Refused(reasons) => return Ok(Attempt::Ended(self.constrained(reasons))),
        };
        let reasons = match self.judge(&merged).await? {
            Some(reasons) => reasons,
            None => return Ok(Attempt::Ended(RunOutcome::Stopped)),
        };
        if !reasons.is_empty() {
            return Ok(Attempt::Ended(self.constrained(reasons)));
        }
        if scope.stop.is_cancelled() {
            return Ok(Attempt::Ended(RunOutcome::Stopped));
        }
        match scope.project.remote.clone() {
            None => self.land_here(merged).instrument(trace::landing()).await,
            Some(remote) => self.land_there(&remote, merged).instrument(trace::landing()).await,
        }
    }

    async fn look(&self) -> Result<Looked, EngineError> {
        let scope = self.scope;
        let (remote, target) = (scope.project.remote.clone(), self.target().to_owned());
        let (base, plan, repository) = (scope.base()?, scope.plan.id.clone(), scope.repository.clone());
        task::blocking(move || look(&repository, remote.as_deref(), &target, &base, plan.as_str())).await
    }

    /// Merges the result in memory. A conflict is returned as a reason, not as an error. A landing that is
    /// missing from the store is found by its commit message. If the target already has the result, no commit
    /// is written (S2.3).
    async fn merge(&self, ground: LandingBase) -> Result<Joined, EngineError> {
        let scope = self.scope;
        let (target, subject) = (self.target().to_owned(), CommitRange::of(&scope.plan)?);
        let (text, plan) = (landing_message(&scope.plan, &scope.run), scope.plan.id.clone());
        let (base, repository) = (scope.base()?, scope.repository.clone());
        task::blocking(move || {
            let from = &ground.from;
            if let Some(landed) = repository.landing_of(plan.as_str(), &base, from)? {
                return Ok(Joined::There(landed));
            }
            let tree = match repository.merge(&subject.from, from, &subject.to)? {
                MergeOutcome::Conflict { paths, .. } => {
                    return Ok(Joined::Refused(conflicts(&target, &paths)));
                }
                MergeOutcome::Clean(tree) => tree,
            };
            if tree != repository.tree_of(from)? {
                let author = signature(&repository);
                let written = repository.commit_signed(&tree, std::slice::from_ref(from), &text, &author)?;
                return Ok(match signed(written, &repository, &plan) {
                    Ok(commit) => Joined::Merged(Merged { ground, commit }),
                    Err(reasons) => Joined::Refused(reasons),
                });
            }
            Ok(match ground.creates {
                true => Joined::Merged(Merged { commit: from.clone(), ground }),
                false => Joined::There(ground.from),
            })
        })
        .await
    }

    /// Checks the merged result with invariants and validations, and returns the reasons against it. Returns
    /// `None` if the run was asked to stop.
    async fn judge(&self, merged: &Merged) -> Result<Option<Vec<String>>, EngineError> {
        let scope = self.scope;
        let subject = CommitRange { from: merged.ground.from.clone(), to: merged.commit.clone() };
        let looked =
            scope.engine.enforce(&scope.plan, &scope.project, Phase::Apply, subject, &scope.stop).await;
        let enforcement = match looked {
            Err(EngineError::Interrupted) => return Ok(None),
            looked => looked?,
        };
        let mut reasons: Vec<_> = enforcement.blocking().iter().map(|finding| finding.describe()).collect();
        scope.emit(enforced(enforcement)).await?;
        if scope.plan.spec.validations.is_empty() {
            return Ok(Some(reasons));
        }
        let (path, commit) = (scope.tree(), merged.commit.clone());
        let place = path.clone();
        scope.git(move |repository| repository.checkout_detached(&place, &commit)).await?;
        let validations = scope.validate(&path).await?;
        scope.git(move |repository| repository.checkout_remove(&path)).await?;
        let validations = match validations {
            ValidationOutcome::Ran(validations) => validations,
            // A landing has no time limit.
            ValidationOutcome::Stopped | ValidationOutcome::OutOfTime => return Ok(None),
        };
        reasons.extend(validations.iter().filter(|run| run.required && !run.passed).map(failed));
        Ok(Some(reasons))
    }

    /// Records the intent, moves the local target, and records the end. Not interruptible in between: after
    /// an interruption only the repository shows how the landing ended.
    async fn land_here(&self, merged: Merged) -> Result<Attempt, EngineError> {
        let scope = self.scope;
        let target = self.target().to_owned();
        let (from, to) = (merged.ground.from, merged.commit);
        let intent = Intent {
            target: target.clone(),
            from: from.to_string(),
            to: to.to_string(),
            remote: None,
            creates: false,
        };
        // The intent ref is created before the fenced commit, and the landing compares it. A process that
        // takes over deletes the ref first, so a process that wakes up too late cannot move the target.
        let permit = intent_name(&scope.plan.id, &scope.run);
        let (name, commit) = (permit.clone(), to.clone());
        scope.git(move |repository| repository.ref_create(&name, &commit)).await?;
        let intend = Command::Intend(scope.run.clone(), intent);
        scope.engine.issue_landing(scope.hold, self.project, intend, WORKER).await?;
        let (branch, commit) = (target.clone(), to.clone());
        let landing = scope.git(move |repository| repository.land(&branch, &from, &commit, &permit)).await?;
        let end = match landing {
            LandOutcome::Moved | LandOutcome::Already => {
                return self.landed(&to, LandingProof::Intended).await.map(Attempt::Ended);
            }
            LandOutcome::Stale { .. } => Attempt::TargetMoved(String::new()),
            LandOutcome::Revoked => return Err(EngineError::LeaseLost { key: scope.plan.id.to_string() }),
            LandOutcome::Dirty { worktree, paths } => {
                let text = format!(
                    "{} has uncommitted changes that prevent landing on {target}: {}; commit or stash \
                     them, then \
                     `drydock plan retry {}`",
                    worktree.display(),
                    paths.join(", "),
                    scope.plan.id
                );
                Attempt::Ended(scope.failed(ErrorClass::TargetDirty, text))
            }
            LandOutcome::Occupied { worktree, operation } => {
                let text = format!(
                    "{} does not allow a landing now ({operation}); finish or abort that, then `drydock \
                     plan retry {}`",
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

    pub(super) async fn revoke(&self) -> Result<(), EngineError> {
        let (repository, id) = (self.scope.repository.clone(), self.scope.plan.id.clone());
        task::blocking(move || revoke(&repository, &id)).await
    }

    /// Deletes the intents of a landing that was found in the target. If git fails, the landing is recorded
    /// anyway: nothing can land twice under a remaining intent, and it is removed with the plan's other refs.
    async fn revoke_landed(&self) -> Result<(), EngineError> {
        match self.revoke().await {
            Err(error @ EngineError::LeaseLost { .. }) => Err(error),
            Err(error) => {
                let plan = &self.scope.plan.id;
                tracing::warn!(%plan, error = %error_chain(&error), "could not delete the intent of a landing");
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Records a landing whose commit the target contains, at the remote if there is one.
    pub(super) async fn landed(
        &self,
        commit: &CommitId,
        proof: LandingProof,
    ) -> Result<RunOutcome, EngineError> {
        let scope = self.scope;
        let warning = match &scope.project.remote {
            None => None,
            Some(remote) => self.follow(remote, commit).await?,
        };
        self.revoke_landed().await?;
        let landed = Landed { commit: commit.to_string(), proof, warning };
        let land = Command::Land(scope.run.clone(), landed);
        scope.engine.issue_landing(scope.hold, self.project, land, WORKER).await?;
        Ok(RunOutcome::Recorded)
    }

    pub(super) fn constrained(&self, reasons: Vec<String>) -> RunOutcome {
        RunOutcome::Report(Box::new(Command::Constrain(self.scope.run.clone(), reasons)))
    }
}

fn enforced(enforcement: Enforcement) -> Event {
    if enforcement.blocking().is_empty() {
        Event::InvariantEnforced(enforcement)
    } else {
        Event::InvariantBlocked(enforcement)
    }
}

fn failed(run: &ValidationResult) -> String {
    format!("validation {} fails on the merged result: {}", run.name, run.text)
}

fn conflicts(target: &str, paths: &[String]) -> Vec<String> {
    paths.iter().map(|path| format!("{path} conflicts with {target}")).collect()
}

/// Returns the changes in the changesets of the run that made the head.
pub(crate) async fn recorded(
    engine: &crate::engine::Engine,
    plan: &Plan,
) -> Result<Vec<PathChange>, EngineError> {
    let Some(run) = &plan.head_run else { return Ok(Vec::new()) };
    let changesets = engine.store().changeset_of_run(&plan.id, run).await?;
    Ok(changesets.into_iter().flat_map(|changeset| changeset.entries).map(|entry| entry.change).collect())
}

fn same(mut one: Vec<PathChange>, mut other: Vec<PathChange>) -> bool {
    one.sort_by(|left, right| left.path.cmp(&right.path));
    other.sort_by(|left, right| left.path.cmp(&right.path));
    one == other
}

/// Returns the message of a plan's commits: the first line of the task, the rest of the task, and a trailer
/// with the plan.
pub(super) fn message(plan: &Plan) -> String {
    let mut task = without_trailers(&plan.spec.task);
    if task.is_empty() {
        task = format!("Plan {}", plan.id);
    }
    let first = task.lines().next().unwrap_or_default();
    let subject: String = first.chars().take(SUBJECT_MAX).collect();
    let body = if subject == task { String::new() } else { format!("\n{task}\n") };
    format!("{subject}\n{body}\n{}\n", trailer(plan.id.as_str()))
}

/// Returns the message of the commit that lands a plan. It has a trailer with the run in addition to the one
/// with the plan, so that the landing is found after the store was restored.
fn landing_message(plan: &Plan, run: &RunId) -> String {
    format!("{}{}\n", message(plan), run_trailer(run.as_str()))
}
