//! The outbox: the effect that is due next for each plan. The commit that makes an effect due writes it, and
//! one worker at a time claims it. When a claim expires, the effect can be claimed again, unless a commit has
//! replaced it.

use std::time::Duration;

use drydock_domain::{Effect, Name, PlanId, ProcessIdentity};

use crate::lease::{identity_text, micros};
use crate::plan::row::parse;
use crate::tx::{BoxFuture, Dialect, Tx, TxOutcome};
use crate::value::{Row, Statement, Value};
use crate::{Store, StoreError};

/// The right to perform an effect, for a limited time.
#[must_use = "a claimed effect is not performed by others until the claim expires"]
#[derive(Debug, PartialEq, Eq)]
pub struct EffectClaim {
    /// The plan.
    pub plan: PlanId,
    /// The effect to perform.
    pub effect: Effect,
    /// Number of claims so far, including this one.
    pub attempts: i64,
    owner: String,
}

impl Store {
    /// Claims an effect of a plan whose lock is free: the one closest to landing, and among those the one due
    /// longest. Two callers never get the same effect while a claim is valid.
    pub fn effect_claim(
        &self,
        owner: &str,
        ttl: Duration,
    ) -> BoxFuture<'_, Result<Option<EffectClaim>, StoreError>> {
        let limits = PhaseLimits::default();
        self.effect_claim_within(&ClaimRequest {
            owner,
            process: None,
            ttl,
            root: None,
            limits,
            without: &[],
        })
    }

    /// Like [`Store::effect_claim`], restricted to one plan tree or by limits.
    pub fn effect_claim_within(
        &self,
        order: &ClaimRequest<'_>,
    ) -> BoxFuture<'_, Result<Option<EffectClaim>, StoreError>> {
        let wanted = ClaimQuery {
            owner: order.owner.to_owned(),
            process: order.process.map(identity_text),
            without: order.without.to_vec(),
            ttl: micros(order.ttl),
            root: order.root.map(|root| root.as_str().to_owned()),
            limits: order.limits,
        };
        Box::pin(self.write(move |tx| Box::pin(claim(tx, wanted))))
    }

    /// Returns a claimed effect as if it had never been claimed. Used by a process that cannot perform it, so
    /// that another one can.
    pub fn effect_give_back(&self, claim: &EffectClaim) -> BoxFuture<'_, Result<(), StoreError>> {
        let sql = "UPDATE outbox SET ready_at = drydock_now(), claimed_by = NULL, process = NULL,
            attempts = attempts - 1 WHERE plan = $1 AND claimed_by = $2 AND attempts = $3";
        let params = [claim.plan.as_str().into(), claim.owner.as_str().into(), claim.attempts.into()];
        let statement = Statement::new(sql, params);
        Box::pin(self.write(move |tx| {
            Box::pin(async move {
                tx.last(statement).await?;
                Ok(TxOutcome::Keep(()))
            })
        }))
    }

    /// Makes a claimed effect due again after a delay. Does nothing if the claim is no longer valid.
    pub fn effect_defer(
        &self,
        claim: &EffectClaim,
        delay: Duration,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        let sql = "UPDATE outbox SET ready_at = drydock_now() + $4, claimed_by = NULL, process = NULL
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
                Ok(TxOutcome::Keep(()))
            })
        }))
    }
}

/// A worker's request for an effect.
#[derive(Debug, Clone, Copy)]
pub struct ClaimRequest<'a> {
    /// The name of the invocation that claims.
    pub owner: &'a str,
    /// The process that claims; when it is gone, its claims are freed.
    pub process: Option<&'a ProcessIdentity>,
    /// The duration of the claim.
    pub ttl: Duration,
    /// Only effects of plans in the tree with this root.
    pub root: Option<&'a PlanId>,
    /// Limits on concurrently running phases.
    pub limits: PhaseLimits,
    /// Projects to exclude.
    pub without: &'a [Name],
}

/// Limits on concurrently running phases, over all processes; `None` means unlimited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PhaseLimits {
    /// Limit for the whole store.
    pub store: Option<u32>,
    /// Limit per project.
    pub project: Option<u32>,
}

struct ClaimQuery {
    owner: String,
    process: Option<String>,
    without: Vec<Name>,
    ttl: i64,
    root: Option<String>,
    limits: PhaseLimits,
}

