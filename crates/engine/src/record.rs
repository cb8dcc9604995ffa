//! Removes git's worktree records that git itself no longer prunes, because drydock locks them. `gc` removes
//! a record below our own directory if the worktree is missing or was never filled, and if its run is over.

use std::path::{Path, PathBuf};

use drydock_domain::{PlanId, State, error_chain};

use crate::engine::Engine;
use crate::error::EngineError;
use crate::task;
use crate::upkeep::{GcKept, GcMode, GcRemoved, GcResult};

impl Engine {
    pub(crate) async fn collect_records(
        &self,
        sweep: GcMode,
        collected: &mut GcResult,
    ) -> Result<(), EngineError> {
        for project in self.store().project_list().await? {
            // `doctor` reports a repository that cannot be opened.
            let Ok(repository) = self.repository(&project).await else { continue };
            let (looked, below) = (repository.clone(), self.settings().worktrees.clone());
            for tree in task::blocking(move || looked.unfilled_trees(&below)).await {
                if !self.is_over(&tree).await? {
                    continue;
                }
                let what = format!("git's record of {}", tree.display());
                if sweep == GcMode::Remove {
                    let (swept, path) = (repository.clone(), tree.clone());
                    if let Err(error) = task::blocking(move || swept.checkout_remove(&path)).await {
                        collected.kept.push(GcKept { what, reason: error_chain(&error) });
                        continue;
                    }
                }
                let proof = "the worktree has no files, and its run has ended".to_owned();
                collected.removed.push(GcRemoved { what, proof });
            }
        }
        Ok(())
    }

    /// Returns whether the run of a worktree is over. A run whose plan this store does not have may still be active.
    async fn is_over(&self, tree: &Path) -> Result<bool, EngineError> {
        let Some((plan, run)) = run_of(tree) else { return Ok(false) };
        let Some(plan) = self.store().plan_fetch(&plan).await? else { return Ok(false) };
        let current = plan.run.as_ref().is_some_and(|current| current.as_str() == run);
        Ok(!(current && plan.stage.state() == State::Processing))
    }
}

/// Reads a plan and a run from the path of a worktree: `PLAN/RUN/tree`.
fn run_of(tree: &Path) -> Option<(PlanId, String)> {
    let run: PathBuf = tree.parent()?.to_owned();
    let plan = run.parent()?.file_name()?.to_str()?.parse().ok()?;
    Some((plan, run.file_name()?.to_str()?.to_owned()))
}
