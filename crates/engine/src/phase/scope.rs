//! The context of one run, and how the run ends.

use std::path::PathBuf;

use drydock_agent::Permits;
use drydock_domain::{
    CHECKPOINT, Command, ErrorClass, Event, Failure, Plan, Project, RunId, SNAPSHOTS, Timestamp, trailer,
};
use drydock_worktree::{Captured, CommitId, GitError, RefCreated, Repository, Signature, TreeId};
use tokio_util::sync::CancellationToken;

use super::leftovers::{RunDirLock, TEMP, TREE, occupy_under};
use super::pass::RunToken;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::hold::PlanLockGuard;
use crate::run_log::RunLog;
use crate::sync::PlanSync;
use crate::{clock, task};

/// Maximum number of attempts to number a checkpoint while other processes number theirs.
const SNAPSHOT_ATTEMPTS_MAX: usize = 100;

/// The context of one run of a phase.
pub(super) struct RunContext<'a> {
    pub(super) engine: &'a Engine,
    pub(super) hold: &'a PlanLockGuard,
    pub(super) plan: Plan,
    pub(super) project: Project,
    pub(super) repository: Repository,
    pub(super) run: RunId,
    pub(super) stop: CancellationToken,
    pub(super) pass: RunToken,
    /// Tool permissions that people granted, shared by all agents of this run.
    pub(super) permits: Permits,
    /// The output of its agents and commands.
    pub(super) log: RunLog,
}

/// How a run ended.
pub(super) enum RunOutcome {
    /// This command reports the end. It is not committed yet.
    Report(Box<Command>),
    /// The end is committed.
    Recorded,
    /// The run stopped on request.
    Stopped,
}

impl RunContext<'_> {
    pub(super) fn directory(&self) -> PathBuf {
        self.engine.settings().worktrees.join(self.plan.id.as_str()).join(self.run.as_str())
    }

    pub(super) fn tree(&self) -> PathBuf {
        self.directory().join(TREE)
    }

    pub(super) fn temp(&self) -> PathBuf {
        self.directory().join(TEMP)
    }

    /// Returns the branch on which the plan lands.
    pub(super) fn target(&self) -> &str {
        self.plan.target(&self.project)
    }

    pub(super) fn base(&self) -> Result<CommitId, EngineError> {
        commit_id(&self.plan.base_commit)
    }

    /// Returns the commit at which the run's worktree starts.
    pub(super) fn from(&self) -> Result<CommitId, EngineError> {
        self.plan.work_from.as_deref().map_or_else(|| self.base(), commit_id)
    }

    /// Returns the sync of this plan with its remote.
    pub(super) fn together(&self) -> PlanSync<'_> {
        let RunContext { engine, hold, plan, project, repository, .. } = self;
        PlanSync { engine, hold, plan, project, repository }
    }

    /// Runs blocking git work off the event loop.
    pub(super) async fn git<T: Send + 'static>(
        &self,
        work: impl FnOnce(Repository) -> Result<T, GitError> + Send + 'static,
    ) -> Result<T, EngineError> {
        let repository = self.repository.clone();
        Ok(task::blocking(move || work(repository)).await?)
    }

    pub(super) async fn emit(&self, event: Event) -> Result<(), EngineError> {
        self.note_all(vec![event]).await
    }

    pub(super) async fn note_all(&self, events: Vec<Event>) -> Result<(), EngineError> {
        // All attempts use one batch: after a broken connection the first attempt may already be in the
        // store.
        let (store, lease) = (self.engine.store(), self.hold.lease());
        let batch = &lease.batch(events);
        let attempt = || async move { Ok(store.event_append(lease, batch).await?) };
        self.hold.retry_while_store_away(self.engine.stopping(), attempt).await
    }

    /// Returns the end of a run that failed.
    pub(super) fn failed(&self, class: ErrorClass, text: impl Into<String>) -> RunOutcome {
        let failure = Failure::new(class, text);
        RunOutcome::Report(Box::new(Command::Fail(self.run.clone(), failure, None)))
    }

    /// Creates the run directory and locks it until the value is dropped.
    pub(super) async fn prepare(&self) -> Result<RunDirLock, EngineError> {
        let (directory, fence) = (self.directory(), self.hold.lease().fence());
        let made = task::blocking(move || occupy_under(fence, &directory)).await;
        made.map_err(|source| EngineError::File { attempt: "create the run's directory".to_owned(), source })
    }
}

/// Parses a commit id from the store.
pub(crate) fn commit_id(text: &str) -> Result<CommitId, EngineError> {
    text.parse().map_err(|_| {
        EngineError::invalid(format!("{text:?} is not a commit id"), "run `drydock store check`")
    })
}

/// Returns the author and time for a commit that is written now.
pub(crate) fn signature(repository: &Repository) -> Signature {
    repository.signature(seconds(clock::now()))
}

fn seconds(at: Timestamp) -> i64 {
    at.as_micros() / 1_000_000
}

/// Returns the message of a commit that keeps work of a plan: a label for people, and the trailer that
/// distinguishes the plan's own commits from those of others.
pub(crate) fn kept_as(label: &str, plan: &str) -> String {
    format!("{}\n\n{}\n", label.trim(), trailer(plan))
}

/// Returns true if drydock made all commits beyond the known ones for this plan, and a checkpoint has the
/// same files. Then nothing is lost when a branch moves away from the commit.
pub(crate) fn is_checkpoint(
    repository: &Repository,
    plan: &str,
    known: &[CommitId],
    commit: &CommitId,
) -> Result<bool, GitError> {
    if repository.has_foreign_commits(known, commit, &trailer(plan))? {
        return Ok(false);
    }
    let tree = repository.tree_of(commit)?;
    let kept = repository.ref_trees(&format!("{SNAPSHOTS}{plan}/"))?;
    Ok(kept.iter().any(|(_, kept, _)| *kept == tree))
}

/// Returns the message of a commit that keeps work of a run.
pub(crate) fn kept_by(run: &str, label: &str, plan: &str) -> String {
    format!("{}{CHECKPOINT}: {run}\n", kept_as(label, plan))
}

/// Stores a captured tree under the next free checkpoint ref of a plan, and returns the ref. An existing
/// checkpoint with the same tree and parent is reused. One with another parent is not: the next run would
/// continue from different work.
pub(crate) fn write_checkpoint(
    repository: &Repository,
    plan: &str,
    captured: &Captured,
) -> Result<String, EngineError> {
    let prefix = format!("{SNAPSHOTS}{plan}/");
    for _ in 0..SNAPSHOT_ATTEMPTS_MAX {
        let taken = repository.ref_trees(&prefix)?;
        let same = |tree: &TreeId, parent: &Option<CommitId>| {
            *tree == captured.tree && parent.as_ref() == Some(&captured.parent)
        };
        if let Some((name, ..)) = taken.iter().find(|(_, tree, parent)| same(tree, parent)) {
            return Ok(name.clone());
        }
        let number = |name: &str| name.strip_prefix(&prefix).and_then(|rest| rest.parse::<u64>().ok());
        let next = taken.iter().filter_map(|(name, ..)| number(name)).max().unwrap_or(0) + 1;
        let name = format!("{prefix}{next}");
        match repository.ref_create(&name, &captured.commit)? {
            RefCreated::Created => return Ok(name),
            RefCreated::Exists(_) => {}
        }
    }
    Err(EngineError::invalid(
        "no number was free for a checkpoint",
        "try again when fewer processes work on the plan",
    ))
}
