//! Directories of runs that ended. Their work is kept as a snapshot before anything is removed, so that a crash, a
//! retry or a clean-up never loses what an agent wrote.

use std::path::{Path, PathBuf};

use drydock_domain::{Plan, PlanId};
use drydock_worktree::{CommitId, Repository};

use super::scope::{commit_id, signature, snapshot};
use crate::engine::Engine;
use crate::error::EngineError;
use crate::task;

/// The directory of a run that is not going on.
#[derive(Debug, Clone)]
pub(crate) struct Leftover {
    pub(crate) path: PathBuf,
    pub(crate) run: String,
}

/// Returns the run directories of a plan.
pub(crate) fn leftovers(worktrees: &Path, plan: &PlanId) -> std::io::Result<Vec<Leftover>> {
    let directory = worktrees.join(plan.as_str());
    let entries = match std::fs::read_dir(&directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        found.push(Leftover { path: entry.path(), run: entry.file_name().to_string_lossy().into_owned() });
    }
    Ok(found)
}

/// Keeps the work of a run's directory as a snapshot and removes the directory. Returns the snapshot's ref, or none
/// when there was nothing that the base does not have.
pub(crate) fn remove_leftover(
    repository: &Repository,
    plan: &PlanId,
    base: &CommitId,
    leftover: &Leftover,
) -> Result<Option<String>, EngineError> {
    let tree = leftover.path.join("tree");
    let kept = match repository.checkout_open(&tree)? {
        None => None,
        Some(checkout) => {
            let message = format!("work of {} of {plan}", leftover.run);
            let captured = checkout.capture(base, &message, &signature(repository))?;
            if captured.tree == repository.tree_of(base)? {
                None
            } else {
                Some(snapshot(repository, plan.as_str(), &captured)?)
            }
        }
    };
    repository.checkout_remove(&tree)?;
    match std::fs::remove_dir_all(&leftover.path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(EngineError::File { attempt: format!("remove {}", leftover.path.display()), source: error })
        }
        Ok(()) | Err(_) => Ok(kept),
    }
}

/// Sets the work of all earlier runs of a plan aside; a new run starts clean.
pub(super) async fn set_aside(
    engine: &Engine,
    plan: &Plan,
    repository: &Repository,
) -> Result<(), EngineError> {
    let worktrees = engine.settings().worktrees.clone();
    let (id, base, repository) = (plan.id.clone(), commit_id(&plan.base_commit)?, repository.clone());
    task::blocking(move || {
        let found = leftovers(&worktrees, &id)
            .map_err(|source| EngineError::File { attempt: format!("list the runs of {id}"), source })?;
        if found.is_empty() {
            return Ok(());
        }
        for leftover in found {
            let kept = remove_leftover(&repository, &id, &base, &leftover)?;
            tracing::debug!(run = leftover.run, ?kept, "set the directory of an ended run aside");
        }
        remove_empty(&worktrees.join(id.as_str()))
    })
    .await
}

fn remove_empty(directory: &Path) -> Result<(), EngineError> {
    match std::fs::remove_dir(directory) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(EngineError::File { attempt: format!("remove {}", directory.display()), source }),
    }
}
