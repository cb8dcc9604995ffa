//! Idempotency keys: responses stored under a key that the client chose, so that a repeated request is not
//! performed twice. A key is claimed before its request is performed. If the holder of a claim dies, it is
//! unknown whether the request was performed.

use std::time::Duration;

use crate::lease::micros;
use crate::tx::{BoxFuture, Tx, TxOutcome};
use crate::value::{Row, Statement};
use crate::{Store, StoreError};

/// Maximum number of attempts to claim a key that was deleted concurrently.
const LOOKS_MAX: u32 = 8;

/// A request with an idempotency key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotentRequest {
    /// The key that the client chose.
    pub key: String,
    /// A fingerprint that distinguishes the request from every other request.
    pub fingerprint: String,
    /// A random seed for ids that must be the same if the request is performed again.
    pub seed: u128,
    /// The invocation that performs the request.
    pub owner: String,
}

/// The right to perform a request and to store its response.
#[must_use = "a claimed key stays claimed until it is settled"]
#[derive(Debug, PartialEq, Eq)]
pub struct IdempotencyClaim {
    key: String,
    owner: String,
    /// The seed of the first claim of the key.
    pub seed: u128,
}

/// A stored response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredResponse {
    /// The HTTP status.
    pub status: u16,
    /// The media type of the body.
    pub media: String,
    /// The body.
    pub body: String,
}

/// The state of a key.
#[derive(Debug, PartialEq, Eq)]
pub enum KeyState {
    /// The key was unknown, and is claimed now.
    New(IdempotencyClaim),
    /// The request was performed.
    Answered(StoredResponse),
    /// Another invocation is performing the request.
    UnderWay,
    /// The previous holder of the claim died or failed before it stored a response; the key is claimed now.
    CutShort(IdempotencyClaim),
    /// The key belongs to a different request.
    Taken,
}

impl Store {
    /// Claims a key for `ttl`, unless it is known. Also deletes the keys that have expired; a new key expires
    /// after `kept`.
    pub fn idempotency_claim(
        &self,
        request: IdempotentRequest,
        ttl: Duration,
        kept: Duration,
    ) -> BoxFuture<'_, Result<KeyState, StoreError>> {
        let (ttl, kept) = (micros(ttl), micros(kept));
        Box::pin(self.write(move |tx| Box::pin(claim(tx, request, ttl, kept))))
    }

    /// Extends a claim, unless it is lost.
    pub fn idempotency_renew(
        &self,
        claim: &IdempotencyClaim,
        ttl: Duration,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        let sql = "UPDATE answers SET claimed_until = drydock_now() + $3
            WHERE key = $1 AND claimed_by = $2 AND status IS NULL AND claimed_until > drydock_now()";
        let params = [claim.key.as_str().into(), claim.owner.as_str().into(), micros(ttl).into()];
        self.settle(Statement::new(sql, params))
    }

    /// Stores the response of a performed request.
    pub fn idempotency_keep(
        &self,
        claim: IdempotencyClaim,
        answer: StoredResponse,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        let sql = "UPDATE answers SET status = $3, media = $4, body = $5
            WHERE key = $1 AND claimed_by = $2 AND status IS NULL";
        let StoredResponse { status, media, body } = answer;
        let params =
            [claim.key.into(), claim.owner.into(), i64::from(status).into(), media.into(), body.into()];
        self.settle(Statement::new(sql, params))
    }

    /// Deletes the key of a request that changed nothing, so that it can be sent again.
    pub fn idempotency_forget(&self, claim: IdempotencyClaim) -> BoxFuture<'_, Result<(), StoreError>> {
        let sql = "DELETE FROM answers WHERE key = $1 AND claimed_by = $2 AND status IS NULL";
        self.settle(Statement::new(sql, [claim.key.into(), claim.owner.into()]))
    }

    /// Releases a claim without a response: it is unknown whether the request was performed.
    pub fn idempotency_abandon(&self, claim: IdempotencyClaim) -> BoxFuture<'_, Result<(), StoreError>> {
        let sql =
            "UPDATE answers SET claimed_until = 0 WHERE key = $1 AND claimed_by = $2 AND status IS NULL";
        self.settle(Statement::new(sql, [claim.key.into(), claim.owner.into()]))
    }

    /// Deletes expired keys, and returns their number.
    pub fn answers_expire(&self) -> BoxFuture<'_, Result<usize, StoreError>> {
        Box::pin(self.write(|tx| {
            Box::pin(async move {
                tx.quiet();
                let gone = tx.last(Statement::new(EXPIRE, [])).await?;
                Ok(TxOutcome::Keep(gone.len()))
            })
        }))
    }

    fn settle(&self, statement: Statement) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.write(move |tx| {
            Box::pin(async move {
                tx.quiet();
                tx.last(statement).await?;
                Ok(TxOutcome::Keep(()))
            })
        }))
    }
}

