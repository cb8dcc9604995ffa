//! The outbox: what must happen next to each plan. It is written by the commit that makes it due and claimed here by
//! one worker at a time; a claim comes back when its time is over, unless a commit made something else due.

use std::time::Duration;

use drydock_domain::{Effect, PlanId};

use crate::lease::micros;
use crate::plan::row::parse;
use crate::tx::{BoxFuture, Dialect, Tx, Verdict};
use crate::value::{Row, Statement};
use crate::{Store, StoreError};

/// The right to carry out an effect, for a while.
#[must_use = "an effect that is claimed and not carried out waits for the claim to expire"]
#[derive(Debug, PartialEq, Eq)]
pub struct Claim {
    /// The plan.
    pub plan: PlanId,
    /// What to do.
    pub effect: Effect,
    /// How often it was claimed, this time included.
    pub attempts: i64,
    owner: String,
}

impl Store {
    /// Claims the effect that has been due longest of a plan that nobody holds; no two claimants get the same one
    /// while a claim lasts.
    pub fn effect_claim(
        &self,
        owner: &str,
        ttl: Duration,
    ) -> BoxFuture<'_, Result<Option<Claim>, StoreError>> {
        let (owner, ttl) = (owner.to_owned(), micros(ttl));
        Box::pin(self.write(move |tx| Box::pin(claim(tx, owner, ttl))))
    }

    /// Makes a claimed effect due again after a delay; nothing when the claim is no longer ours.
    pub fn effect_defer(&self, claim: &Claim, delay: Duration) -> BoxFuture<'_, Result<(), StoreError>> {
        let sql = "UPDATE outbox SET ready_at = drydock_now() + $4, claimed_by = NULL
            WHERE plan = $1 AND claimed_by = $2 AND attempts = $3";
        let params = [
            claim.plan.as_str().into(),
            claim.owner.as_str().into(),
            claim.attempts.into(),
            micros(delay).into(),
        ];
        let statement = Statement::new(sql, params);
        Box::pin(self.write(move |tx| {
            Box::pin(async move {
                tx.quiet();
                tx.last(statement).await?;
                Ok(Verdict::Keep(()))
            })
        }))
    }
}

/// A plan that somebody holds is being worked on, for longer than a claim lasts perhaps; its effect is nobody else's.
const CLAIM: &str =
    "UPDATE outbox SET ready_at = drydock_now() + $2, claimed_by = $1, attempts = attempts + 1
    WHERE plan = (SELECT plan FROM outbox o WHERE ready_at <= drydock_now()
        AND NOT EXISTS (SELECT 1 FROM locks l WHERE l.scope = 'plan' AND l.key = o.plan
            AND l.owner IS NOT NULL AND l.expires_at > drydock_now())
        ORDER BY ready_at LIMIT 1)
    RETURNING plan, effect, attempts";
const CLAIM_SKIPPING: &str = "UPDATE outbox SET ready_at = drydock_now() + $2, claimed_by = $1,
        attempts = attempts + 1
    WHERE plan = (SELECT plan FROM outbox o WHERE ready_at <= drydock_now()
        AND NOT EXISTS (SELECT 1 FROM locks l WHERE l.scope = 'plan' AND l.key = o.plan
            AND l.owner IS NOT NULL AND l.expires_at > drydock_now())
        ORDER BY ready_at LIMIT 1 FOR UPDATE SKIP LOCKED)
    RETURNING plan, effect, attempts";

async fn claim(tx: &mut Tx<'_>, owner: String, ttl: i64) -> Result<Verdict<Option<Claim>>, StoreError> {
    tx.quiet();
    let sql = match tx.dialect() {
        Dialect::Sqlite => CLAIM,
        Dialect::Postgres => CLAIM_SKIPPING,
    };
    let rows = tx.last(Statement::new(sql, [owner.as_str().into(), ttl.into()])).await?;
    match rows.first() {
        Some(row) => Ok(Verdict::Keep(Some(claim_from(row, owner)?))),
        None => Ok(Verdict::Undo(None)),
    }
}

fn claim_from(row: &Row, owner: String) -> Result<Claim, StoreError> {
    let id = row.text(0)?;
    let plan = id.parse().map_err(|error| StoreError::damaged("outbox", id, format!("{error}")))?;
    Ok(Claim { plan, effect: parse("outbox", id, row.text(1)?)?, attempts: row.int(2)?, owner })
}
