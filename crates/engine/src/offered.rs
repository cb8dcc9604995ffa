//! The commands that a stored plan accepts now. This module reads the plan's open decision, the latest
//! enforcement of its rules and its lock; `domain` derives the offers from them.

use drydock_domain::{Authority, Enforcement, Offer, Plan, State, StoredPlan, offers, offers_unheld};
use drydock_store::Sighted;

use crate::engine::Engine;
use crate::error::EngineError;

/// The commands that a plan accepts, and the enforcement that blocks it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offered {
    /// The latest enforcement of the plan's rules, if it is still valid for the plan and blocks it.
    pub blocked: Option<Enforcement>,
    /// The commands that the plan accepts.
    pub offers: Vec<Offer>,
}

impl Offered {
    /// Returns what this authority can do with a plan, given all rows that determine it.
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
        // Another process changed the plan since; the answer is about the revision that the caller has.
        let pending = match plan.pending_decision() {
            Some(id) => Some(self.decision(id.as_str()).await?),
            None => None,
        };
        Ok(Sighted { snapshot: StoredPlan { plan: plan.clone(), pending }, enforced: None, held: true })
    }
}
