//! One run while it goes on: what it may touch, and how it ends.

use std::path::PathBuf;

use drydock_agent::Permits;
use drydock_domain::{
    CHECKPOINT, Command, ErrorClass, Event, Failure, Plan, Project, RunId, SNAPSHOTS, Timestamp, trailer,
};
use drydock_worktree::{Captured, CommitId, GitError, RefCreated, Repository, Signature, TreeId};
use tokio_util::sync::CancellationToken;

use super::leftovers::{Alive, TEMP, TREE, occupy_under};
use super::pass::Pass;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::hold::Hold;
use crate::run_log::RunLog;
use crate::sync::Together;
use crate::{clock, task};

/// How often numbering a snapshot is tried against others that number at the same time.
const SNAPSHOT_ATTEMPTS_MAX: usize = 100;

/// What one run of a phase works with.
pub(super) struct Scope<'a> {
    pub(super) engine: &'a Engine,
    pub(super) hold: &'a Hold,
    pub(super) plan: Plan,
    pub(super) project: Project,
    pub(super) repository: Repository,
    pub(super) run: RunId,
    pub(super) stop: CancellationToken,
    pub(super) pass: Pass,
    /// What people answered about tools, for all agents of this run.
    pub(super) permits: Permits,
    /// What its agents and commands print.
    pub(super) log: RunLog,
}

/// How a run ended.
pub(super) enum End {
    /// This command says it; nothing of it is committed yet.
    Report(Box<Command>),
    /// It is committed.
    Recorded,
    /// The run was asked to stop and did.
    Stopped,
}

impl Scope<'_> {
    /// Returns the directory of this run.
    pub(super) fn directory(&self) -> PathBuf {
        self.engine.settings().worktrees.join(self.plan.id.as_str()).join(self.run.as_str())
    }

    pub(super) fn tree(&self) -> PathBuf {
        self.directory().join(TREE)
    }

    pub(super) fn temp(&self) -> PathBuf {
        self.directory().join(TEMP)
    }

    /// Returns the branch that the plan lands on.
    pub(super) fn target(&self) -> &str {
        self.plan.target(&self.project)
    }

    pub(super) fn base(&self) -> Result<CommitId, EngineError> {
        commit_id(&self.plan.base_commit)
    }

    /// Returns the commit that the run's worktree begins at.
    pub(super) fn from(&self) -> Result<CommitId, EngineError> {
        self.plan.work_from.as_deref().map_or_else(|| self.base(), commit_id)
    }

    /// Returns this plan and its remote, to be brought together.
    pub(super) fn together(&self) -> Together<'_> {
        let Scope { engine, hold, plan, project, repository, .. } = self;
        Together { engine, hold, plan, project, repository }
    }

    /// Runs git work off the event loop.
    pub(super) async fn git<T: Send + 'static>(
        &self,
        work: impl FnOnce(Repository) -> Result<T, GitError> + Send + 'static,
    ) -> Result<T, EngineError> {
        let repository = self.repository.clone();
        Ok(task::blocking(move || work(repository)).await?)
    }

    pub(super) async fn note(&self, event: Event) -> Result<(), EngineError> {
        self.note_all(vec![event]).await
    }

    pub(super) async fn note_all(&self, events: Vec<Event>) -> Result<(), EngineError> {
        // One batch for all attempts: after a broken connection the first may be in the store already.
        let (store, lease) = (self.engine.store(), self.hold.lease());
        let batch = &lease.batch(events);
        let attempt = || async move { Ok(store.plan_note(lease, batch).await?) };
        self.hold.patiently(self.engine.stopping(), attempt).await
    }

    /// Returns the end of a run that failed.
    pub(super) fn failed(&self, class: ErrorClass, text: impl Into<String>) -> End {
        let failure = Failure::new(class, text);
        End::Report(Box::new(Command::Fail(self.run.clone(), failure, None)))
    }

    /// Makes the run's directories, and holds them until the value is dropped.
    pub(super) async fn prepare(&self) -> Result<Alive, EngineError> {
        let (directory, fence) = (self.directory(), self.hold.lease().fence());
        let made = task::blocking(move || occupy_under(fence, &directory)).await;
        made.map_err(|source| EngineError::File { attempt: "make the run's directory".to_owned(), source })
    }
}

/// Reads a commit id that the store kept.
pub(crate) fn commit_id(text: &str) -> Result<CommitId, EngineError> {
    text.parse().map_err(|_| {
        EngineError::invalid(format!("{text:?} is not a commit id"), "run `drydock store check`")
    })
}

/// Returns whose name a commit of this moment bears.
pub(crate) fn signature(repository: &Repository) -> Signature {
    repository.signature(seconds(clock::now()))
}

fn seconds(at: Timestamp) -> i64 {
    at.as_micros() / 1_000_000
}

/// Returns the message of a commit that keeps work of a plan: a name for people, and the line by which the plan's own
/// commits are known from those of others.
pub(crate) fn kept_as(label: &str, plan: &str) -> String {
    format!("{}\n\n{}\n", label.trim(), trailer(plan))
}

/// Says whether all that a commit has beyond the known ones was made by drydock for this plan, and a checkpoint has its files:
/// then nothing is lost when a branch leaves it.
pub(crate) fn is_checkpoint(
    repository: &Repository,
    plan: &str,
    known: &[CommitId],
    commit: &CommitId,
) -> Result<bool, GitError> {
    if repository.others_wrote(known, commit, &trailer(plan))? {
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

/// Keeps a captured tree under the next free snapshot ref of a plan, and returns the ref. A tree that is kept already
/// upon the same parent is not kept twice: upon another one, other work would be gone on with.
pub(crate) fn snapshot(
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
        "no snapshot could be numbered",
        "try again when fewer processes work on the plan",
    ))
}
