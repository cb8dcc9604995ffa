//! Removes the refs of applied plans. The landing contains the result, so the plan's branch and checkpoints
//! are removed, in the repository and at the remote. Errored, constrained and cancelled plans keep theirs. A
//! subplan does too, because its own changes are not a commit of the target.

use std::collections::BTreeSet;

use drydock_domain::{BRANCHES, Plan, PlanId, Project, SNAPSHOTS, State, error_chain};
use drydock_worktree::{CommitId, GitError, MergeOutcome, Push, Repository};

use super::scope::commit_id;
use super::settle::INTENTS;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::task;
use crate::upkeep::{GcKept, GcMode, GcRemoved, GcResult, Held};

impl Engine {
    /// Removes the refs of landed plans that were not removed after the landing, because the process died or
    /// the remote did not answer.
    pub(crate) async fn collect_refs(
        &self,
        sweep: GcMode,
        collected: &mut GcResult,
    ) -> Result<(), EngineError> {
        for project in self.store().project_list().await? {
            // `doctor` reports a repository that cannot be opened.
            let Ok(repository) = self.repository(&project).await else { continue };
            let looked = repository.clone();
            for id in task::blocking(move || plans_with_refs(&looked)).await? {
                // Another store may work in the same repository.
                match self.store().plan_fetch(&id).await? {
                    Some(plan) if plan.spec.project == project.name && is_forgettable(&plan) => {
                        self.collect_refs_of(&plan, &project, &repository, sweep, collected).await?;
                    }
                    Some(_) | None => {}
                }
            }
        }
        Ok(())
    }

    async fn collect_refs_of(
        &self,
        plan: &Plan,
        project: &Project,
        repository: &Repository,
        sweep: GcMode,
        collected: &mut GcResult,
    ) -> Result<(), EngineError> {
        let what = format!("refs of {}", plan.id);
        let forgotten = match self.hold_to_sweep(&plan.id, sweep).await? {
            Held::Here(hold) => {
                let forgotten = forget(plan, project, repository).await;
                hold.release().await;
                forgotten.map(|removed| !removed.is_empty())
            }
            Held::NotNeeded => {
                let (plan, project, repository) = (plan.clone(), project.clone(), repository.clone());
                task::blocking(move || would_forget(&plan, &project, &repository)).await
            }
            Held::Elsewhere { reason } => {
                collected.kept.push(GcKept { what, reason });
                return Ok(());
            }
        };
        match forgotten {
            Ok(true) => {
                let landed = plan.landed_commit.as_deref().unwrap_or_default();
                let proof = format!("the plan landed as {landed}, which contains its result");
                collected.removed.push(GcRemoved { what, proof });
            }
            // Commits that did not land keep their refs.
            Ok(false) => {}
            Err(error) => collected.kept.push(GcKept { what, reason: error_chain(&error) }),
        }
        Ok(())
    }
}

/// Returns the plans that have a branch or checkpoints in a repository, or a branch at its remote.
fn plans_with_refs(repository: &Repository) -> Result<BTreeSet<PlanId>, GitError> {
    let branches = format!("refs/heads/{BRANCHES}");
    let plan_of = |rest: &str| rest.split_once('/')?.0.parse::<PlanId>().ok();
    let mut plans = BTreeSet::new();
    for prefix in [branches.as_str(), SNAPSHOTS, INTENTS] {
        let refs = repository.refs(prefix)?;
        plans.extend(refs.iter().filter_map(|(name, _)| plan_of(name.strip_prefix(prefix)?)));
    }
    // If the remote did not answer, its branch may be the only ref left.
    let sent = repository.sent_branches()?;
    plans.extend(sent.iter().filter_map(|branch| plan_of(branch.strip_prefix(BRANCHES)?)));
    Ok(plans)
}

fn is_forgettable(plan: &Plan) -> bool {
    plan.stage.state() == State::Applied && plan.place.is_none()
}

/// Removes the refs of a landed plan. A failure is logged, and `gc` retries; the plan is applied either way.
pub(crate) async fn forget_refs(plan: &Plan, project: &Project, repository: &Repository) {
    if !is_forgettable(plan) {
        return;
    }
    match forget(plan, project, repository).await {
        Ok(removed) => tracing::debug!(plan = %plan.id, ?removed, "removed the refs of a landed plan"),
        Err(error) => {
            tracing::warn!(plan = %plan.id, error = %error_chain(&error), "could not remove the refs of a landed plan");
        }
    }
}

async fn forget(plan: &Plan, project: &Project, repository: &Repository) -> Result<Vec<String>, EngineError> {
    let head = head_of(plan)?;
    let (plan, remote, repository) = (plan.clone(), project.remote.clone(), repository.clone());
    task::blocking(move || {
        let branch = plan.branch();
        if !landing_holds(&plan, &repository)? {
            tracing::warn!(branch, "the landing does not contain the plan's latest result, so its refs are \
                                    kept");
            return Ok(Vec::new());
        }
        let mut removed = Vec::new();
        if let Some(remote) = remote {
            match repository.branch_forget_at(&remote, &branch, &head) {
                Ok(None) => {}
                Ok(Some(Push::Pushed)) => removed.push(format!("{branch} of {remote}")),
                Ok(Some(Push::Rejected { text })) => {
                    tracing::warn!(remote, branch, text, "the remote did not remove the branch of a landed plan");
                }
                Err(error) => {
                    tracing::warn!(remote, branch, error = %error_chain(&error), "could not remove a branch from the remote");
                }
            }
        }
        removed.extend(repository.branch_forget(&branch, &head, &refs_below(&plan))?);
        Ok(removed)
    })
    .await
}

/// Returns true if `forget` would remove anything.
fn would_forget(plan: &Plan, project: &Project, repository: &Repository) -> Result<bool, EngineError> {
    if !landing_holds(plan, repository)? {
        return Ok(false);
    }
    let (head, branch) = (head_of(plan)?, plan.branch());
    if let Some(remote) = &project.remote
        && repository.sent_branch(remote, &branch, &head)?.is_some()
    {
        return Ok(true);
    }
    Ok(!repository.branch_forgettable(&branch, &head, &refs_below(plan))?.is_empty())
}

/// Returns the prefixes of the refs that are removed with a plan's branch. An intent remains if git could not
/// delete it when the landing was recorded.
fn refs_below(plan: &Plan) -> [String; 2] {
    [SNAPSHOTS, INTENTS].map(|prefix| format!("{prefix}{}/", plan.id))
}

fn head_of(plan: &Plan) -> Result<CommitId, EngineError> {
    commit_id(plan.head_commit.as_deref().unwrap_or(&plan.base_commit))
}

/// Returns true if the landing of a plan contains its latest result. A landing found after a restore may
/// contain another result; then the refs stay.
fn landing_holds(plan: &Plan, repository: &Repository) -> Result<bool, EngineError> {
    let Some(landed) = plan.landed_commit.as_deref() else { return Ok(false) };
    Ok(holds(repository, &commit_id(&plan.base_commit)?, &commit_id(landed)?, &head_of(plan)?)?)
}

/// Returns true if a landing contains a result: merging the result into it changes nothing.
fn holds(
    repository: &Repository,
    base: &CommitId,
    landed: &CommitId,
    head: &CommitId,
) -> Result<bool, GitError> {
    Ok(match repository.merge(base, landed, head)? {
        MergeOutcome::Clean(tree) => tree == repository.tree_of(landed)?,
        MergeOutcome::Conflict { .. } => false,
    })
}
