//! Removes the refs of applied plans. The landing holds the result, so branch and checkpoints are removed, here and at the
//! remote. Errored, constrained and cancelled plans keep theirs, and so does a subplan: its own changes are not a commit of
//! the target.

use drydock_domain::{Plan, Project, SNAPSHOTS, State, told};
use drydock_worktree::{CommitId, GitError, Merge, Push, Repository};

use super::scope::commit_id;
use crate::error::EngineError;
use crate::task;

/// Removes the refs of a plan that landed. A failure is logged; the plan is applied either way.
pub(crate) async fn forget_refs(plan: &Plan, project: &Project, repository: &Repository) {
    if plan.stage.state() != State::Applied || plan.place.is_some() {
        return;
    }
    match forget(plan, project, repository).await {
        Ok(removed) => tracing::debug!(plan = %plan.id, ?removed, "removed the refs of a landed plan"),
        Err(error) => {
            tracing::warn!(plan = %plan.id, error = %told(&error), "could not remove the refs of a landed plan");
        }
    }
}

async fn forget(plan: &Plan, project: &Project, repository: &Repository) -> Result<Vec<String>, EngineError> {
    let (base, landed) = (commit_id(&plan.base_commit)?, plan.landed_commit.as_deref());
    let head = commit_id(plan.head_commit.as_deref().unwrap_or(&plan.base_commit))?;
    let landed = landed.map(commit_id).transpose()?;
    let (branch, remote, prefix) =
        (plan.branch(), project.remote.clone(), format!("{SNAPSHOTS}{}/", plan.id));
    let repository = repository.clone();
    task::blocking(move || {
        // A landing that was found after a restore may be that of another result, which keeps its refs.
        let held = landed.map(|landed| holds(&repository, &base, &landed, &head)).transpose()?;
        if held != Some(true) {
            tracing::warn!(branch, "the landing does not hold the plan's latest result, so its refs stay");
            return Ok(Vec::new());
        }
        if let Some(remote) = remote {
            match repository.branch_forget_at(&remote, &branch, &head) {
                Ok(None | Some(Push::Pushed)) => {}
                Ok(Some(Push::Rejected { text })) => {
                    tracing::warn!(remote, branch, text, "the remote keeps the branch of a landed plan");
                }
                Err(error) => {
                    tracing::warn!(remote, branch, error = %told(&error), "could not remove a branch from the remote");
                }
            }
        }
        Ok(repository.branch_forget(&branch, &head, &[prefix])?)
    })
    .await
}

/// Tells whether a landing holds a result: merging the result into it changes nothing.
fn holds(
    repository: &Repository,
    base: &CommitId,
    landed: &CommitId,
    head: &CommitId,
) -> Result<bool, GitError> {
    Ok(match repository.merge(base, landed, head)? {
        Merge::Clean(tree) => tree == repository.tree_of(landed)?,
        Merge::Conflict { .. } => false,
    })
}
