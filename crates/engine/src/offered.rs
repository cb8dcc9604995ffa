//! What can be done with a plan as it is stored: its decision, the latest enforcement of its rules and its lock are read
//! here, and `domain` makes the offers of them.

use drydock_domain::{Authority, Enforcement, Offer, Plan, Snapshot, State, offers, offers_unheld};
use drydock_store::Sighted;

use crate::engine::Engine;
use crate::error::EngineError;

/// What can be done with a plan, and what its rules said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offered {
    /// The latest enforcement of its rules, if it is about the plan as it stands and blocks.
    pub blocked: Option<Enforcement>,
    /// What can be done.
    pub offers: Vec<Offer>,
}

impl Offered {
    /// Returns what this authority can do with a plan that was read with all that decides it.
    pub fn of(sighted: &Sighted, authority: Authority) -> Self {
        let Sighted { snapshot, enforced, held } = sighted;
        let blocked = enforced.as_ref().and_then(|enforced| enforced.blocking(&snapshot.plan));
        let offers = match (snapshot.plan.stage.state(), held) {
            (State::Processing, false) => offers_unheld(snapshot, authority),
            _ => offers(snapshot, blocked, authority),
        };
        Self { blocked: blocked.cloned(), offers }
    }
}

impl Engine {
    /// Returns what this authority can do with a plan that was just read or committed.
    pub async fn offered(&self, plan: &Plan, authority: Authority) -> Result<Offered, EngineError> {
        Ok(Offered::of(&self.sighted(plan).await?, authority))
    }

    pub(crate) async fn sighted(&self, plan: &Plan) -> Result<Sighted, EngineError> {
        let rows = self.store().plan_rows(&plan.id).await?;
        let sighted = rows.map(|rows| rows.read()).transpose()?;
        if let Some(sighted) = sighted.filter(|sighted| sighted.snapshot.plan.revision == plan.revision) {
            return Ok(sighted);
        }
        // Another process moved it since; the answer is about the plan that the caller got.
        let pending = match plan.pending_decision() {
            Some(id) => Some(self.decision(id.as_str()).await?),
            None => None,
        };
        Ok(Sighted { snapshot: Snapshot { plan: plan.clone(), pending }, enforced: None, held: true })
    }
}
