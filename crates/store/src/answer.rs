//! Answers that are kept under a key which the asker chose, so that asking again carries nothing out twice. A key is
//! claimed before its request is carried out; a claim whose holder died says that nobody knows whether it was.

use std::time::Duration;

use crate::lease::micros;
use crate::tx::{BoxFuture, Tx, Verdict};
use crate::value::{Row, Statement};
use crate::{Store, StoreError};

/// How often a claim looks again when the key it met was gone by the time it was read.
const LOOKS_MAX: u32 = 8;

/// A request under a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyedRequest {
    /// What the asker calls it.
    pub key: String,
    /// What tells it from every other request.
    pub fingerprint: String,
    /// Chance of its own, for ids that must be the same when it is carried out again.
    pub seed: u128,
    /// Who carries it out.
    pub owner: String,
}

/// The right to carry a request out and to keep its answer.
#[must_use = "a key that is claimed and not settled stays claimed"]
#[derive(Debug, PartialEq, Eq)]
pub struct AnswerClaim {
    key: String,
    owner: String,
    /// The chance that the key was first claimed with.
    pub seed: u128,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptAnswer {
    /// Its status.
    pub status: u16,
    /// What its body is written in.
    pub media: String,
    /// Its body.
    pub body: String,
}

/// What is known of a key.
#[derive(Debug, PartialEq, Eq)]
pub enum Keyed {
    /// Nothing was; it is claimed now.
    New(AnswerClaim),
    /// The request was carried out.
    Answered(KeptAnswer),
    /// Somebody carries it out now.
    UnderWay,
    /// Whoever carried it out died or failed on the way; it is claimed now.
    CutShort(AnswerClaim),
    /// The key is that of another request.
    Taken,
}

impl Store {
    /// Claims a key for `ttl`, unless it is known. What is known of keys older than `kept` is forgotten.
    pub fn answer_claim(
        &self,
        request: KeyedRequest,
        ttl: Duration,
        kept: Duration,
    ) -> BoxFuture<'_, Result<Keyed, StoreError>> {
        let (ttl, kept) = (micros(ttl), micros(kept));
        Box::pin(self.write(move |tx| Box::pin(claim(tx, request, ttl, kept))))
    }

    /// Keeps a claim for longer, unless it is lost.
    pub fn answer_renew(&self, claim: &AnswerClaim, ttl: Duration) -> BoxFuture<'_, Result<(), StoreError>> {
        let sql = "UPDATE answers SET claimed_until = drydock_now() + $3
            WHERE key = $1 AND claimed_by = $2 AND status IS NULL AND claimed_until > drydock_now()";
        let params = [claim.key.as_str().into(), claim.owner.as_str().into(), micros(ttl).into()];
        self.settle(Statement::new(sql, params))
    }

    /// Keeps the answer of a request that was carried out.
    pub fn answer_keep(
        &self,
        claim: AnswerClaim,
        answer: KeptAnswer,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        let sql = "UPDATE answers SET status = $3, media = $4, body = $5
            WHERE key = $1 AND claimed_by = $2 AND status IS NULL";
        let KeptAnswer { status, media, body } = answer;
        let params =
            [claim.key.into(), claim.owner.into(), i64::from(status).into(), media.into(), body.into()];
        self.settle(Statement::new(sql, params))
    }

    /// Forgets the key of a request that changed nothing, so that it can be asked again.
    pub fn answer_forget(&self, claim: AnswerClaim) -> BoxFuture<'_, Result<(), StoreError>> {
        let sql = "DELETE FROM answers WHERE key = $1 AND claimed_by = $2 AND status IS NULL";
        self.settle(Statement::new(sql, [claim.key.into(), claim.owner.into()]))
    }

    /// Lets go of a claim without an answer: nobody knows whether the request was carried out.
    pub fn answer_abandon(&self, claim: AnswerClaim) -> BoxFuture<'_, Result<(), StoreError>> {
        let sql =
            "UPDATE answers SET claimed_until = 0 WHERE key = $1 AND claimed_by = $2 AND status IS NULL";
        self.settle(Statement::new(sql, [claim.key.into(), claim.owner.into()]))
    }

    /// Forgets the keys whose time is over, and returns how many there were.
    pub fn answers_expire(&self) -> BoxFuture<'_, Result<usize, StoreError>> {
        Box::pin(self.write(|tx| {
            Box::pin(async move {
                tx.quiet();
                let gone = tx.last(Statement::new(EXPIRE, [])).await?;
                Ok(Verdict::Keep(gone.len()))
            })
        }))
    }

    fn settle(&self, statement: Statement) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.write(move |tx| {
            Box::pin(async move {
                tx.quiet();
                tx.last(statement).await?;
                Ok(Verdict::Keep(()))
            })
        }))
    }
}

