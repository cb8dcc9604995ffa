//! Delivery state of each hook. The feed is the outbox: an event is committed together with its cause. So
//! this table stores only a position in the feed and the state of the current attempt. One process at a time
//! holds the claim on a hook; a process that lost the claim cannot record a result. These writes contain
//! nothing new for watchers, so they wake none.

use std::time::Duration;

use drydock_domain::Name;

use crate::lease::micros;
use crate::tx::{BoxFuture, Tx, TxOutcome};
use crate::value::{Row, Statement, Value};
use crate::{Store, StoreError};

/// The delivery state of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The hook.
    pub hook: Name,
    /// Every event up to this one was delivered, given up, or is not relevant to the hook.
    pub position: i64,
    /// Number of failed attempts to deliver the next event.
    pub attempts: i64,
    /// Time until the next attempt: another process has the claim, or the last attempt was too recent.
    pub due_in: Duration,
    /// Number of delivered events.
    pub delivered: i64,
    /// Number of events that were given up.
    pub failed: i64,
    /// The error of the last attempt, if it failed.
    pub last_error: Option<String>,
}

/// The right to deliver the next event to a hook, for a limited time.
#[must_use = "a claimed hook gets no delivery until the claim is settled or expires"]
#[derive(Debug, PartialEq, Eq)]
pub struct DeliveryClaim {
    hook: Name,
    owner: String,
    /// Number of failed attempts to deliver the event before this one.
    pub attempts: i64,
}

/// The outcome of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryOutcome {
    /// The hook received this event.
    Delivered(i64),
    /// The attempt failed, and is repeated after a delay.
    Later {
        /// The error of the attempt.
        error: String,
        /// The delay.
        delay: Duration,
    },
    /// The attempt failed, and is not repeated.
    GivenUp {
        /// The event.
        seq: i64,
        /// The error of the last attempt.
        error: String,
    },
    /// This process interrupted the attempt; it is not counted.
    CutShort,
}

/// Whether a claim was still valid.
#[must_use = "work must stop when the claim is lost"]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimStatus {
    /// The claim was valid.
    Kept,
    /// The claim had expired, and another process may have it.
    Lost,
}

const COLUMNS: &str = "hook, position, attempts,
    CASE WHEN next_at > claimed_until THEN next_at ELSE claimed_until END - drydock_now(),
    delivered, failed, last_error";

