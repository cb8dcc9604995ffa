//! Carrying an answer out, and going back to an earlier state: what it changes in the plan is committed with it; what it changes in the repository is
//! done at once, and again before the next run should that have been cut short.

use drydock_domain::{Command, Plan, PlanId, admit, told};

use super::together::Together;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::hold::Hold;
use crate::look::Checkpoint;
use crate::steer::Caller;

/// How much of a commit's id names it.
const COMMIT_CHARS_MIN: usize = 7;

impl Engine {
    /// Goes back to an earlier state of the work: the next run of Execute begins on exactly that tree. What is newer is
    /// kept as a snapshot.
    pub async fn roll_back(&self, plan: &PlanId, given: &str, caller: &Caller) -> Result<Plan, EngineError> {
        let stored = self.plan_stored(plan).await?;
        admit(&stored, &Command::RollBack { commit: given.to_owned() }, caller.authority)?;
        let checkpoints = self.checkpoints(&stored).await?;
        let named = |one: &&Checkpoint| {
            one.reference == given
                || one.reference.rsplit('/').next() == Some(given)
                || (given.len() >= COMMIT_CHARS_MIN && one.commit.starts_with(given))
        };
        let Some(checkpoint) = checkpoints.iter().find(named) else {
            return Err(EngineError::absent("checkpoint", given));
        };
        let commit = checkpoint.commit.clone();
        let hold = self.hold_at_rest(plan, "roll back").await?;
        let done = async {
            self.expected(plan, caller).await?;
            let plan = self.issue(&hold, Command::RollBack { commit }, caller).await?.plan;
            self.carry_out(&hold, &plan).await;
            Ok(plan)
        }
        .await;
        hold.release().await;
        self.wind_down_after(&done).await;
        done
    }

    /// Moves the branch to where an answer said that the next run begins.
    pub(crate) async fn carry_out(&self, hold: &Hold, plan: &Plan) {
        if plan.take_up.is_none() {
            return;
        }
        let done = async {
            let project = self.project(plan.spec.project.as_str()).await?;
            let repository = self.repository(&project).await?;
            let repository = repository.on_behalf(plan.id.as_str(), hold.lease().fence());
            let together = Together { engine: self, hold, plan, project: &project, repository: &repository };
            together.take_up_answer().await
        };
        if let Err(error) = done.await {
            tracing::warn!(plan = %plan.id, error = %told(&error), "the branch is moved when the next run begins");
        }
    }
}
