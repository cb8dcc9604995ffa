//! Conversion between plans and rows. The columns are for lists and filters; the body is the plan. If they
//! disagree, the row is damaged and an error is returned. It is never replaced by a default.

use drydock_domain::{Decision, Plan};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::StoreError;
use crate::tx::Tx;
use crate::value::{Row, Statement};

/// The columns that `plan_from` reads, in order.
pub(crate) const PLAN_COLUMNS: &str = "id, phase, state, revision, project, action, body";

/// Reads a plan from the columns that start at `first`.
pub(crate) fn plan_from(row: &Row, first: usize) -> Result<Plan, StoreError> {
    let id = row.text(first)?;
    let plan: Plan = parse("plans", id, row.text(first + 6)?)?;
    let columns = [
        ("id", id, plan.id.as_str()),
        ("phase", row.text(first + 1)?, plan.stage.phase().name()),
        ("state", row.text(first + 2)?, plan.stage.state().name()),
        ("project", row.text(first + 4)?, plan.spec.project.as_str()),
        ("action", row.text(first + 5)?, plan.spec.action.as_str()),
    ];
    for (name, column, body) in columns {
        if column != body {
            let reason = format!("the column {name} has {column:?}, the body has {body:?}");
            return Err(StoreError::damaged("plans", id, reason));
        }
    }
    let revision = row.int(first + 3)?;
    if revision != plan.revision {
        let reason = format!("the column revision has {revision}, the body has {}", plan.revision);
        return Err(StoreError::damaged("plans", id, reason));
    }
    Ok(plan)
}

/// Reads a decision from the columns id, plan, status and body that start at `first`.
pub(crate) fn decision_from(row: &Row, first: usize) -> Result<Decision, StoreError> {
    let id = row.text(first)?;
    let decision: Decision = parse("decisions", id, row.text(first + 3)?)?;
    let columns = [
        ("id", id, decision.id.as_str()),
        ("plan", row.text(first + 1)?, decision.plan.as_str()),
        ("status", row.text(first + 2)?, decision.status.name()),
    ];
    for (name, column, body) in columns {
        if column != body {
            let reason = format!("the column {name} has {column:?}, the body has {body:?}");
            return Err(StoreError::damaged("decisions", id, reason));
        }
    }
    Ok(decision)
}

/// Parses a JSON body.
pub(crate) fn parse<T: DeserializeOwned>(
    table: &'static str,
    key: &str,
    body: &str,
) -> Result<T, StoreError> {
    serde_json::from_str(body).map_err(|error| StoreError::damaged(table, key, error.to_string()))
}

/// Serializes a JSON body.
pub(crate) fn body<T: Serialize>(table: &'static str, key: &str, value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::damaged(table, key, error.to_string()))
}

/// Reads a plan and locks its row until the transaction ends.
pub(crate) async fn hold(tx: &mut Tx<'_>, id: &str) -> Result<Option<Plan>, StoreError> {
    let held = tx.dialect().for_update();
    let sql = format!("SELECT {PLAN_COLUMNS} FROM plans WHERE id = $1{held}");
    let rows = tx.query(Statement::composed(sql, vec![id.into()])).await?;
    rows.first().map(|row| plan_from(row, 0)).transpose()
}