impl Store {
    /// Registers hooks. A new hook receives the events committed from now on, not earlier ones.
    pub fn delivery_begin(&self, hooks: &[Name]) -> BoxFuture<'_, Result<(), StoreError>> {
        let hooks = hooks.to_vec();
        Box::pin(async move {
            let known = self.delivery_list().await?;
            let is_new = |hook: &Name| !known.iter().any(|delivery| delivery.hook == *hook);
            let new: Vec<_> = hooks.into_iter().filter(is_new).collect();
            if new.is_empty() {
                return Ok(());
            }
            self.number_events().await?;
            self.write(move |tx| Box::pin(begin(tx, new))).await
        })
    }

    /// Returns the delivery state of every hook that was ever registered.
    pub fn delivery_list(&self) -> BoxFuture<'_, Result<Vec<Delivery>, StoreError>> {
        Box::pin(self.read(|tx| {
            Box::pin(async move {
                let sql = format!("SELECT {COLUMNS} FROM deliveries ORDER BY hook");
                tx.last(Statement::composed(sql, Vec::new())).await?.iter().map(delivery_from).collect()
            })
        }))
    }

    /// Returns the delivery state of a hook.
    pub fn delivery_fetch(&self, hook: &Name) -> BoxFuture<'_, Result<Option<Delivery>, StoreError>> {
        let hook = hook.clone();
        Box::pin(self.read(move |tx| {
            Box::pin(async move {
                let sql = format!("SELECT {COLUMNS} FROM deliveries WHERE hook = $1");
                let rows = tx.last(Statement::composed(sql, vec![hook.as_str().into()])).await?;
                rows.first().map(delivery_from).transpose()
            })
        }))
    }

    /// Claims a hook in the given state. Returns `None` if it is not due, or if its state changed since it
    /// was read.
    pub fn delivery_claim(
        &self,
        seen: &Delivery,
        owner: &str,
        ttl: Duration,
    ) -> BoxFuture<'_, Result<Option<DeliveryClaim>, StoreError>> {
        let sql = "UPDATE deliveries SET claimed_by = $4, claimed_until = drydock_now() + $5
            WHERE hook = $1 AND position = $2 AND attempts = $3
                AND next_at <= drydock_now() AND claimed_until <= drydock_now()
            RETURNING attempts";
        let params = [
            seen.hook.as_str().into(),
            seen.position.into(),
            seen.attempts.into(),
            owner.into(),
            micros(ttl).into(),
        ];
        let (statement, hook, owner) = (Statement::new(sql, params), seen.hook.clone(), owner.to_owned());
        Box::pin(async move {
            let rows = self.quietly(statement).await?;
            let claim = |row: &Row| Ok(DeliveryClaim { hook, owner, attempts: row.int(0)? });
            rows.first().map(claim).transpose()
        })
    }

    /// Extends a claim.
    pub fn delivery_renew(
        &self,
        claim: &DeliveryClaim,
        ttl: Duration,
    ) -> BoxFuture<'_, Result<ClaimStatus, StoreError>> {
        let set = "claimed_until = drydock_now() + $3";
        self.under_claim(claim, set, vec![micros(ttl).into()])
    }

    /// Records the outcome of an attempt and ends the claim, in one step.
    pub fn delivery_settle(
        &self,
        claim: &DeliveryClaim,
        told: DeliveryOutcome,
    ) -> BoxFuture<'_, Result<ClaimStatus, StoreError>> {
        let (set, params): (_, Vec<Value>) = match told {
            DeliveryOutcome::Delivered(seq) => {
                let set = "claimed_by = NULL, claimed_until = 0, position = $3, attempts = 0, next_at = 0,
                    delivered = delivered + 1, last_error = NULL";
                (set, vec![seq.into()])
            }
            DeliveryOutcome::Later { error, delay } => {
                let set = "claimed_by = NULL, claimed_until = 0, attempts = attempts + 1,
                    next_at = drydock_now() + $3, last_error = $4";
                (set, vec![micros(delay).into(), error.into()])
            }
            DeliveryOutcome::GivenUp { seq, error } => {
                let set = "claimed_by = NULL, claimed_until = 0, position = $3, attempts = 0, next_at = 0,
                    failed = failed + 1, last_error = $4";
                (set, vec![seq.into(), error.into()])
            }
            DeliveryOutcome::CutShort => ("claimed_by = NULL, claimed_until = 0", Vec::new()),
        };
        self.under_claim(claim, set, params)
    }

    /// Advances the position past events that are not relevant to the hook, unless its state changed since it
    /// was read.
    pub fn delivery_pass(&self, seen: &Delivery, to: i64) -> BoxFuture<'_, Result<(), StoreError>> {
        let sql = "UPDATE deliveries SET position = $4
            WHERE hook = $1 AND position = $2 AND attempts = $3 AND claimed_until <= drydock_now() AND $4 > position";
        let params = [seen.hook.as_str().into(), seen.position.into(), seen.attempts.into(), to.into()];
        let statement = Statement::new(sql, params);
        Box::pin(async move { self.quietly(statement).await.map(drop) })
    }

    fn under_claim(
        &self,
        claim: &DeliveryClaim,
        set: &'static str,
        more: Vec<Value>,
    ) -> BoxFuture<'_, Result<ClaimStatus, StoreError>> {
        let sql = format!(
            "UPDATE deliveries SET {set}
             WHERE hook = $1 AND claimed_by = $2 AND claimed_until > drydock_now() RETURNING hook"
        );
        let mut params: Vec<Value> = vec![claim.hook.as_str().into(), claim.owner.as_str().into()];
        params.extend(more);
        let statement = Statement::composed(sql, params);
        Box::pin(async move {
            let rows = self.quietly(statement).await?;
            Ok(if rows.is_empty() { ClaimStatus::Lost } else { ClaimStatus::Kept })
        })
    }

    /// Runs one statement without waking watchers.
    async fn quietly(&self, statement: Statement) -> Result<Vec<Row>, StoreError> {
        self.write(move |tx| {
            Box::pin(async move {
                tx.quiet();
                Ok(TxOutcome::Keep(tx.last(statement).await?))
            })
        })
        .await
    }
}

async fn begin(tx: &mut Tx<'_>, hooks: Vec<Name>) -> Result<TxOutcome<()>, StoreError> {
    tx.quiet();
    // Two processes may register the same new hook concurrently; the second one keeps the row of the first.
    let sql = "INSERT INTO deliveries
            (hook, position, attempts, next_at, claimed_by, claimed_until, delivered, failed, last_error)
        SELECT CAST($1 AS TEXT), coalesce(max(seq), 0), 0, 0, NULL, 0, 0, 0, NULL FROM events WHERE true
        ON CONFLICT (hook) DO NOTHING";
    let statements = hooks.iter().map(|hook| Statement::new(sql, [hook.as_str().into()])).collect();
    tx.finish(statements).await?;
    Ok(TxOutcome::Keep(()))
}

fn delivery_from(row: &Row) -> Result<Delivery, StoreError> {
    let name = row.text(0)?;
    let hook = name.parse().map_err(|error| StoreError::damaged("deliveries", name, format!("{error}")))?;
    Ok(Delivery {
        hook,
        position: row.int(1)?,
        attempts: row.int(2)?,
        due_in: Duration::from_micros(u64::try_from(row.int(3)?).unwrap_or(0)),
        delivered: row.int(4)?,
        failed: row.int(5)?,
        last_error: row.text_or_null(6)?.map(str::to_owned),
    })
}