const EXPIRE: &str = "DELETE FROM answers WHERE expires_at <= drydock_now() RETURNING key";
const CLAIM: &str = "INSERT INTO answers (key, request, seed, claimed_by, claimed_until, expires_at)
    VALUES ($1, $2, $3, $4, drydock_now() + $5, drydock_now() + $6) ON CONFLICT (key) DO NOTHING RETURNING key";

async fn claim(
    tx: &mut Tx<'_>,
    request: IdempotentRequest,
    ttl: i64,
    kept: i64,
) -> Result<TxOutcome<KeyState>, StoreError> {
    tx.quiet();
    tx.query(Statement::new(EXPIRE, [])).await?;
    let IdempotentRequest { key, fingerprint, seed, owner } = request;
    for _ in 0..LOOKS_MAX {
        let params = [
            key.as_str().into(),
            fingerprint.as_str().into(),
            format!("{seed:032x}").into(),
            owner.as_str().into(),
            ttl.into(),
            kept.into(),
        ];
        if !tx.query(Statement::new(CLAIM, params)).await?.is_empty() {
            return Ok(TxOutcome::Keep(KeyState::New(IdempotencyClaim { key, owner, seed })));
        }
        // On PostgreSQL another transaction may have deleted the key in between; then the next attempt can
        // claim it.
        if let Some(known) = look(tx, &key).await? {
            return known.judge(tx, key, &fingerprint, owner, ttl).await;
        }
    }
    Err(StoreError::Busy { place: format!("the key {key}"), attempt: "claim it", holder: None })
}

/// The stored row of a key.
struct KeyRow {
    fingerprint: String,
    seed: u128,
    /// Whether the claim has not expired.
    is_claimed: bool,
    answer: Option<StoredResponse>,
}

async fn look(tx: &mut Tx<'_>, key: &str) -> Result<Option<KeyRow>, StoreError> {
    let sql = format!(
        "SELECT request, seed, CAST(CASE WHEN claimed_until > drydock_now() THEN 1 ELSE 0 END AS BIGINT), status, media, body
         FROM answers WHERE key = $1{}",
        tx.dialect().for_update()
    );
    let rows = tx.query(Statement::composed(sql, vec![key.into()])).await?;
    rows.first().map(|row| known_from(key, row)).transpose()
}

fn known_from(key: &str, row: &Row) -> Result<KeyRow, StoreError> {
    let damaged = |reason: &str| StoreError::damaged("answers", key, reason);
    let answer = match row.int_or_null(3)? {
        None => None,
        Some(status) => Some(StoredResponse {
            status: u16::try_from(status).map_err(|_| damaged("its status is none"))?,
            media: row.text(4)?.to_owned(),
            body: row.text(5)?.to_owned(),
        }),
    };
    Ok(KeyRow {
        fingerprint: row.text(0)?.to_owned(),
        seed: u128::from_str_radix(row.text(1)?, 16).map_err(|_| damaged("its seed is not a number"))?,
        is_claimed: row.int(2)? == 1,
        answer,
    })
}

impl KeyRow {
    async fn judge(
        self,
        tx: &mut Tx<'_>,
        key: String,
        fingerprint: &str,
        owner: String,
        ttl: i64,
    ) -> Result<TxOutcome<KeyState>, StoreError> {
        if self.fingerprint != fingerprint {
            return Ok(TxOutcome::Undo(KeyState::Taken));
        }
        if let Some(answer) = self.answer {
            return Ok(TxOutcome::Undo(KeyState::Answered(answer)));
        }
        if self.is_claimed {
            return Ok(TxOutcome::Undo(KeyState::UnderWay));
        }
        let sql = "UPDATE answers SET claimed_by = $2, claimed_until = drydock_now() + $3 WHERE key = $1";
        tx.query(Statement::new(sql, [key.as_str().into(), owner.as_str().into(), ttl.into()])).await?;
        Ok(TxOutcome::Keep(KeyState::CutShort(IdempotencyClaim { key, owner, seed: self.seed })))
    }
}
