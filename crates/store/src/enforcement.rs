//! The latest enforcement of the invariants for each plan, in a separate row. It is written with the event
//! that reports it, even if the invariants block and the plan's row stays unchanged.

use std::collections::BTreeMap;

use drydock_domain::{Enforced, Enforcement, Event, Name, Plan, PlanId};

use crate::plan::row::{body, parse};
use crate::tx::{BoxFuture, Tx};
use crate::value::{Row, Statement, Value};
use crate::{Store, StoreError};

pub(crate) const FETCH: &str = "SELECT plan, body FROM enforcements WHERE plan = $1";

const RECORD: &str = "INSERT INTO enforcements (plan, revision, blocks, body) VALUES ($1, $2, $3, $4)
    ON CONFLICT (plan) DO UPDATE SET revision = excluded.revision, blocks = excluded.blocks, body = excluded.body";

/// Returns the statement that stores the latest enforcement among these events of a plan.
pub(crate) fn record(plan: &Plan, events: &[Event]) -> Result<Option<Statement>, StoreError> {
    let Some(enforcement) = events.iter().rev().find_map(enforcement) else { return Ok(None) };
    let blocks = i64::from(!enforcement.blocking().is_empty());
    let enforced = Enforced::of(plan, enforcement.clone());
    let id = plan.id.as_str();
    let params =
        [id.into(), plan.revision.into(), blocks.into(), body("enforcements", id, &enforced)?.into()];
    Ok(Some(Statement::new(RECORD, params)))
}

fn enforcement(event: &Event) -> Option<&Enforcement> {
    match event {
        Event::InvariantEnforced(enforcement) | Event::InvariantBlocked(enforcement) => Some(enforcement),
        _ => None,
    }
}

/// Reads an enforcement from the columns plan and body.
pub(crate) fn enforced_from(row: &Row) -> Result<Enforced, StoreError> {
    parse("enforcements", row.text(0)?, row.text(1)?)
}

/// Deletes the blocking enforcements that contain a changed invariant: its result for the plan is no longer
/// known.
pub(crate) async fn forget(tx: &mut Tx<'_>, rule: &Name) -> Result<(), StoreError> {
    let blocking =
        tx.query(Statement::new("SELECT plan, body FROM enforcements WHERE blocks = 1", [])).await?;
    for row in &blocking {
        let enforced = enforced_from(row)?;
        if enforced.enforcement.findings.iter().any(|finding| finding.invariant == *rule) {
            let sql = "DELETE FROM enforcements WHERE plan = $1";
            tx.query(Statement::new(sql, [row.text(0)?.into()])).await?;
        }
    }
    Ok(())
}

impl Store {
    /// Returns the latest enforcement of the invariants for a plan.
    pub fn enforcement_fetch(&self, plan: &PlanId) -> BoxFuture<'_, Result<Option<Enforced>, StoreError>> {
        let plan = plan.clone();
        Box::pin(self.read(move |tx| {
            Box::pin(async move {
                let rows = tx.last(Statement::new(FETCH, [plan.as_str().into()])).await?;
                rows.first().map(enforced_from).transpose()
            })
        }))
    }

    /// Returns the latest enforcements of these plans that block, by plan id.
    pub fn enforcement_blocking(
        &self,
        plans: &[PlanId],
    ) -> BoxFuture<'_, Result<BTreeMap<String, Enforced>, StoreError>> {
        let params: Vec<Value> = plans.iter().map(|plan| plan.as_str().into()).collect();
        Box::pin(async move {
            if params.is_empty() {
                return Ok(BTreeMap::new());
            }
            let places: Vec<_> = (1..=params.len()).map(|place| format!("${place}")).collect();
            let sql = format!(
                "SELECT plan, body FROM enforcements WHERE blocks = 1 AND plan IN ({})",
                places.join(", ")
            );
            self.read(move |tx| {
                Box::pin(async move {
                    let rows = tx.last(Statement::composed(sql, params)).await?;
                    let named = |row: &Row| Ok((row.text(0)?.to_owned(), enforced_from(row)?));
                    rows.iter().map(named).collect()
                })
            })
            .await
        })
    }
}
