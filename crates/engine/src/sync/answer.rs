//! Carrying an answer out: what it changes in the plan is committed with it; what it changes in the repository is
//! done at once, and again before the next run should that have been cut short.

use drydock_domain::Plan;

use super::together::Together;
use crate::engine::Engine;
use crate::hold::Hold;

impl Engine {
    /// Moves the branch to where an answer said that the next run begins.
    pub(crate) async fn carry_out(&self, hold: &Hold, plan: &Plan) {
        if plan.work_from.is_none() {
            return;
        }
        let done = async {
            let project = self.project(plan.spec.project.as_str()).await?;
            let repository = self.repository(&project).await?;
            let together = Together { engine: self, hold, plan, project: &project, repository: &repository };
            together.take_up_answer().await
        };
        if let Err(error) = done.await {
            tracing::warn!(plan = %plan.id, %error, "the branch is moved when the next run begins");
        }
    }
}