const EXPIRE: &str = "DELETE FROM answers WHERE expires_at <= drydock_now() RETURNING key";
const CLAIM: &str = "INSERT INTO answers (key, request, seed, claimed_by, claimed_until, expires_at)
    VALUES ($1, $2, $3, $4, drydock_now() + $5, drydock_now() + $6) ON CONFLICT (key) DO NOTHING RETURNING key";

async fn claim(
    tx: &mut Tx<'_>,
    request: KeyedRequest,
    ttl: i64,
    kept: i64,
) -> Result<Verdict<Keyed>, StoreError> {
    tx.quiet();
    tx.query(Statement::new(EXPIRE, [])).await?;
    let KeyedRequest { key, fingerprint, seed, owner } = request;
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
            return Ok(Verdict::Keep(Keyed::New(AnswerClaim { key, owner, seed })));
        }
        // On PostgreSQL another may have forgotten the key in between; then it is ours after all.
        if let Some(known) = look(tx, &key).await? {
            return known.judge(tx, key, &fingerprint, owner, ttl).await;
        }
    }
    Err(StoreError::Busy { place: format!("the key {key}"), attempt: "claim it", holder: None })
}

/// What is stored under a key.
struct Known {
    fingerprint: String,
    seed: u128,
    /// Whether somebody may still be at it.
    is_claimed: bool,
    answer: Option<KeptAnswer>,
}

async fn look(tx: &mut Tx<'_>, key: &str) -> Result<Option<Known>, StoreError> {
    let sql = format!(
        "SELECT request, seed, CAST(CASE WHEN claimed_until > drydock_now() THEN 1 ELSE 0 END AS BIGINT), status, media, body
         FROM answers WHERE key = $1{}",
        tx.dialect().for_update()
    );
    let rows = tx.query(Statement::composed(sql, vec![key.into()])).await?;
    rows.first().map(|row| known_from(key, row)).transpose()
}

fn known_from(key: &str, row: &Row) -> Result<Known, StoreError> {
    let damaged = |reason: &str| StoreError::damaged("answers", key, reason);
    let answer = match row.int_or_null(3)? {
        None => None,
        Some(status) => Some(KeptAnswer {
            status: u16::try_from(status).map_err(|_| damaged("its status is none"))?,
            media: row.text(4)?.to_owned(),
            body: row.text(5)?.to_owned(),
        }),
    };
    Ok(Known {
        fingerprint: row.text(0)?.to_owned(),
        seed: u128::from_str_radix(row.text(1)?, 16).map_err(|_| damaged("its seed is no number"))?,
        is_claimed: row.int(2)? == 1,
        answer,
    })
}

impl Known {
    async fn judge(
        self,
        tx: &mut Tx<'_>,
        key: String,
        fingerprint: &str,
        owner: String,
        ttl: i64,
    ) -> Result<Verdict<Keyed>, StoreError> {
        if self.fingerprint != fingerprint {
            return Ok(Verdict::Undo(Keyed::Taken));
        }
        if let Some(answer) = self.answer {
            return Ok(Verdict::Undo(Keyed::Answered(answer)));
        }
        if self.is_claimed {
            return Ok(Verdict::Undo(Keyed::UnderWay));
        }
        let sql = "UPDATE answers SET claimed_by = $2, claimed_until = drydock_now() + $3 WHERE key = $1";
        tx.query(Statement::new(sql, [key.as_str().into(), owner.as_str().into(), ttl.into()])).await?;
        Ok(Verdict::Keep(Keyed::CutShort(AnswerClaim { key, owner, seed: self.seed })))
    }
}
