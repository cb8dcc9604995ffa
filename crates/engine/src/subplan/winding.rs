//! Cancels subplans that are no longer needed, down the tree. An interrupted cancellation is continued later.

use drydock_domain::{Authority, Command, Plan, PlanId, error_chain};
use drydock_store::{HolderRequest, RequestKind};

use super::tend::ScheduleOutcome;
use crate::engine::{Engine, WORKER};
use crate::error::EngineError;
use crate::hold::PlanLockGuard;

const REASON: &str = "its parent plan no longer needs it";

impl Engine {
    /// Cancels the children that are marked for it. If another process runs one, that process is asked to
    /// stop it.
    pub(super) async fn cancel_unneeded(
        &self,
        hold: &PlanLockGuard,
        plan: &Plan,
    ) -> Result<ScheduleOutcome, EngineError> {
        let (mut ended, mut moved) = (Vec::new(), false);
        for id in &plan.winding {
            let child = match self.store().plan_fetch(id).await? {
                Some(child) if !child.stage.is_terminal() => child,
                over => {
                    ended.push((id.clone(), over.map(|child| child.used()).unwrap_or_default()));
                    continue;
                }
            };
            // If no person ended a subplan, its open decision stays until a person answers it.
            let ended_by = match plan.ended_by_person.contains(id) {
                true => Authority::Person,
                false => Authority::Engine,
            };
            if self.end_child(hold, &child, ended_by).await? {
                ended.push((id.clone(), self.load_plan(id).await?.used()));
                moved = true;
            }
        }
        if !ended.is_empty() {
            self.issue(hold, Command::WoundUp(ended), WORKER).await?;
            moved = true;
        }
        Ok(if moved { ScheduleOutcome::Moved } else { ScheduleOutcome::Rests(None) })
    }

    async fn end_child(
        &self,
        parent: &PlanLockGuard,
        child: &Plan,
        ended_by: Authority,
    ) -> Result<bool, EngineError> {
        let hold = match parent.child(self, child, "cancel it").await {
            Ok(hold) => hold,
            Err(EngineError::LockHeld { .. }) => {
                self.ask_to_stop(&child.id, ended_by).await?;
                return Ok(false);
            }
            Err(error) => return Err(error),
        };
        let done = self.cancel_held(&hold, &child.id, REASON, ended_by).await;
        hold.release().await;
        match done {
            Ok(_) => Ok(true),
            // It landed before it could be cancelled, which ends it too.
            Err(EngineError::Refused(_)) => Ok(self.load_plan(&child.id).await?.stage.is_terminal()),
            Err(error) => Err(error),
        }
    }

    /// Asks the holder of a subplan to end it, with the authority that ended its parent.
    async fn ask_to_stop(&self, child: &PlanId, ended_by: Authority) -> Result<(), EngineError> {
        if self.store().request_fetch(child).await?.is_none() {
            let (by, via) = (WORKER.to_owned(), WORKER.to_owned());
            let kind = RequestKind::CancelBelow;
            let request = HolderRequest { kind, reason: REASON.to_owned(), by, via, authority: ended_by };
            self.store().request_put(child, &request).await?;
        }
        Ok(())
    }

    /// Cancels all plans below a plan, as far as possible now. Plans that other processes run end when those
    /// processes stop them.
    pub(crate) fn wind_down(&self, plan: PlanId) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            let below = match self.store().plan_children(&plan).await {
                Ok(below) => below,
                Err(error) => {
                    tracing::warn!(%plan, error = %error_chain(&error), "could not list subplans; a worker cancels them");
                    return;
                }
            };
            if below.is_empty() {
                return;
            }
            if let Err(error) = self.schedule_subplans(&plan).await {
                tracing::info!(%plan, error = %error_chain(&error), "subplans are not cancelled yet; a worker cancels them");
            }
            for child in below {
                self.wind_down(child.id).await;
            }
        })
    }
}
