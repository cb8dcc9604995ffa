//! What is asked of whoever holds a plan, by somebody who does not: to stop, above all. The holder reads it while it
//! works; the commits that begin and end a run clear it.

use drydock_domain::PlanId;

use crate::plan::row::hold;
use crate::tx::{BoxFuture, Tx, Verdict};
use crate::value::{Row, Statement};
use crate::{CommitError, Store, StoreError};

/// Something that is asked of a plan's holder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// What is asked.
    pub kind: RequestKind,
    /// Why.
    pub reason: String,
    /// Who asks.
    pub by: String,
}

/// What can be asked of a plan's holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestKind {
    /// End the plan.
    Cancel,
}

impl RequestKind {
    fn name(self) -> &'static str {
        match self {
            RequestKind::Cancel => "cancel",
        }
    }
}

impl Store {
    /// Leaves a request for the plan's holder, in place of an earlier one.
    pub fn request_put(&self, plan: &PlanId, request: &Request) -> BoxFuture<'_, Result<(), CommitError>> {
        let (plan, request) = (plan.clone(), request.clone());
        Box::pin(async move { self.write(move |tx| Box::pin(put(tx, plan, request))).await? })
    }

    /// Returns what is asked of the plan's holder.
    pub fn request_fetch(&self, plan: &PlanId) -> BoxFuture<'_, Result<Option<Request>, StoreError>> {
        let plan = plan.clone();
        Box::pin(self.read(move |tx| {
            Box::pin(async move {
                let sql = "SELECT plan, kind, reason, asked_by FROM requests WHERE plan = $1";
                let rows = tx.last(Statement::new(sql, [plan.as_str().into()])).await?;
                rows.first().map(request_from).transpose()
            })
        }))
    }
}

async fn put(
    tx: &mut Tx<'_>,
    plan: PlanId,
    request: Request,
) -> Result<Verdict<Result<(), CommitError>>, StoreError> {
    if hold(tx, plan.as_str()).await?.is_none() {
        return Ok(Verdict::Undo(Err(CommitError::PlanMissing(plan))));
    }
    let sql = "INSERT INTO requests (plan, kind, reason, asked_by, at) VALUES ($1, $2, $3, $4, drydock_now())
        ON CONFLICT (plan) DO UPDATE SET kind = excluded.kind, reason = excluded.reason,
            asked_by = excluded.asked_by, at = excluded.at";
    let params = [plan.as_str().into(), request.kind.name().into(), request.reason.into(), request.by.into()];
    tx.last(Statement::new(sql, params)).await?;
    Ok(Verdict::Keep(Ok(())))
}

fn request_from(row: &Row) -> Result<Request, StoreError> {
    let kind = match row.text(1)? {
        "cancel" => RequestKind::Cancel,
        other => {
            return Err(StoreError::damaged("requests", row.text(0)?, format!("unknown kind {other:?}")));
        }
    };
    Ok(Request { kind, reason: row.text(2)?.to_owned(), by: row.text(3)?.to_owned() })
}
