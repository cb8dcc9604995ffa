//! The only sync of a plan's branch with its remote. `worktree` does the git work. This module does the
//! plan's part: it selects the directory, decides what may be pushed, interprets the outcome, and commits a
//! divergence together with its question.

use drydock_domain::{
    DecisionStatus, Divergence, Event, OnDivergence, Phase, Plan, Project, Publish, RunId, State,
    SyncOutcome, SyncStatus, error_chain,
};
use drydock_store::DecisionFilter;
use drydock_worktree::{BackupRequest, Checkout, CommitId, GitError, MergeOutcome, Repository, SyncRequest};

use crate::engine::{Actor, Engine, WORKER};
use crate::error::EngineError;
use crate::hold::PlanLockGuard;
use crate::phase::{
    LatestRunDir, claim_latest, clear_earlier_runs, commit_id, is_checkpoint, kept_as, signature,
};
use crate::task;

/// How many decisions of a plan are searched for the one about a backup; the newest come first.
const DECISIONS_MAX: i64 = 100;

/// Why foreign work on a plan's branch cannot be merged with the target, and what to do.
const NO_COMMON_COMMIT: &str =
    "that branch and the target have no commit in common; recreate the branch from the target and push it";

/// A sync of a plan's branch, under the plan's lock.
pub(crate) struct PlanSync<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) hold: &'a PlanLockGuard,
    pub(crate) plan: &'a Plan,
    pub(crate) project: &'a Project,
    pub(crate) repository: &'a Repository,
}

/// The start of the next run.
pub(crate) enum RunStart {
    /// The run starts from this commit, or from the base if there is none.
    At {
        from: Option<String>,
        /// The tip of the remote branch that the run's result is meant to replace.
        replaces: Option<String>,
    },
    /// The run does not start: a divergence and its question were committed.
    Diverged(Box<Plan>),
    /// The run does not start: others added commits to the validated work, and Execute validates them first.
    Reexamined(Box<Plan>),
}

/// The result of a sync after a phase.
pub(crate) enum AfterRunSync {
    /// The branch is where the run left it.
    Still,
    /// The branch now contains foreign commits and points here.
    Moved(CommitId),
    /// A person must be asked.
    Diverged(Box<Divergence>),
}

/// The directory that has the branch checked out.
enum BranchLocation {
    /// The directory of the current run.
    Run(Checkout),
    /// The directory of the latest run, if it still exists.
    Leftover,
    /// No directory.
    Branch,
}

