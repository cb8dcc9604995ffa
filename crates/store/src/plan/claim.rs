//! The first step of every write under a lease: lock the lock rows, compare owner, fence and expiry, and read
//! the plan. On PostgreSQL all of this is one round trip.

use drydock_domain::{ChangesetId, PlanId, StoredPlan};

use super::row::{PLAN_COLUMNS, decision_from, plan_from};
use crate::StoreError;
use crate::lease::LeaseKey;
use crate::tx::{Dialect, Tx};
use crate::value::{Row, Statement};

/// The data read under a valid lease.
pub(crate) struct LeasedPlan {
    pub(crate) snapshot: Option<StoredPlan>,
    /// The open changesets of the plan, with the number of their entries.
    pub(crate) open: Vec<(ChangesetId, i64)>,
}

const CURRENT: &str = "SELECT fence FROM locks
    WHERE scope = $1 AND key = $2 AND owner = $3 AND fence = $4 AND expires_at > drydock_now()";
pub(super) const DECISION: &str =
    "SELECT id, plan, status, body FROM decisions WHERE plan = $1 AND status = 'open'";
const CHANGESETS: &str = "SELECT id, entries FROM changesets WHERE plan = $1 AND state = 'open' ORDER BY n";

/// Locks the lock rows of these leases and reads the plan. Returns `None` if one of the leases is no longer
/// valid.
///
/// Separate statements lock the rows first: if another transaction changed a row while we waited for it, only
/// the next statement sees the new row and the current time.
pub(crate) async fn check_lease(
    tx: &mut Tx<'_>,
    plan: &PlanId,
    grips: &[LeaseKey],
) -> Result<Option<LeasedPlan>, StoreError> {
    let mut statements = match tx.dialect() {
        Dialect::Sqlite => Vec::new(),
        Dialect::Postgres => holding(grips),
    };
    let held = statements.len();
    statements.extend(grips.iter().map(current));
    let sql = format!("SELECT {PLAN_COLUMNS} FROM plans WHERE id = $1");
    statements.push(Statement::composed(sql, vec![plan.as_str().into()]));
    statements.push(Statement::new(DECISION, [plan.as_str().into()]));
    statements.push(Statement::new(CHANGESETS, [plan.as_str().into()]));
    let mut answers = tx.pipeline(statements).await?.into_iter().skip(held);
    if answers.by_ref().take(grips.len()).any(|rows| rows.is_empty()) {
        return Ok(None);
    }
    let mut next = || answers.next().unwrap_or_default();
    let (plans, decisions, changesets) = (next(), next(), next());
    let open = changesets.iter().map(open_changeset).collect::<Result<_, _>>()?;
    Ok(Some(LeasedPlan { snapshot: snapshot_from(&plans, &decisions)?, open }))
}

/// Returns the statements that check a lease used by several concurrent writers. Each takes a shared lock on
/// the lock row, so that no other process can acquire the lock meanwhile. The last statement returns a row if
/// the lease is valid.
pub(crate) fn shared(tx: &Tx<'_>, grip: &LeaseKey) -> Vec<Statement> {
    let hold = "SELECT 1 FROM locks WHERE scope = $1 AND key = $2 FOR SHARE";
    match tx.dialect() {
        Dialect::Sqlite => vec![current(grip)],
        Dialect::Postgres => vec![on_row(hold, grip), current(grip)],
    }
}

fn holding(grips: &[LeaseKey]) -> Vec<Statement> {
    let hold = "SELECT 1 FROM locks WHERE scope = $1 AND key = $2 FOR UPDATE";
    // The plan's row needs no lock of its own: every writer of it holds the lock row first.
    grips.iter().map(|grip| on_row(hold, grip)).collect()
}

fn on_row(sql: &'static str, grip: &LeaseKey) -> Statement {
    Statement::new(sql, [grip.scope.name().into(), grip.key.as_str().into()])
}

fn current(grip: &LeaseKey) -> Statement {
    let LeaseKey { scope, key, owner, fence } = grip;
    let params = [scope.name().into(), key.as_str().into(), owner.as_str().into(), fence.0.into()];
    Statement::new(CURRENT, params)
}

fn open_changeset(row: &Row) -> Result<(ChangesetId, i64), StoreError> {
    let id = row.text(0)?;
    let parsed = id.parse().map_err(|error| StoreError::damaged("changesets", id, format!("{error}")))?;
    Ok((parsed, row.int(1)?))
}

/// Builds a snapshot from rows. Rejects a plan that waits for a decision which is not open, or the reverse
/// (S4.5).
pub(crate) fn snapshot_from(plans: &[Row], decisions: &[Row]) -> Result<Option<StoredPlan>, StoreError> {
    let Some(row) = plans.first() else { return Ok(None) };
    let plan = plan_from(row, 0)?;
    let pending = decisions.first().map(|row| decision_from(row, 0)).transpose()?;
    if plan.pending_decision() != pending.as_ref().map(|decision| &decision.id) {
        let reason = format!(
            "it waits for {}, but the open decision is {}",
            plan.pending_decision().map_or("nothing", |id| id.as_str()),
            pending.as_ref().map_or("none", |decision| decision.id.as_str()),
        );
        return Err(StoreError::damaged("plans", plan.id.as_str(), reason));
    }
    Ok(Some(StoredPlan { plan, pending }))
}