/// The plan's lock is held: its holder is working on it, possibly for longer than a claim lasts, so no other
/// worker may perform the effect.
const HELD: &str = "EXISTS (SELECT 1 FROM locks l WHERE l.scope = 'plan' AND l.key = {row}.plan
    AND l.owner IS NOT NULL AND l.expires_at > drydock_now())";
/// A running phase, or one about to run: its claim has not expired, or its plan's lock is held.
const RUNNING: &str = "SELECT count(*) FROM outbox r JOIN plans q ON q.id = r.plan
    WHERE r.effect LIKE '{\"drive_phase%' AND ((r.claimed_by IS NOT NULL AND r.ready_at > drydock_now()) OR {held})";
/// "drydock" in the key space of advisory locks; the last digit stands for claims.
const CLAIMS_KEY: i64 = 0x6472_7964_6f63_0003;

impl ClaimQuery {
    /// Returns the statement that claims. It also counts the running phases, so that limits are checked
    /// atomically.
    fn statement(&self, dialect: Dialect) -> Statement {
        let mut params: Vec<Value> =
            vec![self.owner.as_str().into(), self.ttl.into(), self.process.as_deref().into()];
        let mut condition = format!("o.ready_at <= drydock_now() AND NOT {}", HELD.replace("{row}", "o"));
        if let Some(root) = &self.root {
            params.push(root.as_str().into());
            let at = params.len();
            condition.push_str(&format!(
                " AND EXISTS (SELECT 1 FROM plans t WHERE t.id = o.plan AND t.root = ${at})"
            ));
        }
        if !self.without.is_empty() {
            let first = params.len() + 1;
            params.extend(self.without.iter().map(|project| Value::from(project.as_str())));
            let places: Vec<_> = (first..=params.len()).map(|at| format!("${at}")).collect();
            condition.push_str(&format!(
                " AND NOT EXISTS (SELECT 1 FROM plans w WHERE w.id = o.plan AND w.project IN ({}))",
                places.join(", ")
            ));
        }
        let running = RUNNING.replace("{held}", &HELD.replace("{row}", "r"));
        let same = " AND q.project = (SELECT p.project FROM plans p WHERE p.id = o.plan)";
        for (limit, among) in [(self.limits.store, ""), (self.limits.project, same)] {
            let Some(limit) = limit else { continue };
            params.push(i64::from(limit).into());
            let at = params.len();
            let free = format!("({running}{among}) < ${at}");
            condition.push_str(&format!(" AND (o.effect NOT LIKE '{{\"drive_phase%' OR {free})"));
        }
        let skipping = match dialect {
            Dialect::Sqlite => "",
            Dialect::Postgres => " FOR UPDATE SKIP LOCKED",
        };
        let sql = format!(
            "UPDATE outbox SET ready_at = drydock_now() + $2, claimed_by = $1, process = $3, attempts = attempts + 1
             WHERE plan = (SELECT o.plan FROM outbox o WHERE {condition} ORDER BY o.rank, o.ready_at LIMIT 1{skipping})
             RETURNING plan, effect, attempts"
        );
        Statement::composed(sql, params)
    }
}

async fn claim(tx: &mut Tx<'_>, wanted: ClaimQuery) -> Result<TxOutcome<Option<EffectClaim>>, StoreError> {
    tx.quiet();
    // Without this lock, two transactions that count concurrently could both see the last free slot.
    if tx.dialect() == Dialect::Postgres && wanted.limits != PhaseLimits::default() {
        tx.query(Statement::new("SELECT pg_advisory_xact_lock($1)::text", [CLAIMS_KEY.into()])).await?;
    }
    let rows = tx.last(wanted.statement(tx.dialect())).await?;
    match rows.first() {
        Some(row) => Ok(TxOutcome::Keep(Some(claim_from(row, wanted.owner)?))),
        None => Ok(TxOutcome::Undo(None)),
    }
}

fn claim_from(row: &Row, owner: String) -> Result<EffectClaim, StoreError> {
    let id = row.text(0)?;
    let plan = id.parse().map_err(|error| StoreError::damaged("outbox", id, format!("{error}")))?;
    Ok(EffectClaim { plan, effect: parse("outbox", id, row.text(1)?)?, attempts: row.int(2)?, owner })
}
