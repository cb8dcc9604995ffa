//! Carries out an answer or a rollback. The change to the plan is committed with the answer. The change to
//! the repository is made right after, and again before the next run if a crash interrupted it.

use drydock_domain::{Command, Plan, PlanId, admit, error_chain};

use super::together::PlanSync;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::hold::PlanLockGuard;
use crate::look::PlanCheckpoint;
use crate::steer::Caller;

/// The shortest prefix of a commit id that is accepted.
const COMMIT_CHARS_MIN: usize = 7;

impl Engine {
    /// Rolls back to a checkpoint: the next run of Execute starts from exactly that tree. Newer work is kept
    /// as a checkpoint.
    pub async fn roll_back(&self, plan: &PlanId, given: &str, caller: &Caller) -> Result<Plan, EngineError> {
        let stored = self.load_plan(plan).await?;
        admit(&stored, &Command::RollBack { commit: given.to_owned() }, caller.authority)?;
        let checkpoints = self.checkpoints(&stored).await?;
        let named = |one: &&PlanCheckpoint| {
            one.reference == given
                || one.reference.rsplit('/').next() == Some(given)
                || (given.len() >= COMMIT_CHARS_MIN && one.commit.starts_with(given))
        };
        let Some(checkpoint) = checkpoints.iter().find(named) else {
            return Err(EngineError::absent("checkpoint", given));
        };
        let commit = checkpoint.commit.clone();
        let hold = self.lock_idle_plan(plan, "roll back").await?;
        let done = async {
            self.expected(plan, caller).await?;
            let plan = self.issue(&hold, Command::RollBack { commit }, caller).await?.plan;
            self.move_branch_for_answer(&hold, &plan).await;
            Ok(plan)
        }
        .await;
        hold.release().await;
        self.wind_down_after(&done).await;
        done
    }

    /// Moves the branch to the commit from which the next run restarts.
    pub(crate) async fn move_branch_for_answer(&self, hold: &PlanLockGuard, plan: &Plan) {
        if plan.take_up.is_none() {
            return;
        }
        let done = async {
            let project = self.project(plan.spec.project.as_str()).await?;
            let repository = self.repository(&project).await?;
            let repository = repository.on_behalf(plan.id.as_str(), hold.lease().fence());
            let together = PlanSync { engine: self, hold, plan, project: &project, repository: &repository };
            together.move_to_restart().await
        };
        if let Err(error) = done.await {
            tracing::warn!(plan = %plan.id, error = %error_chain(&error), "the branch is moved when the next run starts");
        }
    }
}
