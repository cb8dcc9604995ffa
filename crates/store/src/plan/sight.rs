//! A plan with everything that determines its possible actions: its open decision, the latest enforcement of
//! its invariants, and whether its lock is held. Read at one point in time.

use drydock_domain::{Enforced, PlanId, StoredPlan};

use super::claim::{DECISION, snapshot_from};
use super::read::FETCH;
use crate::enforcement;
use crate::tx::BoxFuture;
use crate::value::{Row, Statement, Value};
use crate::{Store, StoreError};

/// The rows of a plan. If two values are equal, responses built from them are equal too, so that a cache can
/// compare them.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanRows {
    plan: Row,
    decision: Option<Row>,
    enforcement: Option<Row>,
    held: bool,
}

/// The parsed rows of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sighted {
    /// The plan and its open decision.
    pub snapshot: StoredPlan,
    /// The latest enforcement of its invariants.
    pub enforced: Option<Enforced>,
    /// Whether a process holds its lock.
    pub held: bool,
}

const HELD: &str = "SELECT 1 FROM locks
    WHERE scope = 'plan' AND key = $1 AND owner IS NOT NULL AND expires_at > drydock_now()";

impl PlanRows {
    /// Returns the plan's id, if the row has one.
    pub fn id(&self) -> Option<&str> {
        self.plan.text(0).ok()
    }

    /// Returns the size of the rows in bytes.
    pub fn bytes(&self) -> usize {
        let rows = [Some(&self.plan), self.decision.as_ref(), self.enforcement.as_ref()];
        rows.into_iter().flatten().map(Row::bytes).sum()
    }

    /// Parses the rows.
    pub fn read(&self) -> Result<Sighted, StoreError> {
        let decisions = self.decision.as_slice();
        let snapshot = snapshot_from(std::slice::from_ref(&self.plan), decisions)?;
        let missing =
            || StoreError::damaged("plans", self.id().unwrap_or_default(), "it has no row".to_owned());
        Ok(Sighted {
            snapshot: snapshot.ok_or_else(missing)?,
            enforced: self.enforcement.as_ref().map(enforcement::enforced_from).transpose()?,
            held: self.held,
        })
    }
}

impl Store {
    /// Returns the rows of a plan, so that a caller can compare them with rows it read before.
    pub fn plan_rows(&self, id: &PlanId) -> BoxFuture<'_, Result<Option<PlanRows>, StoreError>> {
        let id = id.clone();
        Box::pin(self.read(move |tx| {
            Box::pin(async move {
                let asked = [FETCH, DECISION, enforcement::FETCH, HELD];
                let statements = asked.map(|sql| Statement::new(sql, [Value::from(id.as_str())]));
                let mut answers = tx.finish(statements.into()).await?.into_iter();
                let mut next = || answers.next().and_then(|rows| rows.into_iter().next());
                let (plan, decision, enforcement) = (next(), next(), next());
                let held = next().is_some();
                Ok(plan.map(|plan| PlanRows { plan, decision, enforcement, held }))
            })
        }))
    }
}