impl PlanSync<'_> {
    /// Syncs before a phase starts, and returns where the phase starts. If that cannot be determined, returns
    /// an error, and the phase stays queued.
    pub(crate) async fn sync_before(&self) -> Result<RunStart, EngineError> {
        let keep =
            || RunStart::At { from: self.plan.work_from.clone(), replaces: self.plan.replaces.clone() };
        // With an open intent, the outcome of the landing is determined first; the branch does not matter
        // until then.
        if self.project.remote.is_none() || self.plan.intent.is_some() {
            return Ok(keep());
        }
        self.move_to_restart().await?;
        self.leave_earlier_attempt().await?;
        let publish = match self.plan.stage.phase() {
            // The work of an earlier run is not published: the new run starts over.
            Phase::Strategize | Phase::Execute => Publish::No,
            Phase::Apply => Publish::Yes,
        };
        let mut outcome = self.sync(BranchLocation::Leftover, publish).await?;
        if stands_in_the_way(&outcome) {
            self.tell(&outcome).await?;
            // The run is over, so its directory may be cleared; all files in it are kept.
            clear_earlier_runs(self.engine, self.hold, self.plan, self.repository).await?;
            outcome = self.sync(BranchLocation::Branch, publish).await?;
        }
        if let Some(divergence) = outcome.divergence() {
            return Ok(RunStart::Diverged(Box::new(self.diverged(divergence, WORKER).await?)));
        }
        self.tell(&outcome).await?;
        match outcome.standing() {
            SyncStatus::Settled => {}
            SyncStatus::Unsettled | SyncStatus::Diverged => {
                return Err(EngineError::Unsynced { outcome: Box::new(outcome) });
            }
        }
        match self.plan.stage.phase() {
            Phase::Apply => {
                let sent_back = self.reexamined(WORKER).await?;
                Ok(sent_back.map_or_else(keep, |plan| RunStart::Reexamined(Box::new(plan))))
            }
            Phase::Strategize | Phase::Execute => self.begin(&outcome).await,
        }
    }

    /// Syncs after a phase, in the directory of its run.
    pub(crate) async fn sync_after(
        &self,
        checkout: &Checkout,
        publish: Publish,
    ) -> Result<AfterRunSync, EngineError> {
        if self.project.remote.is_none() {
            return Ok(AfterRunSync::Still);
        }
        let outcome = self.sync(BranchLocation::Run(checkout.clone()), publish).await?;
        if let Some(divergence) = outcome.divergence() {
            return Ok(AfterRunSync::Diverged(Box::new(divergence)));
        }
        self.tell(&outcome).await?;
        if let SyncOutcome::Rebased { replayed, .. } = &outcome {
            // These are the run's own commits, rebased on foreign ones. Until they are recorded they count as
            // foreign commits, which are validated.
            self.made(replayed.iter().map(|commit| commit.id.clone())).await?;
        }
        Ok(match &outcome {
            SyncOutcome::FastForwarded { to, .. } | SyncOutcome::Rebased { to, .. } => {
                AfterRunSync::Moved(commit_id(to)?)
            }
            SyncOutcome::NoRemote
            | SyncOutcome::NoRemoteBranch
            | SyncOutcome::InSync { .. }
            | SyncOutcome::Pushed { .. }
            | SyncOutcome::KeptLocal { .. } => AfterRunSync::Still,
            // The work is captured and validated whether or not the remote has it; the next phase does not
            // start before the remote has it.
            SyncOutcome::PushFailed { .. }
            | SyncOutcome::FetchFailed { .. }
            | SyncOutcome::Detached { .. }
            | SyncOutcome::MidOperation { .. }
            | SyncOutcome::Unknown { .. } => {
                let text =
                    format!("the work of {} is not on the remote: {}", self.plan.id, outcome.summary());
                self.engine.emit(self.hold, vec![Event::Alert { priority: "high", text }]).await?;
                AfterRunSync::Still
            }
            SyncOutcome::RecoveredByReset { .. }
            | SyncOutcome::ResetFailed { .. }
            | SyncOutcome::Unreconciled { .. } => unreachable!("these are divergences"),
        })
    }

    /// Syncs at a person's request. A divergence is committed with its question; every other outcome is
    /// emitted as an event.
    pub(crate) async fn sync_requested(
        &self,
        by: impl Into<Actor<'_>> + Copy,
    ) -> Result<(SyncOutcome, Option<Plan>), EngineError> {
        self.move_to_restart().await?;
        let publish = match (self.plan.stage.phase(), self.plan.stage.state()) {
            // A strategy has no work to push. Commits that a person made by hand may be pushed, unless they
            // would replace an earlier attempt on the remote.
            (Phase::Strategize, State::Complete) if self.plan.replaces.is_none() => Publish::Yes,
            (Phase::Execute, State::Complete) | (Phase::Apply, State::Queued | State::Waiting) => {
                Publish::Yes
            }
            // Work that was not validated, or was refused, is not published yet.
            (Phase::Strategize | Phase::Execute | Phase::Apply, _) => Publish::No,
        };
        let outcome = self.sync(BranchLocation::Leftover, publish).await?;
        match outcome.divergence() {
            Some(divergence) => {
                let plan = self.diverged(divergence, by).await?;
                Ok((outcome, Some(plan)))
            }
            None => {
                self.tell(&outcome).await?;
                let sent_back = match outcome.standing() {
                    SyncStatus::Settled => self.reexamined(by).await?,
                    SyncStatus::Unsettled | SyncStatus::Diverged => None,
                };
                Ok((outcome, sent_back))
            }
        }
    }

    /// Commits a divergence: failure, question and event are one write (S4.5). The marker of the recovery is
    /// removed last, so that after a crash before this point the next sync finds the same divergence and
    /// backup again.
    pub(crate) async fn diverged(
        &self,
        divergence: Divergence,
        by: impl Into<Actor<'_>>,
    ) -> Result<Plan, EngineError> {
        let command = drydock_domain::Command::Diverge(Box::new(divergence));
        let plan = self.engine.issue(self.hold, command, by).await?.plan;
        self.clear_recovery().await;
        Ok(plan)
    }

    /// Removes the marker of a recovery that is now recorded. If that fails, the next sync sees that its
    /// decision exists.
    pub(crate) async fn clear_recovery(&self) {
        let (repository, id) = (self.repository.clone(), self.plan.id.clone());
        if let Err(error) = task::blocking(move || repository.recovery_settle(id.as_str())).await {
            tracing::warn!(plan = %self.plan.id, error = %error_chain(&error), "could not remove the marker of a recovery");
        }
    }

    async fn tell(&self, outcome: &SyncOutcome) -> Result<(), EngineError> {
        self.engine.emit(self.hold, vec![Event::Synced(outcome.clone())]).await
    }

    /// Resets the branch to the start of the next run, if all its commits are an earlier attempt of the plan.
    /// That attempt is over: it must neither be merged with foreign work nor cause a question.
    async fn leave_earlier_attempt(&self) -> Result<(), EngineError> {
        match self.plan.stage.phase() {
            Phase::Strategize | Phase::Execute => {}
            Phase::Apply => return Ok(()),
        }
        // An interrupted recovery must be completed and reported first.
        if self.recovery().await?.is_some() {
            return Ok(());
        }
        let to = self.plan.work_from.as_deref().map_or_else(|| self.base(), commit_id)?;
        let (repository, branch) = (self.repository.clone(), self.plan.branch());
        let (base, own, target) =
            (self.base()?, self.own().await?, self.plan.target(self.project).to_owned());
        let (begins, name) = (to.clone(), branch.clone());
        let left = task::blocking(move || -> Result<Option<CommitId>, GitError> {
            let Some(tip) = repository.branch_tip(&name)? else { return Ok(None) };
            let known: Vec<_> = [Some(base), Some(begins.clone()), repository.branch_tip(&target)?]
                .into_iter()
                .flatten()
                .collect();
            let earlier = tip != begins && repository.foreign(&known, &tip, &own)?.is_empty();
            Ok(earlier.then_some(tip))
        })
        .await?;
        let Some(tip) = left else { return Ok(()) };
        // The directory is cleared first, with all its files kept; the commits of the branch are backed up
        // with it.
        clear_earlier_runs(self.engine, self.hold, self.plan, self.repository).await?;
        let repository = self.repository.clone();
        Ok(task::blocking(move || repository.branch_put(&branch, &tip, &to)).await?)
    }

    async fn sync(&self, ground: BranchLocation, publish: Publish) -> Result<SyncOutcome, EngineError> {
        self.forget_settled_recovery().await?;
        let job = SyncParams::of(self, publish)?;
        let (repository, plan) = (self.repository.clone(), self.plan.clone());
        let (worktrees, fence) = (self.engine.settings().worktrees.clone(), self.hold.lease().fence());
        let (outcome, alerts) = task::blocking(move || {
            job.make_branch(&repository)?;
            let quiet = |outcome| Ok::<_, EngineError>((outcome, Vec::new()));
            match ground {
                BranchLocation::Run(checkout) => quiet(job.run(&repository, Some(&checkout))),
                BranchLocation::Branch => quiet(job.run(&repository, None)),
                BranchLocation::Leftover => match claim_latest(&worktrees, &plan, fence, &repository)? {
                    LatestRunDir::Checkout { checkout, _alive } => {
                        quiet(job.run(&repository, Some(&checkout)))
                    }
                    LatestRunDir::Nothing => quiet(job.run(&repository, None)),
                    LatestRunDir::PutBy { alerts } => Ok((job.run(&repository, None), alerts)),
                },
            }
        })
        .await?;
        if !alerts.is_empty() {
            self.engine.emit(self.hold, alerts).await?;
        }
        tracing::info!(
            plan = %self.plan.id,
            branch = self.plan.branch(),
            remote = self.project.remote,
            outcome = outcome.name(),
            text = outcome.summary(),
            "worktree_sync_outcome"
        );
        Ok(outcome)
    }

    /// Returns the backup of a recovery that is not known to be recorded.
    async fn recovery(&self) -> Result<Option<String>, EngineError> {
        let (repository, id) = (self.repository.clone(), self.plan.id.clone());
        Ok(task::blocking(move || repository.recovery_pin(id.as_str())).await?)
    }

    /// Removes the marker of a recovery whose decision is recorded: a crash happened between the two.
    async fn forget_settled_recovery(&self) -> Result<(), EngineError> {
        let Some(pin) = self.recovery().await? else { return Ok(()) };
        let (repository, name) = (self.repository.clone(), pin.clone());
        let kept = task::blocking(move || repository.backup_find(&name)).await?;
        let filter = DecisionFilter {
            plan: Some(self.plan.id.clone()),
            limit: DECISIONS_MAX,
            ..DecisionFilter::default()
        };
        let decisions = self.engine.store().decision_list(&filter).await?.items;
        let recorded = decisions.iter().any(|decision| {
            // The name of a deleted backup may have been reused for other commits.
            decision.question.details["backup_ref"] == pin.as_str()
                && kept
                    .as_ref()
                    .is_some_and(|kept| decision.question.details["backup_commit"] == kept.commit.as_str())
                && !matches!(decision.status, DecisionStatus::Open)
        });
        if recorded {
            self.clear_recovery().await;
        }
        Ok(())
    }

    /// Moves the branch to the commit from which the next run restarts, if that was not done yet.
    pub(crate) async fn move_to_restart(&self) -> Result<(), EngineError> {
        let Some(commit) = &self.plan.take_up else { return Ok(()) };
        let (commit, branch, repository) = (commit_id(commit)?, self.plan.branch(), self.repository.clone());
        let (to, name) = (commit.clone(), branch.clone());
        let tip = task::blocking(move || match repository.branch_tip(&name)? {
            Some(tip) if tip != to => Ok::<_, GitError>(Some(tip)),
            Some(_) | None => Ok(None),
        })
        .await?;
        let Some(tip) = tip else { return Ok(()) };
        clear_earlier_runs(self.engine, self.hold, self.plan, self.repository).await?;
        let (repository, plan, run) = (self.repository.clone(), self.plan.id.clone(), self.plan.run.clone());
        let (reason, base) = (self.plan.take_up_why.reason(), self.base()?);
        task::blocking(move || {
            let author = signature(&repository);
            let run = run.as_ref().map(RunId::as_str);
            let pin = BackupRequest { plan: plan.as_str(), run, reason, signature: &author };
            let kept = repository.is_ancestor(&tip, &commit)?
                || is_checkpoint(&repository, plan.as_str(), &[base, commit.clone()], &tip)?;
            if !kept {
                repository.backup_branch(&pin, &tip)?;
            }
            repository.branch_put(&branch, &tip, &commit)
        })
        .await?;
        Ok(())
    }

    /// Returns where a new run starts: at the foreign work on the branch, else where a person decided, else
    /// at the base. If only drydock pushed to the remote branch, its tip is an earlier attempt and will be
    /// replaced.
    async fn begin(&self, outcome: &SyncOutcome) -> Result<RunStart, EngineError> {
        let tip = match outcome {
            SyncOutcome::InSync { head } => head,
            SyncOutcome::FastForwarded { to, .. } => to,
            SyncOutcome::Rebased { to, .. } => return self.on_top_of(commit_id(to)?).await,
            SyncOutcome::NoRemote
            | SyncOutcome::NoRemoteBranch
            | SyncOutcome::Pushed { .. }
            | SyncOutcome::PushFailed { .. }
            | SyncOutcome::KeptLocal { .. }
            | SyncOutcome::RecoveredByReset { .. }
            | SyncOutcome::ResetFailed { .. }
            | SyncOutcome::Unreconciled { .. }
            | SyncOutcome::FetchFailed { .. }
            | SyncOutcome::Detached { .. }
            | SyncOutcome::MidOperation { .. }
            | SyncOutcome::Unknown { .. } => {
                let (from, replaces) = (self.plan.work_from.clone(), self.plan.replaces.clone());
                return Ok(RunStart::At { from, replaces });
            }
        };
        let (repository, base, own) = (self.repository.clone(), self.base()?, self.own().await?);
        let seen = commit_id(tip)?;
        let target = self.plan.target(self.project).to_owned();
        let others = task::blocking(move || {
            let target = repository.branch_tip(&target)?;
            let known: Vec<_> = [Some(base), target].into_iter().flatten().collect();
            repository.foreign(&known, &seen, &own)
        })
        .await?;
        if !others.is_empty() {
            self.on_top_of(commit_id(tip)?).await
        } else {
            Ok(RunStart::At { from: self.plan.work_from.clone(), replaces: Some(tip.clone()) })
        }
    }

    /// Starts from a commit that contains the base: if the target moved since, both are merged in memory.
    async fn on_top_of(&self, tip: CommitId) -> Result<RunStart, EngineError> {
        let replaces = self.plan.replaces.clone();
        let (repository, base, plan) = (self.repository.clone(), self.base()?, self.plan.id.clone());
        let seen = tip.clone();
        let merged = task::blocking(move || {
            if repository.is_ancestor(&base, &seen)? {
                return Ok::<_, GitError>(Ok(seen));
            }
            let Some(fork) = repository.merge_base(&base, &seen)? else {
                return Ok(Err(NO_COMMON_COMMIT.to_owned()));
            };
            match repository.merge(&fork, &seen, &base)? {
                MergeOutcome::Conflict { paths, .. } => {
                    let paths = paths.join(", ");
                    Ok(Err(format!("both changed {paths}; merge the target into that branch and push it")))
                }
                MergeOutcome::Clean(tree) => {
                    let text = kept_as("Merge the plan's base into its branch", plan.as_str());
                    let author = signature(&repository);
                    repository.commit(&tree, &[seen, base], &text, &author).map(Ok)
                }
            }
        })
        .await?;
        match merged {
            Ok(from) => {
                if from != tip {
                    self.made([from.to_string()]).await?;
                }
                Ok(RunStart::At { from: Some(from.to_string()), replaces })
            }
            Err(reason) => {
                let attempt = format!("merge the plan's base into {}", self.plan.branch());
                Err(EngineError::Unsynced { outcome: Box::new(SyncOutcome::Unknown { attempt, reason }) })
            }
        }
    }

    pub(super) fn base(&self) -> Result<CommitId, EngineError> {
        commit_id(&self.plan.base_commit)
    }
}

