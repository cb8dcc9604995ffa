//! Requests from another process to the holder of a plan: to cancel it. The holder reads them while it works.
//! The commits that start and end a run delete them. The caller's authority is stored, because the holder
//! commits on the caller's behalf.

use drydock_domain::{Authority, PlanId};

use crate::plan::row::hold;
use crate::tx::{BoxFuture, Tx, TxOutcome};
use crate::value::{Row, Statement};
use crate::{CommitError, Store, StoreError};

/// A request to the holder of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HolderRequest {
    /// The requested action.
    pub kind: RequestKind,
    /// The caller's reason.
    pub reason: String,
    /// The caller's name.
    pub by: String,
    /// The channel of the request, e.g. `command line`.
    pub via: String,
    /// The authority that ends the plan.
    pub authority: Authority,
}

/// The kinds of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestKind {
    /// Cancel the plan.
    Cancel,
    /// Cancel the plan because its parent was ended.
    CancelBelow,
}

impl RequestKind {
    const ALL: [RequestKind; 2] = [RequestKind::Cancel, RequestKind::CancelBelow];

    fn name(self) -> &'static str {
        match self {
            RequestKind::Cancel => "cancel",
            RequestKind::CancelBelow => "cancel_below",
        }
    }
}

impl Store {
    /// Stores a request for the plan's holder, replacing an earlier one.
    pub fn request_put(
        &self,
        plan: &PlanId,
        request: &HolderRequest,
    ) -> BoxFuture<'_, Result<(), CommitError>> {
        let (plan, request) = (plan.clone(), request.clone());
        Box::pin(async move { self.write(move |tx| Box::pin(put(tx, plan, request))).await? })
    }

    /// Returns the request to the plan's holder, if there is one.
    pub fn request_fetch(&self, plan: &PlanId) -> BoxFuture<'_, Result<Option<HolderRequest>, StoreError>> {
        let plan = plan.clone();
        Box::pin(self.read(move |tx| {
            Box::pin(async move {
                let sql =
                    "SELECT plan, kind, reason, asked_by, asked_via, authority FROM requests WHERE plan = $1";
                let rows = tx.last(Statement::new(sql, [plan.as_str().into()])).await?;
                rows.first().map(request_from).transpose()
            })
        }))
    }
}

async fn put(
    tx: &mut Tx<'_>,
    plan: PlanId,
    request: HolderRequest,
) -> Result<TxOutcome<Result<(), CommitError>>, StoreError> {
    if hold(tx, plan.as_str()).await?.is_none() {
        return Ok(TxOutcome::Undo(Err(CommitError::PlanMissing(plan))));
    }
    let sql = "INSERT INTO requests (plan, kind, reason, asked_by, asked_via, authority, at)
        VALUES ($1, $2, $3, $4, $5, $6, drydock_now())
        ON CONFLICT (plan) DO UPDATE SET kind = excluded.kind, reason = excluded.reason,
            asked_by = excluded.asked_by, asked_via = excluded.asked_via, authority = excluded.authority,
            at = excluded.at";
    let HolderRequest { kind, reason, by, via, authority } = request;
    let (kind, authority) = (kind.name(), authority.name());
    let params = [plan.as_str().into(), kind.into(), reason.into(), by.into(), via.into(), authority.into()];
    tx.last(Statement::new(sql, params)).await?;
    Ok(TxOutcome::Keep(Ok(())))
}

fn request_from(row: &Row) -> Result<HolderRequest, StoreError> {
    let plan = row.text(0)?;
    let unknown =
        |what: &str, found: &str| StoreError::damaged("requests", plan, format!("unknown {what} {found:?}"));
    let (kind, authority) = (row.text(1)?, row.text(5)?);
    Ok(HolderRequest {
        kind: RequestKind::ALL
            .into_iter()
            .find(|known| known.name() == kind)
            .ok_or_else(|| unknown("kind", kind))?,
        reason: row.text(2)?.to_owned(),
        by: row.text(3)?.to_owned(),
        via: row.text(4)?.to_owned(),
        authority: Authority::ALL
            .into_iter()
            .find(|known| known.name() == authority)
            .ok_or_else(|| unknown("authority", authority))?,
    })
}
