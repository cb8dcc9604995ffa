//! Subplans in other projects land there, under the locks of those projects. All of them are queued before
//! the first one can land, and their parent lands last. After a crash, each one is therefore landed, intended
//! or queued, and recorded as such.

use drydock_domain::{
    ChildState, Command, Complete, ErrorClass, Failure, Fanout, NextPhase, Plan, Progress, Stage,
    SubplanStatus, SubplanUpdate,
};

use super::tend::ScheduleOutcome;
use crate::engine::{Engine, WORKER};
use crate::error::EngineError;
use crate::hold::PlanLockGuard;
use crate::steer::Caller;

impl Engine {
    pub(super) async fn land_ready(
        &self,
        hold: &PlanLockGuard,
        plan: &Plan,
        fanout: &Fanout,
    ) -> Result<ScheduleOutcome, EngineError> {
        let children = self.children(&plan.id).await?;
        let seen = children.seen(fanout);
        if self.record_news(hold, plan, &children, fanout.updates(&seen)).await? {
            return Ok(ScheduleOutcome::Moved);
        }
        let mut moved = false;
        let ready = fanout
            .pieces
            .iter()
            .zip(&seen)
            .enumerate()
            .filter(|(_, (piece, _))| piece.fate == SubplanStatus::Ready);
        for (index, (piece, seen)) in ready {
            let Some(child) = children.of(piece) else { continue };
            moved |= match (&child.stage, seen) {
                (Stage::Execute(Progress::Reached(Complete)), _) => match self.let_land(hold, child).await {
                    // If its own project does not allow the landing, a person has to decide.
                    Err(EngineError::Refused(refusal)) => {
                        let text = format!("it must not land: {refusal}");
                        let failure = Failure::new(ErrorClass::SubplanFailed, text);
                        let news = SubplanUpdate::Failed { piece: index, run: child.run.clone(), failure };
                        self.issue(hold, Command::Tend(vec![news]), WORKER).await?;
                        return Ok(ScheduleOutcome::Moved);
                    }
                    done => done?,
                },
                // It failed before, and a person asked for a retry.
                (_, ChildState::Failed { .. }) => self.issue_child(hold, child, Command::Retry).await?,
                (_, _) => false,
            };
        }
        Ok(if moved { ScheduleOutcome::Moved } else { ScheduleOutcome::Rests(None) })
    }

    /// Queues the landing of a subplan in its own project. The approval of its parent counts for it.
    async fn let_land(&self, parent: &PlanLockGuard, child: &Plan) -> Result<bool, EngineError> {
        let hold = match parent.child(self, child, "queue its landing").await {
            Ok(hold) => hold,
            Err(EngineError::LockHeld { .. }) => return Ok(false),
            Err(error) => return Err(error),
        };
        let done = self.advance_held(&hold, &child.id, NextPhase::Apply, None, &Caller::worker()).await;
        hold.release().await;
        done.map(|_| true)
    }
}