/// Returns true if the state of a directory, not of the remote, prevented the sync.
fn stands_in_the_way(outcome: &SyncOutcome) -> bool {
    match outcome {
        SyncOutcome::Detached { .. } | SyncOutcome::MidOperation { .. } | SyncOutcome::Unknown { .. } => true,
        SyncOutcome::NoRemote
        | SyncOutcome::NoRemoteBranch
        | SyncOutcome::InSync { .. }
        | SyncOutcome::FastForwarded { .. }
        | SyncOutcome::Pushed { .. }
        | SyncOutcome::PushFailed { .. }
        | SyncOutcome::KeptLocal { .. }
        | SyncOutcome::Rebased { .. }
        | SyncOutcome::RecoveredByReset { .. }
        | SyncOutcome::ResetFailed { .. }
        | SyncOutcome::Unreconciled { .. }
        | SyncOutcome::FetchFailed { .. } => false,
    }
}

/// The parameters of a sync, owned so that they can move to another thread.
struct SyncParams {
    branch: String,
    target: String,
    remote: Option<String>,
    base: CommitId,
    on_divergence: OnDivergence,
    publish: Publish,
    replaces: Option<CommitId>,
    plan: String,
    run: Option<String>,
}

impl SyncParams {
    fn of(together: &PlanSync<'_>, publish: Publish) -> Result<SyncParams, EngineError> {
        let PlanSync { plan, project, .. } = together;
        Ok(SyncParams {
            branch: plan.branch(),
            target: plan.target(project).to_owned(),
            remote: project.remote.clone(),
            base: together.base()?,
            on_divergence: project.on_divergence.unwrap_or(plan.spec.profile.on_divergence),
            publish,
            replaces: plan.replaces.as_deref().map(commit_id).transpose()?,
            plan: plan.id.to_string(),
            run: plan.run.as_ref().map(ToString::to_string),
        })
    }

    /// Creates the branch if no run has done so: others may have pushed to it before.
    fn make_branch(&self, repository: &Repository) -> Result<(), GitError> {
        if self.remote.is_some() && repository.branch_tip(&self.branch)?.is_none() {
            repository.ref_create(&format!("refs/heads/{}", self.branch), &self.base)?;
        }
        Ok(())
    }

    fn run(&self, repository: &Repository, worktree: Option<&Checkout>) -> SyncOutcome {
        let author = signature(repository);
        repository.sync(&SyncRequest {
            branch: &self.branch,
            target: &self.target,
            remote: self.remote.as_deref(),
            worktree,
            base: &self.base,
            on_divergence: self.on_divergence,
            publish: self.publish,
            replaces: self.replaces.as_ref(),
            pin: BackupRequest {
                plan: &self.plan,
                run: self.run.as_deref(),
                reason: "a sync was about to move the branch",
                signature: &author,
            },
        })
    }
}
