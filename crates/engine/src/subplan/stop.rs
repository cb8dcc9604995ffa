//! Stops a tree of plans at the command line: the driven plan waits for a person, and its subplans wait for
//! their turn, so that no worker continues a plan that a person stopped.

use std::time::Duration;

use drydock_domain::{Command, Obstacle, PlanId, State, error_chain};
use drydock_store::BoxFuture;
use tokio::time::Instant;

use super::tend::is_tended;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::hold::PlanLockGuard;

/// Maximum time to wait for the lock of a plan whose subplans are being scheduled.
const HOLD_MAX: Duration = Duration::from_secs(3);
const HOLD_POLL: Duration = Duration::from_millis(20);

impl Engine {
    /// Records that a person stops the command that drives a plan, and holds the plan until a person
    /// continues it. A run in progress is held when it is stopped; call [`Engine::shut_down`] for that.
    pub async fn hold_stopped(&self, given: &str) {
        let held = async {
            let plan = self.plan(given).await?;
            self.stop_for(&plan.id);
            self.hold_tree(&plan.id).await
        };
        if let Err(error) = held.await {
            tracing::warn!(plan = given, error = %error_chain(&error), "could not make the plan wait for a person; a worker may continue it");
        }
    }

    async fn hold_tree(&self, id: &PlanId) -> Result<(), EngineError> {
        let deadline = Instant::now() + HOLD_MAX;
        loop {
            match self.lock_plan(id, "wait for a person").await {
                Ok(hold) => {
                    self.hold_for_person(&hold, id).await;
                    let below = self.step_back_below(&hold, id.clone()).await;
                    hold.release().await;
                    return below;
                }
                Err(EngineError::LockHeld { lock }) => {
                    let processing = self.load_plan(id).await?.stage.state() == State::Processing;
                    if processing || Instant::now() >= deadline {
                        tracing::debug!(plan = %id, ?lock, "its own run makes it wait for a person");
                        return Ok(());
                    }
                    tokio::time::sleep(HOLD_POLL).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes back the turn of all subplans that are not running. Running ones give it back when they are
    /// stopped.
    fn step_back_below<'a>(
        &'a self,
        hold: &'a PlanLockGuard,
        id: PlanId,
    ) -> BoxFuture<'a, Result<(), EngineError>> {
        Box::pin(async move {
            for child in self.store().plan_children(&id).await? {
                if child.stage.is_terminal() {
                    continue;
                }
                self.issue_child(hold, &child, Command::HoldBack(Obstacle::StoppedAbove)).await?;
                if !is_tended(&child) {
                    continue;
                }
                match hold.child(self, &child, "wait for a person").await {
                    Ok(held) => {
                        let below = self.step_back_below(&held, child.id.clone()).await;
                        held.release().await;
                        below?;
                    }
                    Err(EngineError::LockHeld { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        })
    }
}
