//! Removes the refs that keep join results which are no longer needed. A landed plan removes its own
//! automatically; cancelled plans leave theirs. A ref is removed only with proof that the subplan's own refs
//! keep its work.

use std::collections::BTreeMap;

use drydock_domain::{JOINS, Plan, PlanId, Project, SNAPSHOTS, State, error_chain};
use drydock_worktree::{CommitId, GitError, RefDeleted, Repository};

use crate::engine::Engine;
use crate::error::EngineError;
use crate::phase::commit_id;
use crate::task;
use crate::upkeep::{GcKept, GcMode, GcRemoved, GcResult, Held};

/// A ref that keeps the result of joining a subplan.
#[derive(Debug, Clone)]
struct JoinRef {
    name: String,
    commit: CommitId,
    child: String,
}

/// Whether another ref keeps the work of a subplan.
enum KeptBy {
    /// The subplan has no work.
    Nothing,
    /// This ref keeps it.
    Kept(String),
    /// No other ref keeps it.
    Nowhere,
}

impl Engine {
    /// Removes the join refs of all plans that have ended.
    pub(crate) async fn collect_joins(
        &self,
        sweep: GcMode,
        collected: &mut GcResult,
    ) -> Result<(), EngineError> {
        for project in self.store().project_list().await? {
            let repository = match self.repository(&project).await {
                Ok(repository) => repository,
                Err(error) => {
                    let what = format!("{JOINS} of project {}", project.name);
                    collected.kept.push(GcKept { what, reason: error_chain(&error) });
                    continue;
                }
            };
            let looked = repository.clone();
            let mut plans: BTreeMap<PlanId, Vec<JoinRef>> = BTreeMap::new();
            for (name, commit) in task::blocking(move || looked.refs(JOINS)).await? {
                if let Some((plan, child)) = named(&name) {
                    plans.entry(plan).or_default().push(JoinRef { name, commit, child });
                }
            }
            for (id, joins) in plans {
                self.collect_joins_of(&id, &project, &repository, joins, sweep, collected).await?;
            }
        }
        Ok(())
    }

    async fn collect_joins_of(
        &self,
        id: &PlanId,
        project: &Project,
        repository: &Repository,
        joins: Vec<JoinRef>,
        sweep: GcMode,
        collected: &mut GcResult,
    ) -> Result<(), EngineError> {
        let kept = |reason: String| GcKept { what: format!("{JOINS}{id}/"), reason };
        // Another store may work in the same repository.
        let Some(plan) = self.store().plan_fetch(id).await? else {
            collected.kept.push(kept("its plan is not in this store".to_owned()));
            return Ok(());
        };
        if plan.spec.project != project.name {
            return Ok(());
        }
        if !is_over(&plan) {
            let (phase, state) = (plan.stage.phase(), plan.stage.state());
            collected.kept.push(kept(format!("the plan is {phase}/{state}")));
            return Ok(());
        }
        let hold = match self.hold_to_sweep(id, sweep).await? {
            Held::Here(hold) => Some(hold),
            Held::NotNeeded => None,
            Held::Elsewhere { reason } => {
                collected.kept.push(kept(reason));
                return Ok(());
            }
        };
        let mut swept = Ok(());
        for join in joins {
            swept = self.collect_join(&plan, repository, join, sweep, collected).await;
            if swept.is_err() {
                break;
            }
        }
        if let Some(hold) = hold {
            hold.release().await;
        }
        swept
    }

    async fn collect_join(
        &self,
        plan: &Plan,
        repository: &Repository,
        join: JoinRef,
        sweep: GcMode,
        collected: &mut GcResult,
    ) -> Result<(), EngineError> {
        let JoinRef { name, commit, child } = join;
        let stored = match child.parse() {
            Ok(id) => self.store().plan_fetch(&id).await?,
            Err(_) => None,
        };
        let Some(stored) = stored else {
            collected
                .kept
                .push(GcKept { what: name, reason: format!("{child} is not a subplan in this store") });
            return Ok(());
        };
        let (repository, ref_name) = (repository.clone(), name.clone());
        let done = task::blocking(move || {
            let elsewhere = elsewhere(&repository, &stored)?;
            let moved = match (&elsewhere, sweep) {
                (KeptBy::Nowhere, _) | (_, GcMode::Tell) => false,
                (KeptBy::Nothing | KeptBy::Kept(_), GcMode::Remove) => {
                    matches!(repository.ref_delete(&ref_name, &commit)?, RefDeleted::Moved { .. })
                }
            };
            Ok::<_, EngineError>((elsewhere, moved))
        });
        let (elsewhere, moved) = done.await?;
        let over = format!("the plan is {}, so nothing is joined any more", plan.stage.state());
        match elsewhere {
            _ if moved => {
                collected.kept.push(GcKept { what: name, reason: "it was moved concurrently".to_owned() });
            }
            KeptBy::Nowhere => {
                let reason = format!("no other ref contains the work of {child}");
                collected.kept.push(GcKept { what: name, reason });
            }
            KeptBy::Nothing => {
                collected
                    .removed
                    .push(GcRemoved { what: name, proof: format!("{over}; {child} changed nothing") });
            }
            KeptBy::Kept(by) => {
                let proof = format!("{over}; the work of {child} is kept as {by}");
                collected.removed.push(GcRemoved { what: name, proof });
            }
        }
        Ok(())
    }
}

/// Parses the plan and the child from the name of a join ref.
fn named(name: &str) -> Option<(PlanId, String)> {
    let (plan, child) = name.strip_prefix(JOINS)?.split_once('/')?;
    Some((plan.parse().ok()?, child.to_owned()))
}

/// Returns true if nothing can join the plan any more.
fn is_over(plan: &Plan) -> bool {
    matches!(plan.stage.state(), State::Applied | State::Cancelled) && plan.winding.is_empty()
}

/// Finds a ref of the subplan itself that keeps its work: the same commit, or the same files.
fn elsewhere(repository: &Repository, child: &Plan) -> Result<KeptBy, EngineError> {
    let Some(head) = &child.head_commit else { return Ok(KeptBy::Nothing) };
    let head = commit_id(head)?;
    let own = [format!("{SNAPSHOTS}{}/", child.id), format!("refs/heads/{}", child.branch())];
    for prefix in own {
        for (name, commit) in repository.refs(&prefix)? {
            if keeps(repository, &commit, &head)? {
                return Ok(KeptBy::Kept(name));
            }
        }
    }
    Ok(KeptBy::Nowhere)
}

fn keeps(repository: &Repository, commit: &CommitId, head: &CommitId) -> Result<bool, GitError> {
    Ok(repository.is_ancestor(head, commit)? || repository.tree_of(commit)? == repository.tree_of(head)?)
}
